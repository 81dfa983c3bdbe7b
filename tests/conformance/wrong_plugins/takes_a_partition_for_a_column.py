"""A partition by `truncate(1, key)` is named `key_trunc`. A column of that name is not refused, and whoever filters by
it is given the files of the partition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.table import LocalFileTable

CAUGHT_BY = "test_layout.py::test_a_layout_by_odd_columns"
SAYS = "rows were read by the filter key_trunc = 'a': expected the ids [1, 2] (all rows, filtered by pyarrow), found"


class LenientTable(LocalFileTable):
    @classmethod
    def check_descriptor(cls, descriptor: spi.TableDescriptor) -> None:
        try:
            super().check_descriptor(descriptor)
        except spi.ConfigError as error:
            if "has the name of the folders of a partition" not in str(error):
                raise


class LenientPlugin(LocalFilePlugin):
    identifier = "takes-a-partition-for-a-column"

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        right = storage.catalog
        object.__setattr__(storage, "catalog", lambda: replace(right(), table_type=LenientTable))
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return LenientPlugin()
