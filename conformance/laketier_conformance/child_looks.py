"""Requests to another process that ask what a table tells."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

from laketier.maintenance.orphans import list_orphans
from laketier.spi import Feature
from laketier_conformance.asked import say
from laketier_conformance.lake import Lake, Table
from laketier_conformance.seen import seen

READS = {
    "rows": (),
    "tables": (),
    "version": (),
    "state": (),
    "history": (Feature.HISTORY,),
    "past": (Feature.TIME_TRAVEL,),
    "changes": (Feature.INCREMENTAL_READ,),
}
"""What every reader may ask `tell` for, and the features that it needs."""


def tell(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """What a table tells, by ``what`` is asked."""
    catalog, table = lake.storage.catalog(), lake.table(request["table"])
    match request["what"]:
        case "driver":
            return {"told": _told_to_drivers(table, request["commit"])}
        case "opened":
            return {"told": _opened(table)}
        case "state":
            mark = lake.storage.state(table.info).watermark("p")
            return {"told": None if mark is None else mark.token.epoch}
        case "watermark":
            mark = table.watermark()
            return {"told": None if mark is None else mark.token.epoch}
        case "rows":
            return {"told": seen(lake, request["table"])}
        case "rows alone":
            return {"told": table.read().num_rows}
        case "tables":
            return {"told": sorted(map(str, catalog.list_tables()))}
        case "version":
            known = request["version"]
            return {"told": known is not None and catalog.table_version(table.path, known) == known}
        case "history":
            return {"told": [each.snapshot_id for each in table.history.snapshots(9)]}
        case "changes":
            return {"told": table.changes.plan(table.changes.versions().earliest, table.latest).snapshot_id}
        case "feed":
            return {"told": table.feed.plan(table.latest - 1, table.latest).snapshot_id}
        case "past":
            return {"told": sorted(table.read(columns=("id",), snapshot_id=request["snapshot"])["id"].to_pylist())}
        case "orphans":
            listed = list_orphans(lake.storage, table.info, grace=timedelta(0)).orphans
            return {"told": sorted(each.path for each in listed)}
    raise AssertionError(f"nothing tells {request['what']}")


def _told_to_drivers(table: Table, commit: str) -> dict[str, Any]:
    committer = table.committer()
    try:
        state = committer.open()
        mark = state.watermark("p")
        return {
            "epoch": None if mark is None else mark.token.epoch,
            "landed": state.landed(commit),
            "landed of nobody": state.landed("nobody's"),
        }
    finally:
        committer.close()


def _opened(table: Table) -> list[int | None]:
    """The snapshot that a committer opens the table at, and the epoch of the watermark that it has there."""
    committer = table.committer()
    try:
        state = committer.open()
        mark = state.watermark("p")
        return [state.snapshot_id, None if mark is None else mark.token.epoch]
    finally:
        committer.close()


def watch(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    """Read the table over and over until the file ``until`` is there. The distinct states seen, in order."""
    table = lake.table(request["table"])
    states: list[list[int]] = [table.ids]
    say(answers, {"ready": True})
    while True:
        last = Path(request["until"]).exists()
        seen = table.ids
        if seen != states[-1]:
            states.append(seen)
        if last:
            return {"states": states}
