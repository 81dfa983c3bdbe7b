"""The columns of a key are kept as a set, which a change of the columns reads back, sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_key_keeps_its_order"
SAYS = "the key of a table, as it is told by a change that adds a column"


class ResortingCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        told = super().alter_table(path, changes)
        key = tuple(sorted(told.descriptor.primary_key))
        return replace(told, descriptor=replace(told.descriptor, primary_key=key))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sorts-keys-as-columns-come", catalog=ResortingCatalog)
