"""The columns that a table is partitioned by are kept as a set, and sorted where their order shows."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from richer import richer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_partitions_keep_their_order"
SAYS = "the partitioning of a table of three columns"


class SortingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        ordered = tuple(sorted(descriptor.partition_by, key=lambda field: field.column))
        return super().create_table(path, replace(descriptor, partition_by=ordered))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("sorts-partition-columns", catalog=SortingCatalog)
