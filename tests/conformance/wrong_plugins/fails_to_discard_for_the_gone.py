"""A discard looks at the table first, and does not think of a round whose table is gone."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.kit.staged import remove
from laketier.registry import hookimpl

CAUGHT_BY = "test_discard.py::test_a_table_that_is_gone"
SAYS = "a discard logs what it can't do: expected no error, found TableNotFound"


class Looking(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        state = self.open()
        live = {entry.path for entry in files_at(state.manifests, state.head.number)}
        remove(self.table.folder, [file.path for each in results for file in each.files if file.path not in live])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("fails-to-discard-for-the-gone", committer=Looking)
