"""Bounds are kept by the path of a column, as files of Parquet name it: a field of a struct has that of a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_column_with_the_path_of_a_field"
SAYS = "rows were read by the filter a.b = 2"


def paths(columns: pa.Table | pa.StructArray, names: Sequence[str], before: str = "") -> Iterator[tuple[str, Any]]:
    """Columns that have no fields, and their paths. Of two with one path the first is taken."""
    for at, name in enumerate(names):
        column = columns.column(at).combine_chunks() if isinstance(columns, pa.Table) else columns.field(at)
        if pa.types.is_struct(column.type):
            yield from paths(column, column.type.names, f"{before}{name}.")
        else:
            yield f"{before}{name}", column


class SkippingSource(Source):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        equal = [leaf for leaf in filters if isinstance(leaf, spi.Leaf) and leaf.op is spi.Op.EQ]
        return [entry for entry in snapshot.files() if all(self._may(entry, leaf) for leaf in equal)], filters

    def of_path(self, rows: pa.Table, wanted: str) -> Any:
        return next((each for path, each in paths(rows, rows.column_names) if path == wanted), None)

    def _may(self, entry: FileEntry, leaf: spi.Leaf) -> bool:
        with pa.ipc.open_file(str(self.table.location / entry.path)) as file:
            rows = file.read_all()
        column = self.of_path(rows, leaf.column)
        if column is None or not pa.types.is_integer(column.type):
            return True
        bounds = pc.min_max(column).as_py()
        return bounds["min"] is not None and bool(bounds["min"] <= leaf.value <= bounds["max"])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    features = {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL}
    return CrookedPlugin("bounds-columns-by-their-paths", features, source=SkippingSource)
