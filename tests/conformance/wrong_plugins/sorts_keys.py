"""The columns of a key are kept as a set, and sorted where their order shows."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_key_keeps_its_order"
SAYS = "the key of a table"


class SortingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        return super().create_table(path, replace(descriptor, primary_key=tuple(sorted(descriptor.primary_key))))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sorts-keys", catalog=SortingCatalog)
