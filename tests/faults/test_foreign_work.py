"""What others do to the table at the same time, with each format's own library. What the plugins' own tests cover is
not repeated: restores and rollbacks, Lance's table of conflicts, pyiceberg's retries, Delta's log cleanup."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from depth import sizes
from laketier.kit import failpoints
from laketier.spi import AddColumn, CorruptTable, RolledBack, StagedFileLost, TableChanged, Token, WatermarkLost
from laketier.tiering import RoundOutcome, TieringRound
from laketier.tiering.failpoints import PUBLISH_BEFORE
from laketier_verification.faults import meddling
from laketier_verification.faults.housekeeping import THEIRS, Foreigner, foreigner_for, their_row
from laketier_verification.faults.marked import MarkedTable, rows_of

FORMATS = ("delta", "iceberg", "lance", "localfile")
Scene = tuple[MarkedTable, Foreigner]


@pytest.fixture
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """A table with one epoch of ours and two rows of theirs, all in files of their own."""
    table = MarkedTable(request.param, str(tmp_path / "warehouse")).create()
    other = foreigner_for(table)
    table.append(0, rows_of(0, "ours", 4))
    other.append(0)
    other.append(1)
    yield table, other
    other.close()


def _all_of(*formats: str) -> Any:
    return pytest.mark.parametrize("scene", formats, indirect=True)


def _expire(_: MarkedTable, other: Foreigner) -> None:
    other.expire(1)


def _compact(_: MarkedTable, other: Foreigner) -> None:
    other.compact()


def _append(_: MarkedTable, other: Foreigner) -> None:
    other.append(2)


def _everything(table: MarkedTable, other: Foreigner) -> None:
    for act in (_append, _compact, _expire):
        act(table, other)


# -- between our check and our commit ----------------------------------------------------------------------------------


@_all_of(*FORMATS)
@pytest.mark.parametrize("act", [_append, _compact, _expire, _everything])
def test_our_round_rebases_on_what_came_between_check_and_commit(
    scene: Scene, act: Callable[[MarkedTable, Foreigner], None]
) -> None:
    table, other = scene
    acted: list[str] = []

    def meddle(point: str) -> None:
        if point == PUBLISH_BEFORE and not acted:
            acted.append(point)
            act(table, other)

    with failpoints.observed(meddle):
        # Our local files are the other writer's too: it must not be met by itself.
        result = table.append(1, rows_of(1, "ours", 4))
    assert acted
    assert result.outcome is RoundOutcome.PUBLISHED
    theirs = 3 if act in (_append, _everything) else 2
    assert table.marks() == {(0, "ours"): 4, (1, "ours"): 4} | {(number, THEIRS): 1 for number in range(theirs)}
    assert table.append(1, rows_of(1, "ours", 4)).outcome is RoundOutcome.ALREADY_THERE


@_all_of(*FORMATS)
def test_a_schema_change_between_staging_and_commit_is_refused_and_the_round_staged_anew(scene: Scene) -> None:
    table, _ = scene
    factory = table.factory
    staged = table.stage(factory, [[rows_of(1, "ours", 4)]])
    table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int64()))])
    with pytest.raises(TableChanged, match="schema"):
        TieringRound(factory, token=Token("p", "run", 1)).commit(staged)
    assert table.append(1, rows_of(1, "ours", 4)).outcome is RoundOutcome.PUBLISHED
    assert table.marks() == {(0, "ours"): 4, (1, "ours"): 4, (0, THEIRS): 1, (1, THEIRS): 1}


# -- planned by others before our commit, and committed after it -------------------------------------------------------


def _delta_append(handle: Any) -> None:
    from deltalake import write_deltalake

    write_deltalake(handle, their_row(2), mode="append")


def _iceberg_column(handle: Any) -> None:
    from pyiceberg.types import LongType

    with handle.update_schema() as update:
        update.add_column("more", LongType())


LATE: dict[str, dict[str, Callable[[Any], Any]]] = {
    "delta": {
        "append": _delta_append,
        "optimize": lambda handle: handle.optimize.compact(),
        "delete": lambda handle: handle.delete("driver = 'nobody'"),
        "vacuum": lambda handle: handle.vacuum(dry_run=False, full=True),
    },
    "iceberg": {
        "append": lambda handle: handle.append(their_row(2)),
        "delete": lambda handle: handle.delete("driver = 'nobody'"),
        "properties": lambda handle: handle.transaction().set_properties({"a": "b"}).commit_transaction(),
        "column": _iceberg_column,
    },
    "lance": {
        "append": lambda handle: handle.insert(their_row(2)),
        "delete": lambda handle: handle.delete("driver = 'nobody'"),
        "compaction": lambda handle: handle.optimize.compact_files(),
        "index": lambda handle: handle.create_scalar_index("epoch", "BTREE"),
        "cleanup": lambda handle: handle.cleanup_old_versions(older_than=timedelta(0)),
    },
}


@pytest.mark.parametrize(
    ("scene", "name"), [(kind, name) for kind, acts in LATE.items() for name in acts], indirect=["scene"]
)
def test_what_was_planned_before_our_commit_takes_none_of_its_rows(scene: Scene, name: str) -> None:
    table, other = scene
    stale = other._open()  # type: ignore[attr-defined]
    table.append(1, rows_of(1, "ours", 4))
    theirs = 2
    # Theirs may give way, and says so in its library's words.
    with suppress(Exception):
        LATE[table.format][name](stale)
        theirs += name == "append"
    expected = {(0, "ours"): 4, (1, "ours"): 4} | {(number, THEIRS): 1 for number in range(theirs)}
    assert table.marks() == expected
    assert table.append(1, rows_of(1, "ours", 4)).outcome is RoundOutcome.ALREADY_THERE
    assert table.append(2, rows_of(2, "ours", 4)).outcome is RoundOutcome.PUBLISHED
    assert table.marks() == expected | {(2, "ours"): 4}


@_all_of("iceberg")
def test_a_rewrite_by_pyiceberg_that_began_before_our_commit_gives_way(scene: Scene) -> None:
    """It reads all rows and writes them over themselves: done late, it would take our epoch away."""
    from pyiceberg.exceptions import ValidationException

    table, other = scene
    assert hasattr(other, "_open")
    stale = other._open()
    rows = stale.scan().to_arrow()
    table.append(1, rows_of(1, "ours", 4))
    with pytest.raises(ValidationException):
        stale.overwrite(rows)
    assert table.marks()[1, "ours"] == 4


@_all_of("lance")
def test_a_lance_compaction_that_was_executed_before_our_commit_gives_way(scene: Scene) -> None:
    from lance.optimize import Compaction

    table, other = scene
    assert hasattr(other, "_open")
    stale = other._open()
    plan = Compaction.plan(stale, {})
    rewritten = [task.execute(stale) for task in plan.tasks]
    assert rewritten
    table.append(1, rows_of(1, "ours", 4))
    with pytest.raises(OSError, match="conflict"):
        Compaction.commit(stale, rewritten)
    assert table.marks() == {(0, "ours"): 4, (1, "ours"): 4, (0, THEIRS): 1, (1, THEIRS): 1}


# -- overwritten by others ---------------------------------------------------------------------------------------------


def _overwrite(table: MarkedTable, other: Foreigner) -> None:
    """All rows are replaced by one of theirs."""
    location = str(table.location)
    if table.format == "delta":
        from deltalake import write_deltalake

        write_deltalake(location, their_row(9), mode="overwrite")
    elif table.format == "lance":
        import lance

        lance.write_dataset(their_row(9), location, mode="overwrite")
    else:
        assert hasattr(other, "_open")
        other._open().overwrite(their_row(9))


@_all_of("delta", "lance")
def test_an_overwrite_by_others_is_refused(scene: Scene) -> None:
    table, other = scene
    _overwrite(table, other)
    with pytest.raises((RolledBack, WatermarkLost)):
        table.append(1, rows_of(1, "ours", 4))
    assert table.marks() == {(9, THEIRS): 1}


@_all_of("lance")
def test_an_overwrite_that_was_planned_before_our_epoch_is_refused_too(scene: Scene) -> None:
    """It brings back the metadata of its time, so the older watermark: Lance lets it bury what came between."""
    import lance

    table, other = scene
    assert hasattr(other, "_open")
    stale = other._open()
    location = str(table.location)
    fragments = lance.fragment.write_fragments(their_row(9), location, mode="append")
    table.append(1, rows_of(1, "ours", 4))
    overwrite = lance.LanceOperation.Overwrite(stale.schema, fragments)
    lance.LanceDataset.commit(location, overwrite, read_version=stale.version)
    for epoch in (1, 2):
        with pytest.raises((RolledBack, WatermarkLost)):
            table.append(epoch, rows_of(epoch, "ours", 4))


@_all_of("iceberg")
def test_an_overwrite_by_others_of_an_iceberg_table_is_history_and_the_pipeline_goes_on(scene: Scene) -> None:
    """As the plugin's page says: it can't be told from a delete or a compaction. No epoch comes back or is doubled."""
    table, other = scene
    _overwrite(table, other)
    assert table.append(0, rows_of(0, "ours", 4)).outcome is RoundOutcome.ALREADY_THERE
    assert table.append(1, rows_of(1, "ours", 4)).outcome is RoundOutcome.PUBLISHED
    assert table.marks() == {(9, THEIRS): 1, (1, "ours"): 4}


@_all_of("localfile")
def test_local_files_that_others_delete_are_a_loud_error_to_our_reader(scene: Scene) -> None:
    """There is no foreign overwrite of local files but by hand. The watermark stands, so no epoch is doubled."""
    table, _ = scene
    for path in table.location.glob("*.parquet"):
        path.unlink()
    with pytest.raises(CorruptTable, match=r"missing|lost|gone"):
        table.read()


# -- clean-up that takes staged files ----------------------------------------------------------------------------------


@pytest.mark.each_format  # each looks for its files in its own way
@_all_of(*FORMATS)
def test_files_that_were_cleaned_up_before_the_commit_are_never_published(scene: Scene) -> None:
    """VACUUM, `remove_orphan_files` and `cleanup_old_versions(delete_unverified=True)` with no retention to speak of
    take what is staged. The libraries would commit it all the same, and the table could not be read any more."""
    table, other = scene
    before = table.marks()
    factory = table.factory
    staged = table.stage(factory, [[rows_of(1, "ours", 4)]])
    _clean_up_too_eagerly(table, other, [file.path for result in staged for file in result.files])
    with pytest.raises(StagedFileLost, match="staged"):
        TieringRound(factory, token=Token("p", "run", 1)).commit(staged)
    assert table.marks() == before
    assert table.append(1, rows_of(1, "ours", 4)).outcome is RoundOutcome.PUBLISHED
    assert table.marks() == before | {(1, "ours"): 4}


def _clean_up_too_eagerly(table: MarkedTable, other: Foreigner, staged: list[str]) -> None:
    if table.format == "delta":
        other._open().vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)  # type: ignore[attr-defined]
    elif table.format == "lance":
        other._open().cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)  # type: ignore[attr-defined]
    else:  # pyiceberg removes no files, and local files are nobody else's: a hand stands for other engines
        for path in staged:
            (table.location / path).unlink()
    assert not any((table.location / path).exists() for path in staged)


@_all_of("delta")
def test_a_stale_vacuum_without_retention_takes_committed_files_and_reading_says_so(scene: Scene) -> None:
    """delta-rs deletes what the version it has open does not name, so also what was committed since. Nothing of ours
    can stop it: the plugin's page warns of it, and no reader of ours takes the table for whole."""
    table, other = scene
    stale = other._open()  # type: ignore[attr-defined]
    table.append(1, rows_of(1, "ours", 4))
    gone = stale.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert len(gone) == 1
    with pytest.raises(CorruptTable, match="VACUUM"):
        table.read()
    assert table.append(1, rows_of(1, "ours", 4)).outcome is RoundOutcome.ALREADY_THERE


# -- all of it at once -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@sizes("epochs", 3, 15)
def test_nobody_loses_a_row_while_all_work_at_once(tmp_path: Path, format: str, epochs: int) -> None:
    result = meddling.run(format, epochs, tmp_path)
    assert result.wrong == []
    assert all(worker["done"] > 0 for worker in result.workers.values()), result.workers
