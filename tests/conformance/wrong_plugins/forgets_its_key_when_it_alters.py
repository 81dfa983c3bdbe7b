"""A wider type or a changed property writes the table's description anew, from its columns and properties. The primary
key is in neither, and keys come twice from then on."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_change_leaves_the_rest_as_it_is[keyed]"
SAYS = "the primary_key of a table after widen-type"


class ForgettingCatalog(kit.ManifestCatalog):
    def _apply(self, table: spi.TableInfo, changes: Sequence[spi.SchemaChange]) -> spi.TableDescriptor:
        found = super()._apply(table, changes)
        if any(isinstance(change, spi.AddColumn) for change in changes):
            return found
        return spi.TableDescriptor(found.schema, properties=found.properties, comment=found.comment)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-its-key-when-it-alters", catalog=ForgettingCatalog)
