"""The checks after each reload, before anything is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from laketier.kit import confined
from laketier.spi import Collected, Overtaken, SchemaChanged, TableChanged, TableState, WriteResult, attempt_began_at
from laketier.tiering.horizon import Clock, horizon_of


def check_results(state: TableState, results: Sequence[WriteResult]) -> None:
    """Refuse files that were written for another table, schema or partitioning than the one just opened.

    Libraries accept such files and turn values into nulls, or rows into the wrong partition. Results come from
    executors, so the files are also refused when they are not the table's to have.
    Raises `TableChanged` and `OutsideTable`.
    """
    for result in results:
        for file in result.files:
            confined(file.path, where=f"result of attempt {result.attempt}")
        if result.table_uuid != state.table_uuid:
            raise TableChanged(
                f"the table was recreated: files were staged for {result.table_uuid}, it is now {state.table_uuid}",
                fix="Restart the query: it will look at the new table and decide from its watermark.",
            )
        if result.schema_fingerprint != state.schema_fingerprint:
            raise SchemaChanged(
                "the table's schema changed after the files were staged "
                f"(from {result.schema_fingerprint} to {state.schema_fingerprint})",
                fix="Run the round again: it uses the new schema.",
            )
        if result.spec_id != state.spec_id:
            raise SchemaChanged(
                f"the table's partitioning changed after the files were staged (spec {result.spec_id} to "
                f"{state.spec_id})",
                fix="Run the round again: it uses the new partitioning.",
            )


@dataclass(frozen=True)
class BaseSnapshot:
    """The snapshot that a round's rows were merged with. ``snapshot_id`` is None for a table that had none yet."""

    snapshot_id: int | None


def check_base(state: TableState, base: BaseSnapshot | None) -> None:
    """Refuse files whose rows were merged with an older snapshot than the one just opened: published, they would undo
    the commits in between, or bring rows twice. ``base`` is None where nothing was merged. Raises `Overtaken`."""
    if base is not None and state.snapshot_id != base.snapshot_id:
        raise Overtaken(
            f"the table changed while rows were merged: from snapshot {base.snapshot_id} to {state.snapshot_id}",
            why="another writer, or maintenance, committed meanwhile",
            fix="Run the round again: it merges with the present rows of the table.",
        )


def check_not_collected(state: TableState, results: Sequence[WriteResult], clock: Clock) -> None:
    """Refuse files of an attempt that began before the table's horizon: orphan collection may have deleted them.
    ``clock`` is asked only where a rollback took the horizon away.

    Raises `Collected`. See `laketier.maintenance.orphans` for why that is enough.
    """
    oldest = min((attempt_began_at(result.attempt) for result in results if result.files), default=None)
    if oldest is None:
        return
    horizon = horizon_of(state, clock)
    if horizon is not None and oldest < horizon:
        raise Collected(
            f"the round's files were staged from {_moment(oldest)} on, and orphans from before {_moment(horizon)} have "
            "been collected since",
            why="so some of these files may have been deleted as orphans",
            fix="Run the round again: it stages its files again, after that moment. If rounds take this long, collect "
            "orphans with a longer grace period (`laketier maintain orphans --older-than`); if that moment lies in the "
            "future, a clock was ahead (`laketier maintain horizon --lower`).",
        )


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
