"""When the connection ends before the answer, the commit is taken for failed, and done again."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from rows_on_a_server import Client
from rows_on_a_server import Harness as Server

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_answer_is_lost"
SAYS = "the round of epoch 0 was acknowledged, and the rows: expected 5 rows, found 10"


class Persistent(Client):
    def commit(
        self, state: spi.TableState, batches: list[pa.RecordBatch], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().commit(state, batches, watermark)
        except (OSError, EOFError):
            return super().commit(self.open(), batches, watermark)


class Harness(Server):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("commits-again-without-an-answer", committer=Persistent)
