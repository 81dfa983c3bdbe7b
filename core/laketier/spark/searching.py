"""Searching from Spark: one query on the driver, many in tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from laketier.config import LakeConfig
from laketier.registry import Lake, open_lake
from laketier.spark.schema import for_spark, reading_schema, spark_schema
from laketier.spark.target import as_config
from laketier.spi import (
    ConfigError,
    LakeSearcher,
    Nearest,
    Predicate,
    SearchQuery,
    SearchRequest,
    as_query,
    query_from_json,
)
from laketier.spi.searcher import as_filters

QUERY = "_query"
"""The column of the results of many queries that holds the query."""


def search(
    spark: SparkSession,
    config: LakeConfig | Mapping[str, Any],
    query: str | SearchQuery,
    *,
    k: int = 10,
    columns: Sequence[str] | None = None,
    filters: Iterable[Predicate] = (),
) -> DataFrame:
    """Search a table once, now, on the driver: most of a query is a look into an index, which does not get faster by
    distribution. Driver.

    Args:
        spark: The session.
        config: The table. Its ``lake.snapshot-id`` is the one that is searched.
        query: The query, or the words of a `Match`.
        k: The number of rows, at most.
        columns: The columns of the result. None for all.
        filters: Predicates that each row has to fulfil.

    Returns:
        The best rows with ``_score`` or ``_distance``. Sort by it: a DataFrame has no order of its own.

    Raises:
        ConfigError: The query does not fit the table.
        FeatureNotSupported: The format does not search, or not so.
    """
    config = as_config(config, spark)
    lake = open_lake(config)
    found = _searcher(lake).search(query, k=k, columns=columns, filters=filters, snapshot_id=config.snapshot_id)
    schema = spark_schema(found.rows.schema)
    as_read = reading_schema(schema)
    batches = [for_spark(batch, as_read) for batch in found.rows.to_batches()]
    return spark.createDataFrame(pa.Table.from_batches(batches, as_read), schema)


def search_many(
    spark: SparkSession,
    config: LakeConfig | Mapping[str, Any],
    queries: DataFrame,
    *,
    column: str = "query",
    k: int = 10,
    columns: Sequence[str] | None = None,
    filters: Iterable[Predicate] = (),
    distance: bool = False,
) -> DataFrame:
    """Search a table for each row of a DataFrame, in tasks. Each task opens the snapshot once. Driver.

    All queries see one snapshot, that of now or ``lake.snapshot-id``. In a foreachBatch, each
    batch sees the table of its time.

    Args:
        spark: The session.
        config: The table.
        queries: The queries, as texts in ``column``: words, or JSON (`laketier.spi.query_to_json`). Null has no rows.
        column: Their column.
        k: The number of rows per query, at most.
        columns: The columns of the result. None for all.
        filters: Predicates that each row has to fulfil.
        distance: Whether all queries are `Nearest`, so that the result has ``_distance`` instead of ``_score``.

    Returns:
        The best rows of each query, with the query in ``_query``.

    Raises:
        ConfigError: The DataFrame has no such column of text. In a task: a query does not fit the table.
        FeatureNotSupported: The format does not search.
    """
    config = as_config(config, spark)
    if dict(queries.dtypes).get(column) != "string":
        raise ConfigError(
            f"the queries have no column {column!r} of text",
            why=f"they have {', '.join(f'{name} {kind}' for name, kind in queries.dtypes)}",
            fix="Name it with column=….",
        )
    lake = open_lake(config)
    searcher = _searcher(lake)
    opened = searcher.at(config.snapshot_id)
    chosen = as_filters(filters)
    wanted = None if columns is None else tuple(columns)
    probe: SearchQuery = Nearest((0.0,)) if distance else as_query("any")
    asked = SearchRequest(query=probe, k=k, columns=wanted, filters=chosen)
    schema = pa.schema([pa.field(QUERY, pa.string()), *asked.projected(opened.schema, where=str(config.table))])
    shown = spark_schema(schema)
    as_read = reading_schema(shown)
    snapshot = opened.snapshot_id

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in answers(batches, searcher, snapshot, asked):
            yield from (for_spark(each, as_read) for each in table.to_batches())

    return queries.select(column).mapInArrow(answer, shown)


def answers(
    batches: Iterable[pa.RecordBatch], searcher: LakeSearcher, snapshot_id: int, asked: SearchRequest
) -> Iterator[pa.Table]:
    """Answer the queries in the only column of ``batches``. Executor.

    Args:
        batches: The queries.
        searcher: What searches.
        snapshot_id: The snapshot that all of them see.
        asked: The parameters of each, but for its query.

    Yields:
        The answer to each query, with the query as the first column.
    """
    opened = None
    for batch in batches:
        for text in batch.column(0).to_pylist():
            if text is None:
                continue
            query = as_query(query_from_json(text) if text.lstrip().startswith("{") else text)
            request = replace(asked, query=query)
            if request.measure != asked.measure:
                raise ConfigError(
                    f"the query {text!r:.80} has {request.measure}, and the result {asked.measure}",
                    fix="Ask queries for vectors apart from others, with distance=True.",
                )
            opened = opened or searcher.at(snapshot_id)
            found = searcher.search_opened(opened, request).rows
            yield found.add_column(0, pa.field(QUERY, pa.string()), pa.array([text] * found.num_rows, pa.string()))


def _searcher(lake: Lake) -> LakeSearcher:
    return lake.searcher(lake.load_table())
