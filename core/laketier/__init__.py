"""Any lake format from PySpark, exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from laketier.spi import Predicate

__all__ = ["__version__", "union"]

__version__ = "0.1.0"


def union(
    table: str,
    *,
    service: str,
    columns: Sequence[str] | None = None,
    filters: Iterable[Predicate] = (),
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Lake and log of a table as one, as of now: no row is missing, and none is there twice, also while a round
    commits.

    ``table``: ``source.table``, or the lake table's name. ``service``: the service file that tiers it. Planned at once,
    read as the reader is. Raises `ConfigError`, `OffsetsExpired`, `Refused`, and what source and format raise.
    """
    import pyarrow

    from laketier.rounds.configured import open_configured_table
    from laketier.spi import ScanRequest
    from laketier.union_read.union import union_of

    tiered, log = open_configured_table(service, table)
    request = ScanRequest(columns=None if columns is None else tuple(columns), filters=tuple(filters), limit=limit)
    schema, batches = union_of(tiered, log, request)
    return pyarrow.RecordBatchReader.from_batches(schema, batches)
