"""A discard deletes all files in the table that a result names, whoever staged them."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit import staged
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_forged_result_deletes_no_other_file_of_the_table"
SAYS = "files that changed when a result was discarded that names another attempt's file"


class ConfinedCommitter(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        staged.remove(self.table.folder, [file.path for result in results for file in result.files])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("deletes-files-of-others", committer=ConfinedCommitter)
