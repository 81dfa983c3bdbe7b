"""The state can't be read again, so another one must have come first: the round is told that nothing landed."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[driver]"
SAYS = "found Conflict(the table is in use)"


class HastyCommitter(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        try:
            return super().open()
        except (OSError, spi.LaketierError) as error:
            raise spi.Conflict("the table is in use") from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("conflicts-where-it-cannot-look", committer=HastyCommitter)
