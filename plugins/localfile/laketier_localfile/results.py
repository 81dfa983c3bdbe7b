"""Checks the claims of a write result about a file before a manifest stores them."""

from __future__ import annotations

import pyarrow as pa

from laketier.kit.partition import partition_text
from laketier.spi import StagedFile, TableDescriptor
from laketier_localfile.parquet import stats_from_text
from laketier_localfile.partitioning import Partitioning
from laketier_localfile.pruning import decode


def odd_claim(file: StagedFile, table: TableDescriptor) -> str | None:
    """What no writer of laketier says of a file of ``table``, as a clause; None when there is no such thing.

    A manifest keeps it for ever: a partition or a bound that is no value of its column ends every scan that filters by
    it, or hides rows from it.
    """
    odd = Partitioning.of(table).odd_text(file.partition)
    if odd is not None:
        return odd
    try:
        stats = stats_from_text(file.payload["stats"])
        for name, (low, high, nulls) in stats.items():
            kind = table.schema.field(name).type
            if not (_is_text_of(low, kind) and _is_text_of(high, kind) and 0 <= nulls <= file.rows):
                return f"its bounds {low!a} and {high!a} with {nulls!a} nulls are none of column {name!r}"
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        return f"its statistics can't be read: {error!r}"
    return None


def _is_text_of(text: str | None, kind: pa.DataType) -> bool:
    try:
        return partition_text(decode(text, kind)) == text
    except (ValueError, TypeError, ArithmeticError):
        return False
