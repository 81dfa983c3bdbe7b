"""Files of an attempt are found by how their names begin: with the time."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_forged_result_deletes_no_other_file_of_the_table"
SAYS = "files that changed when a result was discarded that names another attempt's file"


class PrefixCommitter(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        super().discard(results)
        for result in results:
            for path in self.table.location.glob(f"{result.attempt[:12]}*"):
                path.unlink()


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("discards-by-the-moment", committer=PrefixCommitter)
