"""A property gets its new value, whatever it was: of two that change it at once, one loses its change silently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_properties.py::test_a_property_that_another_one_changed_is_left"
SAYS = "a property is changed by who saw another value"


class Unseen(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        now = table.descriptor.properties
        seen = [
            replace(each, before=now.get(each.name)) if isinstance(each, spi.SetProperty) else each for each in changes
        ]
        return super()._apply(table, seen)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sets-what-it-did-not-see", catalog=Unseen)
