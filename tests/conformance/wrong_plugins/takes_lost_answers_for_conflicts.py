"""The connection ended before the answer, so the request can't have got there."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from over_http import Catalog, Client, over_http

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_answers.py::test_an_answer_to_a_publish_is_no_conflict"
SAYS = "and no other commit came: publish said Conflict"


class HopefulClient(Client):
    def commit(
        self, state: spi.TableState, batches: list[pa.RecordBatch], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().commit(state, batches, watermark)
        except ConnectionError as error:
            raise spi.Conflict("the catalog was not reached", where=str(self.table.location)) from error


class Harness(Catalog):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return over_http("takes-lost-answers-for-conflicts", HopefulClient)
