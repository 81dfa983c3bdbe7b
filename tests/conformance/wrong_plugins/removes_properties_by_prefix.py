"""A property that is removed takes those with it whose names begin so: its author's are groups, with dots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_properties.py::test_a_property_is_changed_alone"
SAYS = "the properties that a change returned: expected {'acme.not': 'stays', 'acme.note.more': 'stays'"


class PrefixCatalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        altered = super()._apply(table, changes)
        gone = tuple(each.name for each in changes if isinstance(each, spi.SetProperty) and each.value is None)
        left = {name: value for name, value in altered.properties.items() if not name.startswith(gone)}
        return replace(altered, properties=left)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("removes-properties-by-prefix", catalog=PrefixCatalog)
