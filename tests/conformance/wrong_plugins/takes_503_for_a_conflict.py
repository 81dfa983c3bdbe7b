"""Whatever the catalog answers but 200, the commit did not land."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from over_http import Catalog, Client, over_http

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_answers.py::test_an_answer_to_a_publish_is_no_conflict"
SAYS = "503 was answered after request 1 to a server, POST /commit of tcp 127.0.0.1"


class HastyClient(Client):
    def commit(
        self, state: spi.TableState, batches: list[pa.RecordBatch], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().commit(state, batches, watermark)
        except spi.UnknownOutcome as error:
            raise spi.Conflict("the catalog refused it", where=str(self.table.location)) from error


class Harness(Catalog):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return over_http("takes-503-for-a-conflict", HastyClient)
