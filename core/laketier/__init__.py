"""Any lake format from PySpark, exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import pyarrow as pa

    from laketier.spi import AdoptedTable, Predicate

__all__ = ["__version__", "adopt", "read_union"]

__version__ = "0.1.0"


def adopt(
    folder: str | os.PathLike[str],
    *,
    lake_format: str,
    partitions: bool = False,
    types: Mapping[str, pa.DataType] | None = None,
) -> AdoptedTable:
    """Make a table of the files in a folder, where they lie: no byte of them is written, and none is moved. All of the
    table is there in the end, or nothing. Idempotent.

    Args:
        folder: ``warehouse/database/table``.
        lake_format: ``lake.format``.
        partitions: Whether folders named ``column=value`` are the table's partitions.
        types: Types of columns whose files disagree.

    Returns:
        The table, its files and rows.

    Raises:
        ConfigError: The folder's name is no table's.
        IncompatibleTable: The folder is a table already, or changes while it is looked at.
        IncompatibleData: The files can't be read as one table.
        LaketierError: As the format raises it.
    """
    from laketier.tables.adoption import adopt_folder

    return adopt_folder(folder, lake_format, partitions=partitions, types=types)


def read_union(
    table: str,
    *,
    service: str,
    columns: Sequence[str] | None = None,
    filters: Iterable[Predicate] = (),
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Read lake and log of a table as one, as of now. No row is missing or repeated, also while a round commits.

    The call plans the read. Rows are read as the reader is.

    Args:
        table: ``source.table``, or the lake table's name.
        service: The service file that configures the table.
        columns: The columns to read. None reads all.
        filters: Predicates that each row has to fulfil.
        limit: The number of rows to read at most. None for no limit.

    Returns:
        A reader of Arrow record batches.

    Raises:
        ConfigError: The service file is wrong or has no such table, or a column is unknown.
        OffsetsExpired: The source dropped offsets that the lake does not hold.
        Refused: The lake table and the log do not belong together (any more).
        LaketierError: As the source and the format raise it.
    """
    import pyarrow

    from laketier.rounds.configured import open_configured_table
    from laketier.spi import ScanRequest
    from laketier.union_read.scan import union_batches

    configured, log = open_configured_table(service, table)
    request = ScanRequest(columns=None if columns is None else tuple(columns), filters=tuple(filters), limit=limit)
    schema, batches = union_batches(configured.config, log, request, tolerant=configured.leaves_out_bad_records)
    return pyarrow.RecordBatchReader.from_batches(schema, batches)
