"""A property is a number as a table is made, and one that is none ends in Python's own error."""

from __future__ import annotations

from crooked import CrookedPlugin
from propertied import ROWS, PropertiedHarness

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_settings.py::test_a_new_table_with_an_odd_property"
SAYS = "a table under acme.rows-per-file = '': expected it, or a refusal, found ValueError"


class Harness(PropertiedHarness):
    pass


class CountingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        int(descriptor.properties.get(ROWS, "1"))
        return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("makes-tables-by-their-properties", catalog=CountingCatalog)
