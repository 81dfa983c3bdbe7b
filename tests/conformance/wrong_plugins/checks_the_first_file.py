"""Of each result the first file is looked at before it is published: a task has one, in general."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from local import folding

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_localfile.folding import FoldingTable

CAUGHT_BY = "test_writer.py::test_a_task_of_many_small_files_or_groups[files]"
SAYS = "a result is published whose last file of 4 is gone: expected Refused"


class HastyTable(FoldingTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        super().check_staged(state, [replace(each, files=each.files[:1]) for each in results])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return folding("checks-the-first-file", HastyTable)
