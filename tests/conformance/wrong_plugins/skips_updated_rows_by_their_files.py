"""Which files may have a value is kept by the place of a file in the list. Who changes rows puts a new one there."""

from __future__ import annotations

from typing import ClassVar

from crooked import CrookedPlugin
from richer import RicherSource, richer
from updating import UpdatingHarness

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_updates.py::test_rows_that_others_updated_are_the_new_ones"
SAYS = "the rows where name = 'changed by others', of a table of which others updated rows"


class Harness(UpdatingHarness):
    pass


class PlacedSource(RicherSource):
    """It knows the names of a table's first files, and asks them of those that are in their places now."""

    known: ClassVar[dict[str, set[object]]] = {}

    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        first = {*self.column(entry, "id").to_pylist()[:1]}
        names = self.known.setdefault(f"{self.table.location}: {first}", {*self.column(entry, "name").to_pylist()})
        return (
            not isinstance(leaf, spi.Leaf) or leaf.column != "name" or leaf.op is not spi.Op.EQ or leaf.value in names
        )


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("skips-updated-rows-by-their-files", source=PlacedSource)
