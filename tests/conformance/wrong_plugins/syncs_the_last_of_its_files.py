"""A writer begins a new file when one is large. The end of a task syncs the file that is open, as it did before."""

from __future__ import annotations

from crooked import CrookedPlugin
from rolling import RollingWriter, rolling

from laketier.kit import durable
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_each_file_of_a_large_task_survives"
SAYS = "a power cut after 'round_of_many' was answered (nothing is there that was not synced); not synced: the bytes of"


class Hasty(RollingWriter):
    def synced(self) -> None:
        if self._ended:
            durable.fsync_file(self._path.parent / self._ended[-1].path)
        durable.fsync_directory(self._path.parent)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return rolling("syncs-the-last-of-its-files", Hasty)
