"""A POST without an answer is sent again, as clients of HTTP do. The catalog says that the table has moved on: by the
first one, which had landed."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from over_http import Catalog, Client, over_http

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_answers.py::test_an_answer_to_a_publish_is_no_conflict"
SAYS = "Its own rows are there: a step that is done again, or a request that is sent again"


class RepeatingClient(Client):
    def commit(
        self, state: spi.TableState, batches: list[pa.RecordBatch], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().commit(state, batches, watermark)
        except ConnectionError:
            return super().commit(state, batches, watermark)


class Harness(Catalog):
    pass


@hookimpl
def laketier_format() -> CrookedPlugin:
    return over_http("takes-its-own-post-for-a-rivals", RepeatingClient)
