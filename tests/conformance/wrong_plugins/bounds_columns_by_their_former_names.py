"""Bounds are kept by the names that a file's columns had. Of a name that went to another column they are those of the
first one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, FeatherTable, Source

from laketier import kit, spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot, whole_file
from laketier.registry import hookimpl

CAUGHT_BY = "test_reshape.py::test_filters_after_the_old_name_is_used_again"
SAYS = "rows were read by the filter word = 'x'"
RENAMING = {**FEATURES, spi.Feature.RENAME_COLUMN: spi.FULL, spi.Feature.FILTER_PUSHDOWN: spi.FULL}


class RenamingTable(FeatherTable):
    features: ClassVar = RENAMING


@dataclass(frozen=True)
class Named:
    """A file, and the names that the snapshot has for its columns, in their order."""

    path: str
    names: tuple[str, ...]


class RenamingSource(Source):
    split_payload: ClassVar[type] = Named

    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        equal = [leaf for leaf in filters if isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.EQ]
        return [entry for entry in snapshot.files() if all(self._may(entry, leaf) for leaf in equal)], filters

    def _may(self, entry: FileEntry, leaf: spi.Leaf) -> bool:
        with pa.ipc.open_file(str(self.table.location / entry.path)) as file:
            rows = file.read_all()
        if leaf.column not in rows.column_names or not isinstance(leaf.value, str | int):
            return True
        column = rows[leaf.column]
        bounds = pc.min_max(column).as_py() if pa.types.is_string(column.type) else {"min": None}
        if not isinstance(bounds["min"], str) or not isinstance(leaf.value, str):
            return True
        return bool(bounds["min"] <= leaf.value <= bounds["max"])

    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        there = len(snapshot.written_with(entry))
        return whole_file(index, entry, Named(entry.path, tuple(snapshot.schema.names[:there])))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = str(self.table.location / self.table.layout.data_path(split.payload.path, where="a split"))
        with kit.naming_damage(path), pa.ipc.open_file(path) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                named = batch.rename_columns(list(split.payload.names))
                yield kit.conform(named.select([n for n in schema.names if n in named.schema.names]), schema)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin(
        "bounds-columns-by-their-former-names", features=RENAMING, table=RenamingTable, source=RenamingSource
    )
