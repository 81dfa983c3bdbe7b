"""A property that is removed becomes an empty text, as the catalog below has no way to remove one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_properties.py::test_a_property_is_changed_alone"
SAYS = "the properties that a change returned"


class EmptyingCatalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        altered = super()._apply(table, changes)
        gone = {each.name: "" for each in changes if isinstance(each, spi.SetProperty) and each.value is None}
        return replace(altered, properties={**altered.properties, **gone})


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("empties-properties", catalog=EmptyingCatalog)
