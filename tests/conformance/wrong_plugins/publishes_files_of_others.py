"""Publishes any file that is in the table, whole, and whose it is does not matter."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit import staged
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_forged_result_publishes_no_other_file_of_the_table"
SAYS = "that name files of other attempts, or a file twice: expected Refused, and no error was raised"


class GenerousTable(FeatherTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        for result in results:
            anybody = lambda path, attempt=result.attempt: attempt  # noqa: E731
            staged.check_staged(self.folder, [result], attempt_of=anybody, where=str(self.location))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-files-of-others", table=GenerousTable)
