"""Whether a log still has the history that a table has read.

A source that was put back from a backup gives the offsets that were lost to other records, once it has grown again.
Offsets alone can't tell: so a round stores the log's stamp of its end beside them. Driver.
"""

from __future__ import annotations

from dataclasses import replace

from laketier.spi import LogOffsets, OffsetsRewritten, SourceRange, TableChanged, TableLog, stamps_differ


def stamped(source: SourceRange, log: TableLog) -> SourceRange:
    """``source`` with the log's stamp of its end. Ask for it first, then `check_history`, then plan the range: whenever
    the log is put back in between, the next round finds another stamp than this one at the latest. Raises
    what `TableLog.stamp` does."""
    return replace(source, stamp=log.stamp(LogOffsets.from_text(source.end)))


def check_history(read: SourceRange | None, log: TableLog, *, where: str) -> None:
    """Raise `OffsetsRewritten` when the log ends what was ``read`` otherwise by now. A range from before there were
    stamps tells nothing, and neither does a log that has none there, or not any more. Raises also what
    `TableLog.stamp` does."""
    if read is None or read.stamp is None:
        return
    end = LogOffsets.from_text(read.end)
    found = log.stamp(end)
    if not stamps_differ(read.stamp, found):
        return
    raise OffsetsRewritten(
        f"the source {log.table.name!r} has other records before {end.to_text()} than those that were read there",
        where=where,
        why="the source was put back from a backup, or registered by older metadata, and has grown again since: what "
        f"was read ended with {read.stamp}, and now {found} is there",
        fix="Nothing was read. Give the table a new target, which begins with what the source holds now; or drop this "
        "one, and it is made anew. If the source shall be what it was, restore a newer backup of it. If it was "
        "compacted until lately, compaction may just have taken the last record that was read: let it be compacted "
        "again, run `laketier service retier`, and take compaction out again after a round that read new records.",
    )


def check_still(source: SourceRange, log: TableLog, table_id: str | None, *, where: str) -> None:
    """Raise once ``source`` was read for somebody who has the rows by now: `TableChanged` when the table is another one
    (``table_id``: of the one that its source has by now), `OffsetsRewritten` when the log ends the range otherwise.
    Raises also what `TableLog.stamp` does."""
    fix = "Throw away what was read: it may hold rows of both. Then read again."
    if table_id is not None and table_id != log.table.table_id:
        raise TableChanged(
            f"the source's table {log.table.name!r} was recreated while it was read: its id was "
            f"{log.table.table_id!r} and is {table_id!r}",
            where=where,
            fix=fix,
        )
    found = None if source.stamp is None else log.stamp(LogOffsets.from_text(source.end))
    if stamps_differ(source.stamp, found):
        raise OffsetsRewritten(
            f"the source {log.table.name!r} got other records before {source.end} while it was read",
            where=where,
            why="it was put back from a backup, or lost its newest records, and has grown again since: what was read "
            f"ended with {source.stamp}, and now {found} is there",
            fix=fix,
        )
