"""Common parts of plans: cutting splits to a limit, and checking a range of versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from laketier.spi import LakeSplit, OffsetsExpired, SnapshotNotFound, VersionBounds


def cut_to_limit(splits: Sequence[LakeSplit], limit: int) -> list[LakeSplit]:
    """The first splits that together have ``limit`` rows; all of them where one of these does not know its rows.

    The last one is cut to fit: it is no whole file any more (`LakeSplit.files`, `LakeSplit.plain_parquet`), and
    `LakeSplit.limit` says how many of its first rows are read.
    """
    taken: list[LakeSplit] = []
    missing = limit
    for split in splits:
        if missing <= 0:
            break
        if split.rows is None:
            return list(splits)
        if split.rows > missing:
            taken.append(replace(split, rows=missing, limit=missing, plain_parquet=None, files=()))
        else:
            taken.append(split)
        missing -= split.rows
    return taken


def check_versions(
    start: int, end: int, there: VersionBounds, *, where: str, noun: str = "version", fix: str | None = None
) -> None:
    """Check the range of a `LakeChanges.plan`, ``start`` to ``end`` (exclusive), against the existing versions.
    Raises `SnapshotNotFound` when the table has not reached ``end``, and `OffsetsExpired` when the changes of
    ``start`` have expired. ``noun`` is the format's word for a version; ``fix`` says how to keep versions for
    longer."""
    if end > there.latest:
        raise SnapshotNotFound(f"the newest {noun} is {there.latest - 1}, and {end - 1} was asked for", where=where)
    if start < min(there.earliest, end):
        raise OffsetsExpired(
            f"{noun}s from {start} on have expired",
            where=where,
            why=f"the oldest one whose changes can be read is {there.earliest}",
            fix=fix,
        )
