"""What a commit does is printed, as it was in the notebook where it began."""

from __future__ import annotations

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_prints_nothing"
SAYS = "lines that a table's use prints to the standard output"


def act() -> None:
    print("committed")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("prints-what-it-does", committer=when_publishing(act))
