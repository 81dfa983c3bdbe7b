"""An author's harness that does not do its part: it is told as the harness's error, and never counts for the format."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from laketier.spi import Feature, FeatureNotSupported, LakeStorage, LaketierError, TableInfo
from laketier_conformance import harness as of_authors
from laketier_conformance import started, test_capabilities, test_feed
from laketier_conformance.child import make_ready
from laketier_conformance.expect import HarnessFailed, refused
from laketier_conformance.foreign_tables import APPEND, LOAD, OPERATIONS, ForeignTable
from laketier_conformance.harness import MEMBERS, Harness
from laketier_conformance.interposed.probe import why_not
from laketier_conformance.lake import Lake
from laketier_delta.conformance import Harness as Delta
from laketier_localfile.conformance import Harness as LocalFile

HOOKS = (
    "setup",
    "teardown",
    "crash",
    "for_readers",
    "roll_back",
    "keep_feed",
    "expire",
    "compact",
    "delete_rows",
    "update_rows",
    "secret_options",
)
ROLLED_BACK = "rows after the harness's roll_back took a table back to snapshot"
COMPACT = "test_operations.py::test_an_operation_is_cut_off[compact]"
FEED = "test_feed.py::test_an_append_is_told_as_rows_that_came"


def lazy(*_: object) -> None:
    raise FeatureNotSupported(Feature.CHANGE_FEED.value, reason="I would rather not")


def test_the_pages_of_authors_tell_of_each_member() -> None:
    """An author can't know of a hook that no page names. The docstring has the signatures, and the page a table."""
    page = Path(__file__).parents[2] / "docs" / "authors" / "publish.md"
    rows = {line.rpartition(" | ")[0] for line in page.read_text(encoding="utf-8").splitlines() if line[:2] == "| "}
    in_table = {name for row in rows for name in re.findall(r"`(\w+)[`(]", row)}
    assert set(MEMBERS) <= in_table
    assert set(MEMBERS) <= set(re.findall(r"``(\w+)", of_authors.__doc__ or ""))


@pytest.mark.parametrize("wanted", [FeatureNotSupported, LaketierError, Exception])
@pytest.mark.parametrize("hook", HOOKS)
def test_an_error_of_a_hook_is_no_refusal_of_the_format(hook: str, wanted: type[Exception], tmp_path: Path) -> None:
    harness = Harness(SimpleNamespace(**{hook: lazy}))
    with (
        pytest.raises(HarnessFailed, match=rf"the harness's {hook} ended in FeatureNotSupported\(.*change-feed"),
        refused(wanted, "x"),
    ):
        getattr(harness, hook)(tmp_path)


def test_a_warm_up_that_fails_is_told_as_nobody_calls_it_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each process of the format then took seconds longer, without a word."""
    monkeypatch.setattr(Harness, "of", lambda _: Harness(SimpleNamespace(warm_up=lazy)))
    told = make_ready("localfile", str(tmp_path))
    assert told is not None
    assert "the harness's warm_up ended in FeatureNotSupported(" in told
    assert make_ready("localfile") is None


@pytest.mark.parametrize("hook", ["crash", "roll_back", "keep_feed", "expire", "compact", "delete_rows", "update_rows"])
@pytest.mark.parametrize("supplied", [None, SimpleNamespace(), SimpleNamespace(**dict.fromkeys(HOOKS))])
def test_a_hook_that_is_left_out_is_none(hook: str, supplied: object) -> None:
    assert getattr(Harness(supplied), hook) is None


@pytest.mark.parametrize(("member", "supplied"), [("engine_modules", "lance"), ("engine_modules", 7)])
def test_modules_are_no_text(member: str, supplied: object) -> None:
    """A text would be taken for one module per letter, none of which anybody imports."""
    harness = Harness(SimpleNamespace(**{member: supplied}))
    with pytest.raises(HarnessFailed, match=rf"the harness's {member} ended in TypeError\("):
        getattr(harness, member)


def test_a_set_up_that_gives_no_warehouse_is_the_harness_s_own_mistake(tmp_path: Path) -> None:
    with pytest.raises(HarnessFailed, match="the harness's setup gave '/tmp', where a Warehouse was expected"):
        Harness(SimpleNamespace(setup=lambda folder: "/tmp")).setup(tmp_path)


def test_an_error_of_another_tool_is_no_refusal_of_the_format() -> None:
    """Neither where it makes its table, nor later."""
    told = ForeignTable(rows=lazy, appends=lazy, refuses=[APPEND])
    harness = Harness(SimpleNamespace(foreign_tables={"odd": lazy, "late": lambda *_: told, "none": idle}))
    tables = harness.foreign_tables
    for step in (tables["odd"], tables["late"]().rows, tables["late"]().appends):
        assert step is not None
        with pytest.raises(HarnessFailed, match=r"foreign_tables\['(odd|late)'\](\.\w+)? ended in FeatureNotSupp"):
            step()
    assert tables["late"]().refuses == (APPEND,)
    assert tables["late"]().moves is None
    with pytest.raises(HarnessFailed, match=r"foreign_tables\['none'\] gave None, where a ForeignTable was expected"):
        tables["none"]()
    assert Harness().foreign_tables == {}


def test_what_a_foreign_table_refuses_is_named() -> None:
    """Who refuses to load it refuses all."""
    assert ForeignTable(rows=lazy, refuses=LOAD).refuses == OPERATIONS
    with pytest.raises(ValueError, match=r"refuses names \['write'\]: there are load, read, append, "):
        ForeignTable(rows=lazy, refuses="write")


def test_secret_options_are_a_mapping(tmp_path: Path) -> None:
    harness = Harness(SimpleNamespace(secret_options=lambda _: 7))
    with pytest.raises(HarnessFailed, match=r"the harness's secret_options ended in TypeError\("):
        harness.secret_options(tmp_path)


def test_variables_that_a_harness_sets_are_of_the_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has what the run began with has the password of the harness's server, not what a plugin set."""
    monkeypatch.setattr(started, "ENVIRONMENT", {"SERVER": "old", "GONE": "x"})
    monkeypatch.setenv("OF_A_PLUGIN", "x")
    before = {**os.environ, "SERVER": "old", "GONE": "x"}
    monkeypatch.delenv("GONE", raising=False)
    monkeypatch.setenv("SERVER", "new")
    monkeypatch.setenv("PASSWORD_OF_SERVER", "secret")
    started.keep_changes(before)
    assert started.ENVIRONMENT == {"SERVER": "new", "PASSWORD_OF_SERVER": "secret"}


def test_a_harness_answers_nothing_for_its_format(run_suite, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The format keeps no feed, and declares so: its own refusal is what the test wants. A compaction that did nothing
    was not cut off."""
    (tmp_path / "offers").mkdir()
    (tmp_path / "offers" / "my_harness.py").write_text(
        "from laketier.spi import FeatureNotSupported\n"
        "class Harness:\n"
        "    def keep_feed(self, storage, table):\n"
        "        raise FeatureNotSupported('change-feed', reason='I would rather not')\n"
        "    def compact(self, storage, table):\n"
        "        pass\n"
    )
    run = run_suite(
        "correct", [FEED, COMPACT], offers={"correct": "correctly_made"}, harnesses={"correct": "my_harness:Harness"}
    )
    assert run.outcome(FEED) == "failed", run.output
    assert run.report["results"][FEED]["detail"].startswith("the harness's keep_feed ended in FeatureNotSupported(")
    if why_not() is None:
        assert run.outcome(COMPACT) == "passed", run.output
        told = {"compact of others, cut off": "nothing tells that the harness's compact did it"}
        assert run.report["unproven"] == told


def idle(*_: object) -> None: ...


def one_too_far(storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
    LocalFile().roll_back(storage, table, snapshot_id - 1)


@pytest.mark.parametrize("roll_back", [idle, one_too_far])
def test_a_table_that_was_not_taken_back_shows_nothing(roll_back: object, tmp_path: Path) -> None:
    lake, harness = Lake("localfile", str(tmp_path / "w"), {}), Harness(SimpleNamespace(roll_back=roll_back))
    with pytest.raises(AssertionError, match=ROLLED_BACK):
        test_capabilities.test_a_foreign_rollback_is_noticed(lake.plugin, harness, lake.create(), idle)


@pytest.mark.parametrize("hook", ["expire", "compact"])
def test_a_hook_that_did_nothing_to_a_feed_shows_nothing(hook: str, tmp_path: Path) -> None:
    lake, hooks = Lake("delta", str(tmp_path / "w"), {}), {"keep_feed": Delta().keep_feed, hook: idle}
    with pytest.raises(AssertionError, match=f"the harness's {hook} {hook.removesuffix('e')}ed nothing"):
        test_feed.test_each_range_is_the_sum_of_its_versions(lake, Harness(SimpleNamespace(**hooks)))
