"""Tables as delta-rs and Spark leave them, for the conformance suite. Not used otherwise.

What delta-rs can't write, such as checkpoints of several parts and column mapping, is put into the log as by Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import ColumnProperties, DeltaTable, QueryBuilder, WriterProperties, write_deltalake

from laketier.kit.looks import names_in
from laketier.spi import TablePath
from laketier_conformance.foreign_tables import (
    ADD_COLUMN,
    APPEND,
    CHANGES,
    ORPHANS,
    OVERWRITE,
    READ,
    ForeignTable,
    plain_rows,
)
from laketier_conformance.harness import Warehouse

Action = dict[str, Any]
_MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
_PLAIN = plain_rows(pa.int64())
_TYPED = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "dec": pa.array([Decimal("1.50"), Decimal("7.25"), None], pa.decimal128(20, 2)),
        "at": pa.array([_MOMENT, None, _MOMENT.replace(year=1969)], pa.timestamp("us", "UTC")),
        "flag": pa.array([True, False, None], pa.bool_()),
        "bytes": pa.array([b"", b"\xff" * 20, None], pa.binary()),
        "nest": pa.array([{"a": 1, "b": ["x", None]}, None, {"a": None, "b": []}]),
        "whole": pa.array([Decimal(10**19), None, Decimal(-7)], pa.decimal128(20, 0)),
        "small": pa.array([-128, 127, None], pa.int8()),
    }
)


@dataclass(frozen=True)
class _Written:
    """A table that delta-rs opens anew at each step."""

    where: str

    @property
    def opened(self) -> DeltaTable:
        return DeltaTable(self.where)

    def rows(self, version: int | None = None) -> pa.Table:
        """delta-rs reads more tables in this way than as a data set of Arrow's."""
        opened = DeltaTable(self.where, version=version)
        return pa.table(QueryBuilder().register("t", opened).execute("SELECT * FROM t").read_all())

    def append(self, rows: pa.Table, **how: Any) -> None:
        write_deltalake(self.where, rows, mode="append", **how)

    def compact(self) -> None:
        self.opened.optimize.compact()

    def snapshots(self) -> list[int]:
        """Those that have an entry."""
        entries = (name.removesuffix(".json") for name in names_in(self.log) if name.endswith(".json"))
        return sorted(int(entry) for entry in entries if entry.isdigit())

    @property
    def log(self) -> Path:
        return Path(self.where, "_delta_log")

    def entry(self, version: int) -> Path:
        return self.log / f"{version:020}.json"

    def edit(self, version: int, change: Callable[[Action], None]) -> None:
        """What another writer would have put there."""
        actions = [json.loads(line) for line in self.entry(version).read_bytes().splitlines()]
        for action in actions:
            change(action)
        self.entry(version).write_text("\n".join(map(json.dumps, actions)) + "\n")

    def clean_up(self) -> int:
        """A checkpoint, and no entry before it."""
        table = self.opened
        table.create_checkpoint()
        for version in range(table.version()):
            self.entry(version).unlink()
        return table.version()


def _at(warehouse: Warehouse, path: TablePath) -> _Written:
    return _Written(f"{warehouse.location}/{path.database}/{path.table}")


def _told(made: _Written, more: pa.Table, *, delete: str, **other: Any) -> ForeignTable:
    steps: dict[str, Any] = {
        "rows": made.rows,
        "appends": lambda: made.append(more),
        "moves": made.compact,
        "changes": lambda: made.opened.delete(delete),
        "snapshots": made.snapshots,
    }
    return ForeignTable(**(steps | other))


def _of_several_commits(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _at(warehouse, path)
    made.append(_PLAIN)
    made.append(_PLAIN.slice(1, 2).append_column("more", pa.array([1, 2], pa.int32())), schema_mode="merge")
    made.opened.update(predicate="id = 1", updates={"name": "'changed'"})
    made.opened.merge(
        _PLAIN.slice(4), "s.id = t.id", source_alias="s", target_alias="t"
    ).when_matched_delete().execute()
    made.append(_PLAIN.slice(0, 1), schema_mode="merge")
    made.opened.restore(made.opened.version() - 1)

    def evolves() -> None:
        made.append(_PLAIN.append_column("extra", pa.array(["x"] * 5)).select(["extra", "id"]), schema_mode="merge")

    return _told(made, _PLAIN.append_column("more", pa.nulls(5, pa.int32())), delete="id = 2", evolves=evolves)


def _in_partitions(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _at(warehouse, path)
    made.append(_PLAIN.filter(pc.field("name") != ""), partition_by=["day", "name"])
    made.append(_PLAIN.slice(0, 2))
    return _told(made, _PLAIN.slice(1, 2), delete="name = 'a'")


def _by_instants(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """delta-rs spells them without a zone. Of a flag and a decimal it has spellings of its own, too."""
    made = _at(warehouse, path)
    made.append(_TYPED.select(["id", "at", "flag", "dec"]), partition_by=["at", "flag", "dec"])
    return _told(made, _TYPED.select(["id", "at", "flag", "dec"]).slice(1), delete="id = 2")


def _of_many_types(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _at(warehouse, path)
    schema = _TYPED.schema.set(0, _TYPED.schema.field(0).with_nullable(False))
    made.append(_TYPED.cast(schema))
    return _told(made, _TYPED.cast(schema).slice(0, 1), delete="id = 3")


def _without_statistics(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _at(warehouse, path)
    off = WriterProperties(default_column_properties=ColumnProperties(statistics_enabled="NONE"), max_row_group_size=2)
    made.append(_PLAIN, configuration={"delta.dataSkippingNumIndexedCols": "0"}, writer_properties=off)

    def silent(action: Action) -> None:
        if "add" in action:
            del action["add"]["stats"]

    made.edit(0, silent)
    made.append(_PLAIN.slice(2), writer_properties=off)
    return _told(made, _PLAIN.slice(0, 2), delete="id = 5")


def _with_nan(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """delta-rs leaves NaN out of the bounds. For Spark it is the greatest number, and so a bound."""
    made = _at(warehouse, path)
    rows = _PLAIN.slice(0, 2).select(["id", "value"])
    made.append(rows)
    made.append(rows)

    def bounded(action: Action) -> None:
        if "add" in action:
            told = json.loads(action["add"]["stats"])
            told["maxValues"]["value"] = "NaN"
            action["add"]["stats"] = json.dumps(told)

    made.edit(1, bounded)
    return _told(made, rows, delete="id = 2")


def _behind_a_checkpoint(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """As Spark leaves large ones: each part has some of the actions."""
    made = _at(warehouse, path)
    for start in range(3):
        made.append(_PLAIN.slice(start, 2))
    made.opened.delete("id = 2")
    version = made.clean_up()
    whole = made.log / f"{version:020}.checkpoint.parquet"
    actions = pq.read_table(whole)
    for part in (0, 1):
        name = f"{version:020}.checkpoint.{part + 1:010}.{2:010}.parquet"
        pq.write_table(actions.slice(part * 3, 3 if part == 0 else None), made.log / name)
    whole.unlink()
    hint = {"version": version, "size": actions.num_rows, "parts": 2}
    (made.log / "_last_checkpoint").write_text(json.dumps(hint))
    made.append(_PLAIN.slice(3))
    return _told(made, _PLAIN, delete="id = 1")


def _with_a_feed(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """And with lines in its log that a reader passes over."""
    made = _at(warehouse, path)
    made.append(_PLAIN, configuration={"delta.enableChangeDataFeed": "true"})
    made.opened.update(predicate="id = 3", updates={"name": "'changed'"})
    made.opened.delete("id = 5")
    with made.entry(1).open("a") as entry:
        entry.write("\n" + json.dumps({"txn": {"appId": "of-spark", "version": 7, "lastUpdated": 1}}) + "\n\n")
        entry.write(json.dumps({"unheardOf": {"more": 1}}) + "\n")
    return _told(made, _PLAIN.slice(0, 2), delete="id = 1")


def _empty(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _at(warehouse, path)
    DeltaTable.create(made.where, pa.schema([("id", pa.int64()), ("day", pa.date32())]), partition_by=["day"])
    return ForeignTable(
        rows=made.rows, appends=lambda: made.append(_PLAIN.select(["id", "day"])), snapshots=made.snapshots
    )


def _with_a_constraint(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _at(warehouse, path)
    made.append(_PLAIN)
    made.opened.alter.add_constraint({"positive": "id > 0 OR id IS NULL"})
    return _told(made, _PLAIN, delete="id = 2", refuses=(APPEND, OVERWRITE, ORPHANS))


def _append_only(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _at(warehouse, path)
    made.append(_PLAIN, configuration={"delta.appendOnly": "true"})
    return ForeignTable(
        rows=made.rows, appends=lambda: made.append(_PLAIN), snapshots=made.snapshots, refuses=(OVERWRITE,)
    )


def _with_mapped_columns(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """As Spark does it, which delta-rs reads and does not write."""
    made = _at(warehouse, path)
    made.append(_PLAIN.select(["id", "name"]).rename_columns(["c1", "c2"]))

    def mapped(action: Action) -> None:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            for number, (field, name) in enumerate(zip(schema["fields"], ("id", "name"), strict=True), 1):
                field["metadata"] = {
                    "delta.columnMapping.id": number,
                    "delta.columnMapping.physicalName": field["name"],
                }
                field["name"] = name
            action["metaData"]["schemaString"] = json.dumps(schema)
            more = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
            action["metaData"]["configuration"] |= more

    made.edit(0, mapped)
    return ForeignTable(
        rows=made.rows,
        refuses=(READ, APPEND, OVERWRITE, ADD_COLUMN, CHANGES, ORPHANS),
    )


def _with_deletion_vectors(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """As Spark deletes in place: the vector, in the log itself, has the first two rows."""
    made = _at(warehouse, path)
    made.append(_PLAIN)

    def deleted(action: Action) -> None:
        if "add" in action:
            action["add"]["deletionVector"] = {
                "storageType": "i",
                "pathOrInlineDv": _FIRST_TWO,
                "sizeInBytes": 36,
                "cardinality": 2,
            }
        if "protocol" in action:
            named = ["deletionVectors"]
            action["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": named,
                "writerFeatures": named,
            }

    made.edit(0, deleted)
    return ForeignTable(rows=made.rows, refuses=(READ, OVERWRITE, CHANGES))


_FIRST_TWO = "^Bg9^0rr910000000000iXQKl0rr91000315c8Xg00031"

TABLES: Mapping[str, Callable[[Warehouse, TablePath], ForeignTable]] = {
    "of several commits, with a column that was added, an update, a merge and a restore": _of_several_commits,
    "in partitions by days and texts": _in_partitions,
    "in partitions by instants, flags and decimals": _by_instants,
    "of many types": _of_many_types,
    "without statistics": _without_statistics,
    "with NaN that is in some bounds, and in others not": _with_nan,
    "behind a checkpoint of two parts": _behind_a_checkpoint,
    "with a change data feed": _with_a_feed,
    "without rows": _empty,
    "with a constraint": _with_a_constraint,
    "that takes appends alone": _append_only,
    "with mapped columns": _with_mapped_columns,
    "with deletion vectors": _with_deletion_vectors,
}
