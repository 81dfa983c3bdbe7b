"""Files are Parquet, so each split names its own for other engines. A split that a limit cut does so as well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, FeatherTable, Source, Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_plain_parquet_holds_exactly_the_split"
SAYS = "rows of a plain Parquet file, as its split has them, which a limit cut: expected 7 rows, found 20"
NAMES = kit.AttemptNames(".parquet")
MORE = {**FEATURES, spi.Feature.LIMIT_PUSHDOWN: spi.FULL, spi.Feature.PLAIN_PARQUET: spi.FULL}


class ParquetTable(FeatherTable):
    features: ClassVar = MORE
    layout: ClassVar = replace(FeatherTable.layout, attempt_of=NAMES.attempt_of)


class ParquetWriter(Writer):
    names: ClassVar = NAMES

    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        return pq.ParquetWriter(str(path), schema)


class NamingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        named = [replace(split, plain_parquet=self.path_of(split)) for split in plan.splits]
        return replace(plan, splits=tuple(named))

    def path_of(self, split: spi.LakeSplit) -> str:
        return str(self.table.location / split.payload.path)

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        rows = pq.ParquetFile(self.path_of(split)).read(columns=schema.names).slice(0, split.limit)
        yield from (kit.conform(batch, schema) for batch in rows.to_batches())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("hands-over-cut-files", MORE, table=ParquetTable, writer=ParquetWriter, source=NamingSource)
