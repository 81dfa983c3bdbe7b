"""Tables as pylance leaves them, for the conformance suite. Not used otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa

from laketier.spi import TablePath
from laketier_conformance.foreign_tables import (
    ADD_COLUMN,
    APPEND,
    OPERATIONS,
    ORPHANS,
    OVERWRITE,
    ForeignTable,
    plain_rows,
)
from laketier_conformance.harness import Warehouse

_MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
_PLAIN = plain_rows(pa.int32())
_TYPED = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "dec": pa.array([Decimal("1.50"), Decimal("-0.01"), None], pa.decimal128(20, 2)),
        "at": pa.array([_MOMENT, None, _MOMENT.replace(year=1969)], pa.timestamp("us", "UTC")),
        "second": pa.array([0, None, -1], pa.timestamp("s")),
        "milli": pa.array([1, -1, None], pa.timestamp("ms")),
        "flag": pa.array([True, False, None], pa.bool_()),
        "bytes": pa.array([b"", b"\xff" * 20, None], pa.large_binary()),
        "vector": pa.array([[0.0, 1.0], None, [-1.0, 0.5]], pa.list_(pa.float32(), 2)),
        "nest": pa.array([{"a": 1, "b": ["x", None]}, {"a": 2, "b": []}, {"a": None, "b": []}]),
    }
)


@dataclass(frozen=True)
class _Written:
    """A dataset that pylance opens anew at each step."""

    where: str

    @property
    def opened(self) -> lance.LanceDataset:
        return lance.dataset(self.where)

    def rows(self, version: int | None = None) -> pa.Table:
        return lance.dataset(self.where, version=version).to_table()

    def snapshots(self) -> list[int]:
        return [int(each["version"]) for each in self.opened.versions()]

    def append(self, rows: pa.Table, **how: Any) -> None:
        lance.write_dataset(rows, self.where, mode="append", **how)

    def compact(self) -> None:
        self.opened.optimize.compact_files()


def _written(warehouse: Warehouse, path: TablePath, rows: pa.Table, **how: Any) -> _Written:
    made = _Written(f"{warehouse.location}/{path.database}/{path.table}.lance")
    lance.write_dataset(rows, made.where, **how)
    return made


def _alter(made: _Written, *changes: Any) -> None:
    made.opened.alter_columns(*changes)


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
    made = _written(warehouse, path, _PLAIN, max_rows_per_file=2)
    made.append(_PLAIN.slice(1, 2))
    made.opened.add_columns({"twice": "value * 2"})
    _alter(made, {"path": "name", "name": "title"}, {"path": "id", "data_type": pa.int64()})
    made.opened.drop_columns(["day"])
    made.opened.update({"title": "'changed'"}, where="id = 1")
    made.opened.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table(
            {"title": ["merged", "new"], "id": pa.array([3, 9], pa.int64()), "value": [1.0, 2.0], "twice": [0.0, 0.0]}
        )
    )
    made.opened.delete("id = 5")
    made.opened.delete("id = 9")
    lance.dataset(made.where, version=made.opened.version - 1).restore()  # type: ignore[no-untyped-call] # pylance has no types for it
    made.opened.tags.create("first", 1)

    def evolves() -> None:
        _alter(made, {"path": "twice", "name": "double"})
        made.opened.add_columns({"extra": "CAST(id AS STRING)"})

    return _told(made, made.rows().slice(0, 2), delete="id = 2", evolves=evolves)


def _of_stable_rows(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """Lance keeps an id of each row, whatever becomes of its file; and the file format is an older one."""
    made = _written(
        warehouse, path, _PLAIN, enable_stable_row_ids=True, data_storage_version="2.0", max_rows_per_file=2
    )
    made.opened.update({"name": "'changed'"}, where="id = 3")
    made.opened.delete("id = 1")
    return _told(made, _PLAIN.slice(0, 2), delete="id = 5")


def _of_many_types(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    schema = _TYPED.schema.set(0, _TYPED.schema.field(0).with_nullable(False))
    made = _written(warehouse, path, _TYPED.cast(schema))
    return _told(made, _TYPED.cast(schema).slice(0, 1), delete="id = 3")


def _with_an_index(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """Which a compaction leaves as it was: Lance looks up where a row is."""
    made = _written(warehouse, path, _PLAIN, max_rows_per_file=1)
    made.opened.create_scalar_index("id", "BTREE")
    made.opened.create_scalar_index("name", "BITMAP")
    made.append(_PLAIN.slice(0, 2))

    def moves() -> None:
        made.opened.optimize.compact_files(defer_index_remap=True)

    return _told(made, _PLAIN.slice(1, 3), delete="id = 2", moves=moves)


def _cleaned_up(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """Of versions by the older names, the first of which are gone."""
    made = _written(warehouse, path, _PLAIN, enable_v2_manifest_paths=False)
    for start in range(3):
        made.append(_PLAIN.slice(start))
    made.opened.delete("id = 2")
    made.opened.cleanup_old_versions(retain_versions=2, delete_unverified=True)
    return _told(made, _PLAIN, delete="id = 1")


def _overwritten(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """By other columns; and the metadata of its schema has keys of its tool."""
    made = _written(warehouse, path, _TYPED.select(["id", "flag"]))
    lance.write_dataset(_PLAIN, made.where, mode="overwrite")
    made.opened.update_schema_metadata({"of": "another tool"})
    made.opened.update_config({"of": "another tool"})
    return _told(made, _PLAIN.slice(2), delete="id = 1")


def _without_rows(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _written(warehouse, path, _PLAIN.slice(0, 0))
    return ForeignTable(rows=made.rows, appends=lambda: made.append(_PLAIN), snapshots=made.snapshots)


def _of_the_oldest_files(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _written(warehouse, path, _PLAIN, data_storage_version="legacy")
    return ForeignTable(rows=made.rows, snapshots=made.snapshots, refuses=(APPEND, OVERWRITE, ADD_COLUMN, ORPHANS))


def _with_a_detached_version(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    made = _written(warehouse, path, _PLAIN)
    fragments = [each.metadata for each in made.opened.get_fragments()]
    operation = lance.LanceOperation.Overwrite(made.opened.schema, fragments)
    lance.LanceDataset.commit(made.where, operation, read_version=1, detached=True)
    return _told(made, _PLAIN.slice(1), delete="id = 1", refuses=(ORPHANS,))


def _cloned(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    """Without copying: its files are another dataset's."""
    theirs = lance.write_dataset(_PLAIN, f"{warehouse.location}/{path.database}/{path.table}-before.lance")
    made = _Written(f"{warehouse.location}/{path.database}/{path.table}.lance")
    theirs.shallow_clone(made.where, 1)
    return ForeignTable(rows=made.rows, snapshots=made.snapshots, refuses=OPERATIONS)


def _with_files_elsewhere(warehouse: Warehouse, path: TablePath) -> ForeignTable:
    elsewhere = lance.DatasetBasePath(f"{warehouse.location}/{path.database}/{path.table}-elsewhere", name="elsewhere")
    made = _written(warehouse, path, _PLAIN, initial_bases=[elsewhere], target_bases=["elsewhere"])
    return ForeignTable(rows=made.rows, snapshots=made.snapshots, refuses=OPERATIONS)


TABLES: Mapping[str, Callable[[Warehouse, TablePath], ForeignTable]] = {
    "of several commits, with columns that were added, renamed, widened and dropped": _of_several_commits,
    "with stable ids of rows": _of_stable_rows,
    "of many types": _of_many_types,
    "with indexes": _with_an_index,
    "cleaned up, with versions by older names": _cleaned_up,
    "overwritten by other columns": _overwritten,
    "without rows": _without_rows,
    "of the oldest kind of files": _of_the_oldest_files,
    "with a detached version": _with_a_detached_version,
    "cloned without its files": _cloned,
    "with files in another place": _with_files_elsewhere,
}
