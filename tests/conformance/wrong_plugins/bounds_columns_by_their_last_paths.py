"""Bounds are kept by the path of a column, as files of Parquet name it: of a column and a field with one path, the one
that comes last is kept."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from bounds_columns_by_their_paths import SkippingSource, paths
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_column_with_the_path_of_a_field"
SAYS = "rows were read by the filter a.b = 2: expected the ids [1] (all rows, filtered by pyarrow), found []"


class LastSource(SkippingSource):
    def _may(self, entry: FileEntry, leaf: spi.Leaf) -> bool:
        with pa.ipc.open_file(str(self.table.location / entry.path)) as file:
            rows = file.read_all()
        column = dict(paths(rows, rows.column_names)).get(leaf.column)
        if column is None or not pa.types.is_integer(column.type):
            return True
        bounds = pc.min_max(column).as_py()
        return bounds["min"] is not None and bool(bounds["min"] <= leaf.value <= bounds["max"])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    features = {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL}
    return CrookedPlugin("bounds-columns-by-their-last-paths", features, source=LastSource)
