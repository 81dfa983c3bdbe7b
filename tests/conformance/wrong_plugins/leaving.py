"""Rows that others deleted are listed beside the table, with its newest commit's number; readers leave them out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from feather_lake.plugin import FeatherTable, Source

from laketier import spi

DELETED = "deleted.json"


def deletions(table: FeatherTable) -> dict[str, int]:
    """The id of each deleted row, and the commit after which it was deleted."""
    listed = Path(table.location) / DELETED
    found: dict[str, int] = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else {}
    return found


class KeepingHarness:
    """``adds``: to what was deleted before."""

    adds: ClassVar[bool] = True

    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        at = FeatherTable(Path(table.location))
        before = deletions(at) if self.adds else {}
        listed = before | {str(each): at.open().head.number for each in ids}
        (Path(table.location) / DELETED).write_text(json.dumps(listed), encoding="utf-8")


class LeavingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        gone = pa.array([int(each) for each, at in deletions(self.table).items() if self.counts(at)], pa.int64())
        wider = schema if "id" in schema.names else schema.append(pa.field("id", pa.int64()))
        for batch in super().read(split, wider):
            yield batch.filter(pc.invert(pc.is_in(batch["id"], gone))).select(schema.names)

    def counts(self, at: int) -> bool:
        """Whether a deletion after this commit is one."""
        return True
