"""A property is cut at 4,000 letters, where Hive's metastore ends."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_properties_stay_as_they_are"
SAYS = "letters is kept whole, or refused: found 4000 letters of it"


class CuttingCatalog(kit.ManifestCatalog):
    def _checked(self, descriptor: spi.TableDescriptor) -> spi.TableDescriptor:
        checked = super()._checked(descriptor)
        return replace(checked, properties={name: value[:4_000] for name, value in checked.properties.items()})


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cuts-properties", catalog=CuttingCatalog)
