"""What a task stages syncs the folder of commits, too, so a replay makes durable what it finds. Of an epoch that is
there, an engine runs no task."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable, Writer
from trusts_what_it_finds import Trusting

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_power.py::test_a_replay_makes_durable_what_it_finds"
SAYS = "and replayed; then the power was cut"


class Syncing(Writer):
    def complete(self) -> spi.WriteResult:
        FeatherTable(Path(self._table.location)).manifests().sync_names()
        return super().complete()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("syncs-names-as-it-stages", table=Trusting, writer=Syncing)
