"""Logs of JSON lines for tests: made, appended to, expired and made anew. The source plugin `lines` reads them."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.rounds.splits import WEIGHT_OF_A_TASK
from laketier.spi import BadRecord, BucketBounds, FindUnstorable, LogOffsets, LogRange, LogSplit, LogTable, TableLog

COLUMNS = {"id": "int64", "text": "string"}


@dataclass(frozen=True)
class LinesTable:
    """One table's log below ``root``."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.root / self.name

    def create(self, columns: Mapping[str, str] = COLUMNS, buckets: int = 1) -> LinesTable:
        self.folder.mkdir(parents=True, exist_ok=True)
        for bucket in range(buckets):
            (self.folder / f"{bucket}.jsonl").write_bytes(b"")
        self.describe(id=uuid.uuid4().hex, columns=dict(columns), expired={})
        return self

    def describe(self, **changes: Any) -> None:
        """Change ``table.json``, in one step."""
        path = self.folder / "table.json"
        document = json.loads(path.read_text()) if path.exists() else {}
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(document | changes))
        os.replace(scratch, path)

    def append(self, *ids: int, bucket: int = 0) -> None:
        rows = [json.dumps({"id": i, "text": f"row {i}"}) for i in ids]
        self.append_raw(*rows, bucket=bucket)

    def append_raw(self, *lines: str, bucket: int = 0) -> None:
        with (self.folder / f"{bucket}.jsonl").open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def expire(self, below: int, bucket: int = 0) -> None:
        self.describe(expired={str(bucket): below})


@dataclass(frozen=True)
class CutLog(TableLog):
    """A log whose every two offsets are a task."""

    log: TableLog

    @property
    def table(self) -> LogTable:
        return self.log.table

    def bounds(self) -> Mapping[str, BucketBounds]:
        return self.log.bounds()

    def stamp(self, position: LogOffsets) -> str | None:
        return self.log.stamp(position)

    def identify(self) -> str | None:
        return self.log.identify()

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return [
            LogSplit(bucket=split.bucket, start=at, end=min(at + 2, split.end), bytes=WEIGHT_OF_A_TASK * 60)
            for split in self.log.plan(wanted)
            for at in range(split.start, split.end, 2)
        ]

    def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
        return self.log.read(split, **options)

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        return self.log.read_storable(split, find_unstorable, **options)

    def decode(self, records: Sequence[BadRecord], **options: Any) -> Iterator[pa.RecordBatch]:
        return self.log.decode(records, **options)

    def close(self) -> None:
        self.log.close()
