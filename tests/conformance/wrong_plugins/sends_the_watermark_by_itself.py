"""The server has a request for rows and one for watermarks. Each request has a connection of its own."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from rows_on_a_server import Client
from rows_on_a_server import Harness as Server

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_round_is_killed"
SAYS = "the replay ended as 'published', and "


class InTurn(Client):
    def commit(
        self, state: spi.TableState, batches: list[pa.RecordBatch], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        self.ask(None)
        commit = super().commit(state, batches, None)
        super().commit(self.open(), [], watermark)
        return commit


class Harness(Server):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sends-the-watermark-by-itself", committer=InTurn)
