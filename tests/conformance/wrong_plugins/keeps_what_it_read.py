"""A process keeps the rows of a table's splits by their numbers. The driver's commits and drops forget them there.
Workers read what was there before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_a_worker_outlives_what_it_knows"
SAYS = "after the driver dropped the table, and made another one"

_READ: dict[Any, list[pa.RecordBatch]] = {}


class KeepingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        key = (str(self.table.location), split.index, split.rows, schema)
        if key not in _READ:
            _READ[key] = list(super().read(split, schema))
        yield from _READ[key]


class Committer(kit.ManifestCommitter):
    def open(self) -> kit.ManifestState:
        _READ.clear()
        return super().open()

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        _READ.clear()
        return super().publish(state, results, watermark)


class Catalog(kit.ManifestCatalog):
    def drop_table(self, path: spi.TablePath) -> None:
        _READ.clear()
        super().drop_table(path)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-what-it-read", source=KeepingSource, committer=Committer, catalog=Catalog)
