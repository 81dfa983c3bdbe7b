"""A discard cleans the folder of all that the newest manifest does not name, also what others have just staged."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_discard.py::test_only_what_was_given_is_deleted"
SAYS = "a discard deletes the files it was given alone: expected no error, found StagedFileLost"


class SweepingCommitter(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        state = self.open()
        live = {entry.path for entry in files_at(state.manifests, state.head.number)}
        for path in self.table.location.glob("*.feather"):
            if path.name not in live:
                path.unlink()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-too-much", committer=SweepingCommitter)
