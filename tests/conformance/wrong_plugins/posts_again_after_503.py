"""The catalog says that it is not available, so the commit is posted again: to the table as it is by then."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from over_http import Catalog, Client, over_http

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_answers.py::test_an_answer_to_a_round"
SAYS = "503 was answered after request 1 to a server, POST /commit of tcp 127.0.0.1"


class PersistentClient(Client):
    def commit(
        self, state: spi.TableState, batches: list[pa.RecordBatch], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().commit(state, batches, watermark)
        except spi.UnknownOutcome:
            return super().commit(self.open(), batches, watermark)


class Harness(Catalog):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return over_http("posts-again-after-503", PersistentClient)
