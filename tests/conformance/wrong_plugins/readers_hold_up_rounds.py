"""A reader holds the table's lock until it has given its last batch. Who commits waits for it, for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_races.py::test_a_round_while_its_process_reads"
SAYS = "the outcome of a round beside a reader of its process"
_READING: list[str] = []


class LockingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        _READING.append(split.payload.path)
        try:
            yield from super().read(split, schema)
        finally:
            _READING.remove(split.payload.path)


class WaitingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if _READING:
            raise spi.StorageError("the table is locked", where=_READING[0])
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("readers-hold-up-rounds", source=LockingSource, committer=WaitingCommitter)
