"""What a file's moments are compared with is made one of the column's unit first, and so is cut."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_moments_between_moments[ms]"
SAYS = "rows of v < datetime.datetime("


class CuttingSource(RicherSource):
    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        match leaf:
            case spi.Leaf(column, spi.Op.LT, datetime() as value) if value.tzinfo is None:
                moments = self.column(entry, column)
                if not pa.types.is_timestamp(moments.type) or moments.null_count == len(moments):
                    return True
                cut = pa.array([value]).cast(moments.type, safe=False)[0].as_py()
                return min(each for each in moments.to_pylist() if each is not None) < cut  # type: ignore[no-any-return]
        return super().may(entry, leaf)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("cuts-moments-to-the-unit", source=CuttingSource)
