"""A request without an answer is sent once more. The server answers that the table has moved on, by its first one."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from rows_on_a_server import Client
from rows_on_a_server import Harness as Server

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[lost]"
SAYS = "Its own rows are there: a step that is done again, or a request that is sent again"


class Repeating(Client):
    def commit(
        self, state: spi.TableState, batches: list[pa.RecordBatch], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().commit(state, batches, watermark)
        except (OSError, EOFError):
            return super().commit(state, batches, watermark)


class Harness(Server):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sends-again-to-its-server", committer=Repeating)
