"""A discard of no results is one of all that is staged: a round that staged nothing has nothing to lose."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_discard.py::test_only_what_was_given_is_deleted"
SAYS = "one attempt is discarded, and others are published: a discard deletes the files it was given alone"


class WholeCommitter(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        super().discard(results)
        manifests = self.table.manifests()
        kept = self.table.published(manifests, manifests.head()[0])
        for path in () if results else self.table.location.glob("*.feather"):
            if path.name not in kept:
                path.unlink(missing_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-all-where-nothing-is-given", committer=WholeCommitter)
