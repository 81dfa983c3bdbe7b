"""A discard tidies up: what earlier attempts staged and nobody published goes with it. One of them may still go on."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_discard.py::test_only_what_was_given_is_deleted"
SAYS = "one attempt is discarded, and others are published: a discard deletes the files it was given alone"


class TidyCommitter(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        super().discard(results)
        manifests = self.table.manifests()
        kept = self.table.published(manifests, manifests.head()[0])
        oldest = min((result.attempt for result in results), default="")
        for path in self.table.location.glob("*.feather"):
            if path.stem < oldest and path.name not in kept:
                path.unlink(missing_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-what-is-older", committer=TidyCommitter)
