"""Properties have no case in the author's catalog, so their names become small."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_properties_stay_as_they_are"
SAYS = "properties whose names differ by case"


class LoweringCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        lower = {name.lower(): value for name, value in descriptor.properties.items()}
        return super().create_table(path, replace(descriptor, properties=lower))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lowers-names-of-properties", catalog=LoweringCatalog)
