"""Where a lake table has read its log up to."""

from __future__ import annotations

import shlex

from laketier.spi import (
    LogOffsets,
    LogTable,
    TableChanged,
    TableState,
    Token,
    TokenMismatch,
    Watermark,
    WatermarkLost,
    refuse_renamed,
)
from laketier.tiering import pipelines


def committed_offsets(watermark: Watermark | None, table: LogTable, *, where: str) -> LogOffsets | None:
    """Where the lake table has read up to; None when it holds nothing of the log. Raises `TableChanged` when the
    source's table is another one by now, `TokenMismatch` when the pipeline has another name, and `WatermarkLost` when
    the watermark has no offsets."""
    if watermark is not None:
        refuse_renamed(watermark, where=where)
    if watermark is None or watermark.forgotten:
        return None
    token = watermark.token
    if token.run != table.table_id:
        raise TableChanged(
            f"the source's table {table.name!r} was recreated: its id is {table.table_id!r}, and the lake table was "
            f"tiered from {token.run!r}",
            where=where,
            fix="Register it with another target, or drop the lake table. Or run `laketier pipeline forget -p "
            f"{token.pipeline}`: the new table is then read from its beginning, and its rows are appended to those of "
            "the old one.",
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


def refuse_read_by_another(state: TableState, pipeline: str, table: LogTable, *, where: str) -> None:
    """Before a pipeline's first round: raises `TokenMismatch` where the lake table has rows of the very same log by
    another pipeline. That is this one under the name that its service, or its source, had before, and would read all
    rows a second time."""
    if table.primary_key or table.table_id == table.name:
        return  # merged by key they are there once; and by a name alone a log is not known
    for each in pipelines.known(state) or ():
        token = None if each.watermark is None or each.watermark.forgotten else each.watermark.token
        if token is None or token.run != table.table_id or not _reads_a_log(token):
            continue
        raise TokenMismatch(
            f"the lake table has the rows of the source's table {table.name!r} already, by the pipeline "
            f"{token.pipeline!r}, and {pipeline!r} would read them a second time",
            where=where,
            why="a pipeline is called as its service, its source and the source's table are, and one of these names is "
            "another one now",
            fix="Set the names back. Or let the pipeline go on under its new name, after all workers with the old one "
            f"have ended: `laketier pipeline rename -p {shlex.quote(token.pipeline)} --to {shlex.quote(pipeline)}`. To "
            f"read all rows anew into a table without them: `laketier pipeline forget -p "
            f"{shlex.quote(token.pipeline)}`.",
        )


def _reads_a_log(token: Token) -> bool:
    """Not so a replay, which counts dead letters."""
    return token.source is not None and token.source.end.startswith("{")
