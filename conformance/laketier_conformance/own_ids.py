"""Names of the suite's tests that are made of their parameters: the same whoever runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

HOOK = "pytest_make_parametrize_id"


@contextmanager
def named_by_pytest_alone(config: pytest.Config) -> Iterator[None]:
    """In the block no plugin and no conftest of the author's names parameters, for which pytest asks each of them."""
    usual = getattr(config.hook, HOOK)
    asked = [each.plugin for each in usual.get_hookimpls()]
    setattr(config.hook, HOOK, config.pluginmanager.subset_hook_caller(HOOK, asked))
    try:
        yield
    finally:
        setattr(config.hook, HOOK, usual)
