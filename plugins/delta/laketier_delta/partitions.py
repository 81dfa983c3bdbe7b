"""Partition values as the Delta log spells them.

The core knows one spelling (`laketier.kit.partition.partition_text`), which a `LakeSplit` has. The log has that of
delta-spark, letter for letter: engines that group files by the text would else see one value as two.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.kit.partition import partition_text
from laketier.spi import IncompatibleTable, UnstorableRows


def log_text(value: Any) -> str | None:
    """A partition value for the log, and for the folder's name. An instant is ISO-8601 in UTC and says so, as a reader
    may take one without a zone for its session's time; a time without a zone ends with the last digit that is not 0."""
    if not isinstance(value, datetime):
        return partition_text(value)
    if value.tzinfo is None:
        text = partition_text(value)
        return text.rstrip("0") if text and "." in text else text
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def text_of_log(raw: str | None, kind: pa.DataType) -> str | None:
    """A partition value of the log as the core spells it. The protocol reads the empty text as null; an instant
    without a zone is in UTC, as laketier wrote it before, as delta-rs writes it, and as the core spells it. Raises
    `IncompatibleTable`."""
    if not raw:
        return None
    if not pt.is_timestamp(kind):
        try:
            return partition_text(partition_scalar(raw, kind).as_py())
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise IncompatibleTable(
                f"the log has the partition value {raw!r}, which is no {kind}",
                why=str(error),
                fix="Read that partition with the engine that wrote it.",
            ) from error
    try:
        moment = datetime.fromisoformat(raw)
    except ValueError as error:
        raise IncompatibleTable(
            f"the log has the partition value {raw!r}, which is no time between the years 1 and 9999",
            fix="Read that partition with Spark.",
        ) from error
    return partition_text(moment)


def partition_scalar(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """A partition value from the text of the core, in which instants are in UTC without saying so."""
    if text is None:
        return pa.scalar(None, kind)
    if pt.is_timestamp(kind) and kind.tz is not None:
        naive = pc.cast(pa.scalar(text), pa.timestamp("us"))
        return pc.assume_timezone(naive, "UTC").cast(kind)
    return pc.cast(pa.scalar(text), kind)


def empty_as_null(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """Partition columns with null for the empty text, which is what the protocol, and delta-spark, make of it. Raises
    `UnstorableRows` where the column can't be null."""
    for name in columns:
        index = batch.schema.get_field_index(name)
        field, column = batch.schema.field(index), batch.column(index)
        if not pt.is_string(field.type) or not pc.any(pc.equal(column, "")).as_py():
            continue
        if not field.nullable:
            raise UnstorableRows(
                f"partition column {name!r} has empty strings, and is not null",
                why="the Delta protocol reads an empty partition value as null",
                fix="Replace them by another value in the query.",
            )
        batch = batch.set_column(index, field, pc.if_else(pc.equal(column, ""), pa.scalar(None, field.type), column))
    return batch
