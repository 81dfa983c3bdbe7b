"""An author's harness that does not do its part: it is told as the harness's error, and never counts for the format."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from laketier.spi import Feature, FeatureNotSupported, LaketierError
from laketier_conformance.expect import HarnessFailed, refused
from laketier_conformance.harness import Harness

HOOKS = ("setup", "teardown", "roll_back", "keep_feed", "expire", "compact", "delete_rows", "secret_options")
FEED = "test_feed.py::test_an_append_is_told_as_rows_that_came"


def lazy(*_: object) -> None:
    raise FeatureNotSupported(Feature.CHANGE_FEED.value, reason="I would rather not")


@pytest.mark.parametrize("wanted", [FeatureNotSupported, LaketierError, Exception])
@pytest.mark.parametrize("hook", HOOKS)
def test_an_error_of_a_hook_is_no_refusal_of_the_format(hook: str, wanted: type[Exception], tmp_path: Path) -> None:
    harness = Harness(SimpleNamespace(**{hook: lazy}))
    with (
        pytest.raises(HarnessFailed, match=rf"the harness's {hook} ended in FeatureNotSupported\(.*change-feed"),
        refused(wanted, "x"),
    ):
        getattr(harness, hook)(tmp_path)


@pytest.mark.parametrize("hook", ["roll_back", "keep_feed", "expire", "compact", "delete_rows"])
@pytest.mark.parametrize("supplied", [None, SimpleNamespace(), SimpleNamespace(**dict.fromkeys(HOOKS))])
def test_a_hook_that_is_left_out_is_none(hook: str, supplied: object) -> None:
    assert getattr(Harness(supplied), hook) is None


def test_a_harness_refuses_nothing_for_its_format(run_suite, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The format keeps no feed, and declares so: its own refusal is what the test wants."""
    (tmp_path / "offers").mkdir()
    (tmp_path / "offers" / "my_harness.py").write_text(
        "from laketier.spi import FeatureNotSupported\n"
        "class Harness:\n"
        "    def keep_feed(self, storage, table):\n"
        "        raise FeatureNotSupported('change-feed', reason='I would rather not')\n"
    )
    run = run_suite(
        "correct", [FEED], offers={"correct": "correctly_made"}, harnesses={"correct": "my_harness:Harness"}
    )
    assert run.outcome(FEED) == "failed", run.output
    assert run.report["results"][FEED]["detail"].startswith("the harness's keep_feed ended in FeatureNotSupported(")
