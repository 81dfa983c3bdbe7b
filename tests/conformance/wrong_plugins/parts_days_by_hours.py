"""Whatever is of time has years, months, days and hours. A day is a number, and was taken for one of hours."""

from __future__ import annotations

from unittest.mock import patch

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile import partitioning
from laketier_localfile.plugin import LocalFilePlugin

CAUGHT_BY = "test_layout.py::test_transforms_of_time[Transform.HOUR]"
SAYS = "a table that is partitioned by the hours of a date, which was not refused"


class PartingPlugin(LocalFilePlugin):
    identifier = "parts-days-by-hours"

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage = super().create_storage(config)
        right = storage.catalog

        def catalog() -> spi.LakeCatalog:
            own = right()
            create = own.create_table

            def create_table(path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
                with patch.object(partitioning, "takes", lambda kind, unit: True):
                    return create(path, descriptor)

            object.__setattr__(own, "create_table", create_table)
            return own

        object.__setattr__(storage, "catalog", catalog)
        return storage


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return PartingPlugin()
