"""Checks the claims of a write result about its files before delta-rs publishes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from laketier.kit.partition import OddPartitionValues
from laketier.spi import IncompatibleData, IncompatibleTable, OutsideTable, StagedFile, WriteResult
from laketier_delta.layout import file_path
from laketier_delta.partitions import log_text, partition_scalar, text_of_log


def check_partitions(results: Sequence[WriteResult], columns: Sequence[str], schema: pa.Schema, *, where: str) -> None:
    """Raise `OutsideTable` unless each file of ``results`` has a value for each of ``columns``, of its type and as
    laketier spells it, and lies in the folder of these values.

    delta-rs commits whatever it is told. An entry with a value that does not fit is one that no reader takes, delta-rs
    included, so one result would shut the whole table.
    """
    for file in (file for result in results for file in result.files):
        why = _why_not(file, columns, schema)
        if why is not None:
            raise OutsideTable(
                f"the partition that {file.path!a} was staged for is not the one of that file; nothing was published",
                where=where,
                why=why,
                fix="No writer of laketier makes such a result: find out who did, and run the round again.",
            )


def _why_not(file: StagedFile, columns: Sequence[str], schema: pa.Schema) -> str | None:
    names = [name for name, _ in file.partition]
    if names != list(columns):
        return f"it names the columns {names}, and the table is partitioned by {list(columns)}"
    values = []
    for name, text in file.partition:
        kind = schema.field(name).type
        try:
            value = partition_scalar(text_of_log(text, kind), kind).as_py()
        except (pa.ArrowException, IncompatibleTable, ValueError, OverflowError):
            value = None
        if log_text(value) != text:
            return f"{text!a} is no {kind} as laketier spells it (column {name!r})"
        values.append(value)
    try:
        expected = file_path(columns, values, "", None, OddPartitionValues.ACCEPT)
    except IncompatibleData as error:
        return str(error)
    return None if file.path.rpartition("/")[0] == expected.rpartition("/")[0] else "it lies in another folder"
