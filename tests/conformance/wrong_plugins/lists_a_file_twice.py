"""Each staged file is looked at by itself: whether it was named before, nobody looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_a_forged_result_publishes_no_other_file_of_the_table"
SAYS = "results are published that name files of other attempts, or a file twice"


class SingleTable(FeatherTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        for result in results:
            for file in result.files:
                super().check_staged(state, [replace(result, files=(file,))])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("lists-a-file-twice", table=SingleTable)
