"""Values of properties that look like truths or numbers are kept as such, and told as their type spells them."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_properties_stay_as_they_are"
SAYS = "properties of a table that are kept"


def _read(value: str) -> str:
    if value.lower() in ("true", "false"):
        return value.lower()
    return str(int(value)) if value.isdecimal() else value


class ReadingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        values = {name: _read(value) for name, value in descriptor.properties.items()}
        return super().create_table(path, replace(descriptor, properties=values))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-values-of-properties", catalog=ReadingCatalog)
