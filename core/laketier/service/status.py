"""A table of the service as a JSON document: what the command line prints and the web page serves."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from laketier.service.state import IndexFigures, TableStatus


def status_document(status: TableStatus) -> dict[str, Any]:
    """A table for machines. Times in ms since the epoch, UTC."""
    table, last = status.table, status.last_round
    return {
        "table": table.name,
        "target": table.target,
        "format": table.format,
        "state": table.state.value,
        "fresh": status.fresh,
        "behind_seconds": status.behind_seconds,
        "freshness_seconds": table.freshness_seconds,
        "lag_offsets": table.lag_offsets,
        "lag_seconds": table.lag_seconds,
        "epoch": table.epoch,
        "fence": table.fence,
        "rounds": table.rounds_total,
        "rows": table.rows_total,
        "bytes": table.bytes_total,
        "files": table.files_total,
        "bad_records": table.bad_records_total,
        "last_round": None if last is None else asdict(last),
        "failures": table.failures,
        "deaths": table.deaths,
        "suspect": table.suspect,
        "error": table.error,
        "next_try_at": table.next_try_at,
        "indexes": [] if status.upkeep is None else [_index(each) for each in status.upkeep.indexes],
    }


def _index(each: IndexFigures) -> dict[str, Any]:
    return {**asdict(each), "tail_share": round(each.tail_share, 4)}
