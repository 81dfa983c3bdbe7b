"""Which snapshots have expired is told by the commit that ended them, and not by those that follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from local import tiering

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_localfile.folding import FoldingTable
from laketier_localfile.place import place_of
from laketier_localfile.storage import LocalFileTieringFactory

CAUGHT_BY = "test_expiry.py::test_what_ended_stays_so"
SAYS = "all but one snapshot expired, an append came, and snapshot 0 is planned, which had ended"


class ForgetfulCommitter(kit.ManifestCommitter):
    def publish(self, state: Any, *more: Any) -> spi.LakeCommitResult:
        return super().publish(replace(state, head=replace(state.head, earliest=0)), *more)


class Factory(LocalFileTieringFactory):
    def create_committer(self, context: spi.CommitterInitContext) -> spi.LakeCommitter[spi.WriteResult]:
        place = place_of(self.table.location, self.options.storage)
        return ForgetfulCommitter(FoldingTable(place, self.options), context)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return tiering("opens-expired-snapshots-again", Factory)
