"""A property that is set to an empty text is removed: Python takes the two for alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_properties.py::test_a_property_is_changed_alone"
SAYS = "the properties that a change returned: expected {'acme.not': 'stays', 'acme.note': ''"


class EmptyCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        return super().alter_table(path, [_emptied(change) for change in changes])


def _emptied(change: spi.SchemaChange) -> spi.SchemaChange:
    return replace(change, value=change.value or None) if isinstance(change, spi.SetProperty) else change


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("removes-what-is-set-to-nothing", catalog=EmptyCatalog)
