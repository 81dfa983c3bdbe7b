"""Whether files are in the table can't be told, as it can't be read: then none of them is, and they are deleted."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_of_an_operation_fails[discard]"
SAYS = "discard, EIO from a look"


class HastyCommitter(kit.ManifestCommitter):
    def _published(self, paths: Sequence[str]) -> set[str]:
        try:
            return super()._published(paths)
        except (OSError, spi.LaketierError):
            return set()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-unseen", committer=HastyCommitter)
