"""Any lake format from PySpark, exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

    import pyarrow as pa

    from laketier.config import LakeConfig
    from laketier.spi import AdoptedTable, Predicate, SearchQuery, SearchResult
    from laketier.tiering.epochs import EpochWriter

__all__ = ["__version__", "adopt", "open_writer", "read_union", "search"]

__version__ = "0.1.0"


def adopt(
    folder: str | os.PathLike[str],
    *,
    lake_format: str,
    partitions: bool = False,
    types: Mapping[str, pa.DataType] | None = None,
    options: Mapping[str, str] | None = None,
) -> AdoptedTable:
    """Make a table of the files in a folder, where they lie: no byte of them is written, and none is moved. All of the
    table is there in the end, or nothing. Idempotent.

    Args:
        folder: ``warehouse/database/table``, a path or a URI such as ``s3://bucket/prefix/database/table``.
        lake_format: ``lake.format``.
        partitions: Whether folders named ``column=value`` are the table's partitions.
        types: Types of columns whose files disagree.
        options: Other keys of the lake, such as ``lake.localfile.file-format`` in a folder of several formats.

    Returns:
        The table, its files and rows.

    Raises:
        ConfigError: The folder's name is no table's.
        IncompatibleTable: The folder is a table already, or changes while it is looked at.
        IncompatibleData: The files can't be read as one table.
        LaketierError: As the format raises it.
    """
    from laketier.tables.adoption import adopt_folder

    return adopt_folder(folder, lake_format, partitions=partitions, types=types, options=options)


def open_writer(config: LakeConfig | Mapping[str, Any], schema: pa.Schema, *, fence: int = 0) -> EpochWriter:
    """Write epoch after epoch of a pipeline from this process, each exactly once, without Spark.

    The table is created when it is missing. In a process that lives over epochs files may stay open from one to the
    next, where the format has an option for it.

    Args:
        config: The table and the pipeline, as ``lake.*`` keys.
        schema: The columns of the rows.
        fence: A number that grows with each takeover by another process, for callers that hold a lease. The table
            refuses epochs with a lower one than it knows.

    Returns:
        The writer, a context manager.

    Raises:
        ConfigError: The configuration is not valid.
        LaketierError: As the format raises it.
    """
    from laketier.config import LakeConfig
    from laketier.registry import configure
    from laketier.tiering.epochs import EpochWriter

    return EpochWriter(config if isinstance(config, LakeConfig) else configure(config), schema, fence=fence)


def read_union(
    table: str,
    *,
    service: str,
    columns: Sequence[str] | None = None,
    filters: Iterable[Predicate] = (),
    limit: int | None = None,
) -> pa.RecordBatchReader:
    """Read lake and log of a table as one, as of now. No row is missing or repeated, also while a round commits.

    The call plans the read. Rows are read as the reader is. After the last one the source is looked at again: if its
    table was made again or put back meanwhile, the reader raises, and what it gave may be rows of both.

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

    from laketier.rounds.configured_logs import look_again, open_with_source
    from laketier.spi import ScanRequest
    from laketier.union_read.planning import union_batches

    configured, log, source = open_with_source(service, table)
    request = ScanRequest(columns=None if columns is None else tuple(columns), filters=tuple(filters), limit=limit)
    schema, batches = union_batches(
        configured.config,
        log,
        request,
        tolerant=configured.leaves_out_bad_records,
        look_again=lambda: look_again(configured, source),
    )
    return pyarrow.RecordBatchReader.from_batches(schema, batches)


def search(
    config: LakeConfig | Mapping[str, Any],
    query: str | SearchQuery,
    *,
    k: int = 10,
    columns: Sequence[str] | None = None,
    filters: Iterable[Predicate] = (),
) -> SearchResult:
    """Search a table for words or vectors, once, in this process.

    Args:
        config: The table, as ``lake.*`` keys. Its ``lake.snapshot-id`` is the snapshot that is searched.
        query: The query, or the words of a `Match`.
        k: The number of rows, at most.
        columns: The columns of the result. None for all.
        filters: Predicates that each row has to fulfil.

    Returns:
        The best rows, the best first, and how they were found.

    Raises:
        ConfigError: The configuration is not valid, or the query does not fit the table.
        FeatureNotSupported: The format does not search, or not so.
        LaketierError: As the format raises it.
    """
    from laketier.config import LakeConfig
    from laketier.registry import configure, open_lake

    config = config if isinstance(config, LakeConfig) else configure(config)
    lake = open_lake(config)
    searcher = lake.searcher(lake.load_table())
    return searcher.search(query, k=k, columns=columns, filters=filters, snapshot_id=config.snapshot_id)
