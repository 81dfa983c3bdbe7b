"""A new table's properties are looked at once it is there: one that is refused is left, and is found by whoever asks
again."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES
from propertied import ROWS, PropertiedHarness

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_settings.py::test_a_new_table_with_an_odd_property"
SAYS = "Expected that it is not there, and it is listed"


class Harness(PropertiedHarness):
    pass


class LateCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        made = super().create_table(path, descriptor)
        rows = descriptor.properties.get(ROWS, "1")
        if not rows.isdecimal():
            raise spi.ConfigError(
                f"the property {ROWS} is {rows!r}, which is no number", fix="Write one, or leave it out."
            )
        return made


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("makes-what-it-refuses", FEATURES, catalog=LateCatalog)
