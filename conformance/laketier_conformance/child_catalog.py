"""Requests to another process that make tables, change and drop them."""

from __future__ import annotations

import sys
from typing import Any, TextIO

import pyarrow as pa

from laketier.spi import AddColumn, PartitionField, TableDescriptor, WidenColumn
from laketier_conformance.asked import say
from laketier_conformance.lake import SCHEMA, Lake, Table
from laketier_conformance.seen import seen


def create(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    catalog = lake.storage.catalog()
    say(answers, {"ready": True})
    sys.stdin.readline()
    path = lake.table(request["table"]).path
    return {"uuid": catalog.create_table(path, TableDescriptor(SCHEMA)).table_uuid}


def alter(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    """Add columns, and make others wider, one after the other."""
    path = lake.table(request["table"]).path
    if request.get("wait"):
        say(answers, {"ready": True})
        sys.stdin.readline()
    catalog, names = lake.storage.catalog(), list[str]()
    for name in request["columns"]:
        names = catalog.alter_table(path, [AddColumn(pa.field(name, pa.int64()))]).schema.names
    for name in request.get("widen", ()):
        names = catalog.alter_table(path, [WidenColumn(name, pa.int64())]).schema.names
    return {"columns": names}


def drop(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    lake.storage.catalog().drop_table(lake.table(request["table"]).path)
    return {"dropped": True}


def make(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Create a table, or find it. ``looks``: what a reader finds before, and what is listed."""
    found: dict[str, Any] = {}
    if request.get("looks"):
        found = {"seen": seen(lake, request["table"]), "listed": [*map(str, lake.storage.catalog().list_tables())]}
    return {**found, "uuid": made(lake, request).info.table_uuid}


def adopt(lake: Lake, request: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    """Make a table of the files that lie there, or find it."""
    if request.get("wait"):
        say(answers, {"ready": True})
        sys.stdin.readline()
    found = lake.storage.adoption().adopt(lake.table(request["table"]).path)
    return {"uuid": found.table.table_uuid, "made": int(found.made)}


def fill(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Create a table, or find it, and append its first epoch."""
    table = made(lake, request)
    return {"outcome": table.append(0).outcome.name, "uuid": table.info.table_uuid}


def made(lake: Lake, request: dict[str, Any]) -> Table:
    """The table of a request, partitioned by the columns that it names."""
    by = tuple(map(PartitionField, request.get("partition_by", ())))
    return lake.create_amid_faults(name=request["table"], partition_by=by)
