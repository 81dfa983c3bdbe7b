"""No garbage is looked for among the tests that were collected."""

from __future__ import annotations

import gc

import pytest

from laketier_conformance.frozen import NAME, Frozen


def test_this_run_is_frozen_once(pytestconfig: pytest.Config) -> None:
    assert [name for name, _ in pytestconfig.pluginmanager.list_name_plugin()].count(NAME) == 1


def test_nothing_is_looked_for_while_tests_are_collected() -> None:
    collection = Frozen().pytest_collection()
    next(collection)
    assert not gc.isenabled()
    with pytest.raises(StopIteration):
        collection.send(None)
    assert gc.isenabled()


def test_a_process_that_looks_for_nothing_goes_on_so() -> None:
    gc.disable()
    try:
        collection = Frozen().pytest_collection()
        next(collection)
        collection.close()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_was_collected_is_left_out() -> None:
    gc.unfreeze()
    Frozen().pytest_collection_finish()
    assert gc.get_freeze_count() > 1000
