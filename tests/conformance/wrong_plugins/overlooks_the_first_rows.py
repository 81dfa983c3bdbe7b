"""An overwrite of an empty table replaces nothing, and changes go on over it. Whether the table was empty is looked up
one commit too early."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_the_first_rows_of_a_table_are_replaced_at_once"
SAYS = "an overwrite right after the first rows of the table: expected RowsChanged, and no error was raised"


class FormerChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        manifests = self._manifests()
        head, _ = manifests.current()
        resets = [number for number in range(start, end) if manifests.at(number, head).resets]
        was_empty = bool(resets) and not any(files_at(manifests, number - 2) for number in resets)
        return super().plan(start, end, skip_changes=skip_changes or was_empty)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("overlooks-the-first-rows", changes=FormerChanges)
