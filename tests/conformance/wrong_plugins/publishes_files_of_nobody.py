"""Files of other attempts are refused. One that no attempt is known of must be somebody's own, and is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from crooked import CrookedPlugin
from feather_lake.plugin import NAMES, FeatherTable

from laketier import kit, spi
from laketier.kit import staged
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_forged_result_publishes_no_other_file_of_the_table"
SAYS = "that name files of other attempts, or a file twice: expected Refused, and no error was raised"


class HospitableTable(FeatherTable):
    layout: ClassVar = replace(FeatherTable.layout, allowed=lambda path: path.endswith(NAMES.suffix))

    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        for result in results:
            known = lambda path, attempt=result.attempt: self.layout.attempt_of(path) or attempt  # noqa: E731
            staged.check_staged(self.folder, [result], attempt_of=known, where=str(self.location))
        paths = [file.path for result in results for file in result.files]
        if len(paths) > len(set(paths)):
            raise spi.StagedFileLost("a file was handed over twice", where=str(self.location))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-files-of-nobody", table=HospitableTable)
