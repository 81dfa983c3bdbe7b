"""A changed property takes the place of all that there were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_properties.py::test_a_property_is_changed_alone"
SAYS = "the properties that a change returned"


class Alone(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        applied = super()._apply(table, changes)
        named = {each.name for each in changes if isinstance(each, spi.SetProperty)}
        if not named:
            return applied
        return replace(applied, properties={name: value for name, value in applied.properties.items() if name in named})


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sets-all-properties", catalog=Alone)
