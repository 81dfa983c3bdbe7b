"""A writer begins a new file when one is large. An abort deletes the file that is open, and not those before it."""

from __future__ import annotations

from crooked import CrookedPlugin
from rolling import RollingWriter, rolling

from laketier.registry import hookimpl

CAUGHT_BY = "test_scale.py::test_an_abort_of_a_large_task"
SAYS = "that was aborted when it had written them"


class Forgetful(RollingWriter):
    def abort(self) -> None:
        self._path.unlink(missing_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return rolling("aborts-the-open-file", Forgetful)
