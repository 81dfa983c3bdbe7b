"""Makes columns from records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from laketier_fluss.types import TIMESTAMP

_CHANGE_TYPES = {1: "+I", 2: "-U", 3: "+U", 4: "-D"}


@dataclass(frozen=True)
class Asked:
    """The columns that a reader wants. ``columns``: of the table; ``types``: theirs, for reading row by row. The
    others are names for what Fluss keeps beside the row, None where it is not wanted. ``order``: of the columns that
    are sent."""

    columns: list[str]
    types: str
    order: list[str]
    by_row: bool
    bucket: str | None = None
    offset: str | None = None
    timestamp: str | None = None
    change: str | None = None

    def batch(self, columns: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
        """These, in order. A batch without columns still has rows."""
        if not self.order:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
        return pa.RecordBatch.from_arrays([columns[name] for name in self.order], names=self.order)


def record_columns(records: list[Any], asked: Asked) -> dict[str, pa.Array]:
    """Record by record: the client has no other way to tell change types and times."""
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(asked.types)))
    rows = [record.row for record in records]
    columns = {name: pa.array([row[name] for row in rows], schema.field(name).type) for name in asked.columns}
    if asked.offset is not None:
        columns[asked.offset] = pa.array([record.offset for record in records], pa.int64())
    if asked.timestamp is not None:
        columns[asked.timestamp] = pa.array([record.timestamp for record in records], TIMESTAMP)
    if asked.change is not None:
        columns[asked.change] = pa.array([_CHANGE_TYPES[int(record.change_type)] for record in records], pa.string())
    return columns
