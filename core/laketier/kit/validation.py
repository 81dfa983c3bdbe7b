"""Values that contradict their types: text that is no UTF-8, offsets that lead out of their buffer, decimals with more
digits than their type has.

Arrow takes a column's bytes at their word, and so do the libraries that write files. A decimal with too many digits is
cut to the bytes that its type takes: another number, in silence. So decimals are always looked at. Text that is no
UTF-8 is kept as it is, and the file is refused by DuckDB and Polars: how much of it is looked at is the user's choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children
from laketier.spi.committer import LakeCommitter
from laketier.spi.context import CommitterInitContext, WriterInitContext
from laketier.spi.errors import IncompatibleData, UnstorableRows
from laketier.spi.plugin import LakeTieringFactory
from laketier.spi.serializer import SimpleVersionedSerializer
from laketier.spi.writer import LakeWriter


class Validate(Enum):
    """Of which batches all values are looked at. Columns, types, nulls and decimals are checked in each."""

    EVERY = "every"
    FIRST = "first"
    NEVER = "never"


def refuse_invalid(batch: pa.RecordBatch, *, decimals_alone: bool = False, each: bool = True) -> None:
    """Raise `UnstorableRows` for the first column with a value that its type can't have. ``decimals_alone``: look at
    columns with decimals, at any depth, and at no others. ``each``: whether each batch is looked at. Where not, a row
    is refused for the batch that it came in, which a replay need not cut alike: that is no more than
    `IncompatibleData`, but for decimals."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if decimals_alone and not _has_decimals(column.type):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            kind = UnstorableRows if each or _has_decimals(column.type) else IncompatibleData
            raise kind(
                f"column {name!r} has values that are no {column.type}",
                why=str(error).partition("\n")[0],
                fix="Mend the values where they are made: nobody could read them back as they are.",
            ) from error


def _has_decimals(kind: pa.DataType) -> bool:
    if pt.is_decimal(kind):
        return True
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _has_decimals(kind.value_type)
    return any(_has_decimals(field.type) for _, field in children(kind))


@dataclass(frozen=True)
class ValidatingFactory(LakeTieringFactory[Any]):
    """A format's factory, whose writers look at values before the format does. Picklable as the other is."""

    factory: LakeTieringFactory[Any]
    validate: Validate

    def create_writer(self, context: WriterInitContext) -> LakeWriter[Any]:
        return ValidatingWriter(self.factory.create_writer(context), self.validate)

    def create_committer(self, context: CommitterInitContext) -> LakeCommitter[Any]:
        return self.factory.create_committer(context)

    @property
    def leaves_files_open(self) -> bool:
        return self.factory.leaves_files_open

    @property
    def write_result_serializer(self) -> SimpleVersionedSerializer[Any]:
        return self.factory.write_result_serializer


class ValidatingWriter(LakeWriter[Any]):
    """Of each task attempt ``validate`` says which batches are looked at as a whole."""

    def __init__(self, writer: LakeWriter[Any], validate: Validate) -> None:
        self._writer = writer
        self._validate = validate

    def write(self, batch: pa.RecordBatch) -> None:
        every = self._validate is Validate.EVERY
        refuse_invalid(batch, decimals_alone=self._validate is Validate.NEVER, each=every)
        if self._validate is Validate.FIRST and batch.num_rows:
            self._validate = Validate.NEVER
        self._writer.write(batch)

    def complete(self) -> Any:
        return self._writer.complete()

    def abort(self) -> None:
        self._writer.abort()
