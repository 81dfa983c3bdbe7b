"""Tables as pyiceberg and Spark leave them, for the conformance suite. Not used otherwise.

What pyiceberg can't write, such as deletes by positions and defaults of columns, is put there as Spark does it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import LongType, StringType

from laketier.spi import TablePath
from laketier_conformance.foreign_tables import (
    ADD_COLUMN,
    APPEND,
    CHANGES,
    LOAD,
    ORPHANS,
    OVERWRITE,
    READ,
    ForeignTable,
    plain_rows,
)
from laketier_conformance.harness import Warehouse
from laketier_iceberg.connection import EMBEDDED_FILE, EMBEDDED_NAME
from laketier_iceberg.foreign_deletes import add_deletes

_MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
_PLAIN = plain_rows(pa.int32())
_TYPED = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "dec": pa.array([Decimal("1.50"), Decimal("-0.01"), None], pa.decimal128(20, 2)),
        "at": pa.array([_MOMENT, None, _MOMENT.replace(year=1969)], pa.timestamp("us", "UTC")),
        "local": pa.array([None, datetime(1969, 1, 1, 1), datetime(2026, 1, 2)], pa.timestamp("us")),
        "clock": pa.array([time(0, 0), None, time(23, 59, 59, 999999)], pa.time64("us")),
        "flag": pa.array([True, False, None], pa.bool_()),
        "bytes": pa.array([b"", b"\xff" * 20, None], pa.binary()),
        "fixed": pa.array([b"\x00" * 4, None, b"\xff" * 4], pa.binary(4)),
        "nest": pa.array([{"a": 1, "b": ["x", None]}, None, {"a": None, "b": []}]),
    },
    schema=None,
)


@dataclass(frozen=True)
class _Written:
    """A table that pyiceberg loads anew at each step."""

    catalog: SqlCatalog
    name: tuple[str, str]

    @classmethod
    def of(cls, warehouse: Warehouse, path: TablePath, schema: pa.Schema, **how: Any) -> _Written:
        """As a catalog of pyiceberg's own makes it, which knows nothing of laketier."""
        Path(warehouse.location).mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{quote(f'{warehouse.location}/{EMBEDDED_FILE}')}"
        catalog = SqlCatalog(EMBEDDED_NAME, uri=uri, warehouse=warehouse.location)
        catalog.create_namespace_if_not_exists(path.database)
        name = (path.database, path.table)
        catalog.create_table(name, schema, location=f"{warehouse.location}/{path.database}/{path.table}", **how)
        return cls(catalog, name)

    @property
    def loaded(self) -> Table:
        return self.catalog.load_table(self.name)

    def rows(self, snapshot_id: int | None = None) -> pa.Table:
        return self.loaded.scan(snapshot_id=snapshot_id).to_arrow()

    def snapshots(self) -> list[int]:
        return [each.snapshot_id for each in self.loaded.snapshots()]

    def files(self) -> list[str]:
        return [str(path).removeprefix("file://") for path in self.loaded.inspect.data_files()["file_path"].to_pylist()]

    def append(self, rows: pa.Table) -> None:
        self.loaded.append(rows)

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        """What another writer would have put into the table's metadata."""
        file = Path(self.loaded.metadata_location.removeprefix("file://"))
        document = json.loads(file.read_bytes())
        change(document)
        file.write_text(json.dumps(document))


def _told(made: _Written, more: pa.Table, *, delete: str, **other: Any) -> ForeignTable:
    steps: dict[str, Any] = {
        "rows": made.rows,
        "appends": lambda: made.append(more),
        "changes": lambda: made.loaded.delete(delete),
        "snapshots": made.snapshots,
    }
    return ForeignTable(**(steps | other))


def _of_several_commits(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _Written.of(warehouse, path, _PLAIN.schema)
    made.append(_PLAIN)
    with made.loaded.update_schema() as schema:
        schema.rename_column("name", "title")
        schema.update_column("id", LongType())
        schema.move_first("day")
    with made.loaded.update_schema() as schema:
        schema.add_column("name", LongType())
    now = made.rows().slice(0, 2)
    made.append(now)
    made.loaded.overwrite(now.slice(0, 1), overwrite_filter="id = 3")
    made.loaded.delete("id = 5")
    made.loaded.manage_snapshots().create_tag(made.snapshots()[0], "first").commit()

    def evolves() -> None:
        with made.loaded.update_schema() as schema:
            schema.add_column("extra", StringType())
            schema.move_after("title", "value")
        made.append(made.rows().slice(0, 1))

    return _told(made, now, delete="id = 2", evolves=evolves)


def _in_partitions(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """By two specs, one after the other, beside a file that is older than both: its rows differ in each column."""
    made = _Written.of(warehouse, path, _PLAIN.schema)
    made.append(_PLAIN.slice(3))
    with made.loaded.update_spec() as spec:
        spec.add_field("name", IdentityTransform(), "name")
        spec.add_field("day", IdentityTransform(), "day")
    made.append(_PLAIN)
    with made.loaded.update_spec() as spec:
        spec.remove_field("day")
        spec.add_field("id", BucketTransform(4), "id_bucket")
    made.append(_PLAIN.slice(1, 2))
    return _told(made, _PLAIN.slice(0, 2), delete="name = 'a'")


def _by_transforms(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    rows = _TYPED.select(["id", "at", "bytes"])
    made = _Written.of(warehouse, path, rows.schema)
    with made.loaded.update_spec() as spec:
        spec.add_field("at", DayTransform(), "at_day")
        spec.add_field("id", TruncateTransform(2), "id_trunc")
    made.append(rows)
    return _told(made, rows.slice(1), delete="id = 2")


def _of_many_types(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    schema = _TYPED.schema.set(0, _TYPED.schema.field(0).with_nullable(False))
    made = _Written.of(warehouse, path, schema)
    made.append(_TYPED.cast(schema))
    return _told(made, _TYPED.cast(schema).slice(0, 1), delete="id = 3")


def _without_statistics(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """Its metadata is compressed, its manifests are merged, and its files are in folders of their own."""
    properties = {
        "write.metadata.metrics.default": "none",
        "write.metadata.compression-codec": "gzip",
        "write.parquet.row-group-limit": "2",
        "commit.manifest-merge.enabled": "true",
        "commit.manifest.min-count-to-merge": "2",
        "write.data.path": f"{warehouse.location}/{path.database}/{path.table}/of/rows",
        "write.metadata.path": f"{warehouse.location}/{path.database}/{path.table}/of/metadata",
    }
    made = _Written.of(warehouse, path, _PLAIN.schema, properties=properties)
    for start in range(3):
        made.append(_PLAIN.slice(start))
    return _told(made, _PLAIN.slice(0, 2), delete="id = 5")


def _of_files_that_lay_there(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """Their columns have no ids, one name of which the table has changed since."""
    made = _Written.of(warehouse, path, _PLAIN.schema)
    file = Path(warehouse.location, path.database, path.table, "data", f"{uuid.uuid4().hex}.parquet")
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(_PLAIN.select(["day", "id", "name"]), file)
    made.loaded.add_files([str(file)])
    with made.loaded.update_schema() as schema:
        schema.rename_column("name", "title")
    return _told(made, _PLAIN.rename_columns(["title", "id", "value", "day"]), delete="id = 3")


def _with_deletes_by_position(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _Written.of(warehouse, path, _PLAIN.schema)
    for start in range(2):
        made.append(_PLAIN.slice(start))
    files = [task.file.file_path for task in made.loaded.scan().plan_files()]
    places: dict[str, list[Any]] = {"file_path": [files[0], files[0], files[1]], "pos": [0, 2, 1]}
    add_deletes(made.loaded, DataFileContent.POSITION_DELETES, places)
    return _told(made, _PLAIN, delete="id = 5")


def _with_deletes_by_value(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """As Flink deletes, which pyiceberg can't read."""
    made = _Written.of(warehouse, path, _PLAIN.schema)
    made.append(_PLAIN)
    add_deletes(made.loaded, DataFileContent.EQUALITY_DELETES, {"id": pa.array([2], pa.int32())}, [2])
    [first] = made.files()

    def rows(_: int | None = None) -> pa.Table:
        """Each file's, the first one's without the row that is deleted."""
        names = [column.name for column in made.loaded.schema().fields]
        parts = [pq.ParquetFile(path).read() for path in made.files() if path != first]
        if first in made.files():
            parts.append(pa.concat_tables([_PLAIN.slice(0, 1), _PLAIN.slice(2)]))
        whole = pa.concat_tables([_PLAIN.slice(0, 0), *parts], promote_options="default")
        for name in names:
            if name not in whole.schema.names:
                whole = whole.append_column(name, pa.nulls(len(whole), pa.int64()))
        return whole.select(names)

    return ForeignTable(rows=rows, refuses=(READ,))


def _without_rows(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _Written.of(warehouse, path, _PLAIN.schema)
    return ForeignTable(rows=made.rows, appends=lambda: made.append(_PLAIN), snapshots=made.snapshots)


def _of_version_one(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _Written.of(warehouse, path, _PLAIN.schema, properties={"format-version": "1"})
    made.append(_PLAIN)
    made.append(_PLAIN.slice(2))
    return ForeignTable(rows=made.rows, snapshots=made.snapshots, refuses=(APPEND, OVERWRITE, CHANGES, ORPHANS))


def _of_version_three(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """With a column whose rows have a default in files that were written before it."""
    made = _Written.of(warehouse, path, _PLAIN.schema)
    made.append(_PLAIN)

    def newer(document: dict[str, Any]) -> None:
        document |= {"format-version": 3, "next-row-id": 0}
        column = {"id": 9, "name": "more", "type": "int", "required": False, "initial-default": 7}
        (schema,) = document["schemas"]
        document["schemas"].append({**schema, "schema-id": 1, "fields": [*schema["fields"], column]})
        document |= {"current-schema-id": 1, "last-column-id": 9}

    made.edit(newer)
    return ForeignTable(rows=made.rows, refuses=(APPEND, OVERWRITE, ADD_COLUMN, ORPHANS))


def _of_a_version_to_come(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """Which pyiceberg can't read either."""
    made = _Written.of(warehouse, path, _PLAIN.schema)
    made.append(_PLAIN)
    made.edit(lambda document: document.update({"format-version": 4}))
    return ForeignTable(rows=lambda: _PLAIN, refuses=LOAD)


TABLES: Mapping[str, Callable[[Warehouse, TablePath], ForeignTable]] = {
    "of several commits, whose columns were renamed, widened and moved": _of_several_commits,
    "in partitions by two specs": _in_partitions,
    "in partitions by days and cut numbers": _by_transforms,
    "of many types": _of_many_types,
    "without statistics, in folders of its own": _without_statistics,
    "of files that lay there": _of_files_that_lay_there,
    "with deletes by position": _with_deletes_by_position,
    "with deletes by value": _with_deletes_by_value,
    "without rows": _without_rows,
    "of version 1": _of_version_one,
    "of version 3, with a default": _of_version_three,
    "of a version that is not there yet": _of_a_version_to_come,
}
