"""Staged files are named after their task, so two attempts of one task write the same file."""

from __future__ import annotations

from crooked import CrookedFactory, CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_discard.py::test_attempts_of_the_same_task_never_clash"
SAYS = "two attempts of one task share no file: found ['task-0.feather', 'task-0.feather']"


class GuessingFactory(CrookedFactory):
    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        return Writer(self.table, f"task-{context.split_index}")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reuses-names", factory=GuessingFactory)
