"""Where a lake table has read its log up to."""

from __future__ import annotations

from laketier.spi import LogOffsets, LogTable, TableChanged, Watermark, WatermarkLost


def committed_offsets(watermark: Watermark | None, table: LogTable, *, where: str) -> LogOffsets | None:
    """Where the lake table has read up to; None when it holds nothing of the log. Raises `TableChanged` when the
    source's table is another one by now, and `WatermarkLost` when the watermark has no offsets."""
    if watermark is None or watermark.forgotten:
        return None
    token = watermark.token
    if token.run != table.table_id:
        raise TableChanged(
            f"the source's table {table.name!r} was recreated: its id is {table.table_id!r}, and the lake table was "
            f"tiered from {token.run!r}",
            where=where,
            fix="Register it with another target, or drop the lake table; `laketier pipeline adopt` continues into it.",
        )
    if token.source is None:
        raise WatermarkLost(
            f"the table knows epoch {token.epoch} of pipeline {token.pipeline!r}, and no offsets",
            where=where,
            why="the pipeline was adopted or rewound by hand",
            fix="Run `laketier pipeline forget` to read the log from its earliest offset into a table without its "
            "rows.",
        )
    return LogOffsets.from_text(token.source.end)
