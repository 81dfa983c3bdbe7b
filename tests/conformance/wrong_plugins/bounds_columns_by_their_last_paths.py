"""Bounds are kept by the path of a column, as files of Parquet name it: of a column and a field with one path, the one
that comes last is kept."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from bounds_columns_by_their_paths import SkippingSource, paths
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_column_with_the_path_of_a_field"
SAYS = "rows were read by the filter a.b = 2: expected the ids [1] (all rows, filtered by pyarrow), found []"


class LastSource(SkippingSource):
    def of_path(self, rows: pa.Table, wanted: str) -> Any:
        return dict(paths(rows, rows.column_names)).get(wanted)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    features = {**FEATURES, spi.Feature.FILTER_PUSHDOWN: spi.FULL}
    return CrookedPlugin("bounds-columns-by-their-last-paths", features, source=LastSource)
