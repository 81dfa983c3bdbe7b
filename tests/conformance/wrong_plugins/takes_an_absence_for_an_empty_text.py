"""Whoever saw an empty property changes one that is not there: an absence is read as an empty text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_properties.py::test_a_property_that_another_one_changed_is_left"
SAYS = "a property that is not there is changed by who saw an empty one: expected TableChanged"


class AbsentCatalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        there = table.descriptor.properties

        def seen(change: spi.SchemaChange) -> spi.SchemaChange:
            if not isinstance(change, spi.SetProperty) or change.before or there.get(change.name):
                return change
            return replace(change, before=there.get(change.name))

        return super()._apply(table, [seen(change) for change in changes])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-an-absence-for-an-empty-text", catalog=AbsentCatalog)
