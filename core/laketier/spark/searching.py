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
    FeatureNotSupported,
    LakeSearcher,
    Nearest,
    Predicate,
    SearchQuery,
    SearchRequest,
    SerializationError,
    as_query,
    query_of_text,
)
from laketier.spi.asked import as_columns, as_filters

QUERY = "_query"
"""The column of the results of many queries that holds the query."""
ERROR = "_error"
"""The column that says why a query has no answer, where that is asked for."""


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
    words: bool = False,
    errors: bool = False,
) -> DataFrame:
    """Search a table for each row of a DataFrame, in tasks. Each task opens the snapshot once. Driver.

    All queries see one snapshot, that of now or ``lake.snapshot-id``, also where Spark computes the result again. In a
    foreachBatch, each batch sees the table of its time. A query that is there twice is answered twice.

    Args:
        spark: The session.
        config: The table.
        queries: The queries, as texts in ``column``: words, or JSON where the first character is ``{``
            (`laketier.spi.query_of_text`). Null has no rows.
        column: Their column.
        k: The number of rows per query, at most.
        columns: The columns of the result. None for all.
        filters: Predicates that each row has to fulfil.
        distance: Whether all queries are `Nearest`, so that the result has ``_distance`` instead of ``_score``.
        words: Whether each query is words, whatever it begins with. For what users type.
        errors: Whether a query that can't be answered, as it is empty, no query, or does not fit the table, becomes a
            row with nothing but ``_query`` and the reason in ``_error``. Else it ends the job.

    Returns:
        The best rows of each query, with the query in ``_query``. With ``errors`` also ``_error``, null for an answer.

    Raises:
        ConfigError: The DataFrame has no such column of text, or more than one, or is a stream; or the table has a
            column ``_query`` or ``_error``. In a task, without ``errors``: a query does not fit the table.
        SnapshotNotFound: In a task: the snapshot was cleaned up, or the table was made anew.
        FeatureNotSupported: The format does not search.
    """
    config = as_config(config, spark)
    asked_for = _queries(queries, column)
    lake = open_lake(config)
    searcher = _searcher(lake)
    opened = searcher.at(config.snapshot_id)
    probe: SearchQuery = Nearest((0.0,)) if distance else as_query("any")
    asked = SearchRequest(query=probe, k=k, columns=as_columns(columns), filters=as_filters(filters))
    found = asked.projected(opened.schema, where=str(config.table))
    own = [QUERY, *([ERROR] if errors else [])]
    taken = sorted(name for name in found.names if name.lower() in own)
    if taken:
        raise ConfigError(
            f"the table has a column {', '.join(taken)}",
            where=str(config.table),
            why="`search_many` gives that name to its own",
            fix="Leave it out of the columns that are asked for, or rename it.",
        )
    if errors:  # a query without an answer has no values
        found = pa.schema([*(field.with_nullable(True) for field in found), pa.field(ERROR, pa.string())])
    schema = pa.schema([pa.field(QUERY, pa.string()), *found])
    shown = spark_schema(schema)
    as_read = reading_schema(shown)
    chosen = opened.snapshot_id, opened.identity

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in answers(batches, searcher, *chosen, asked, words=words, schema=schema, errors=errors):
            yield from (for_spark(each, as_read) for each in table.to_batches())

    return asked_for.mapInArrow(answer, shown)


def _queries(queries: DataFrame, column: str) -> DataFrame:
    """The column of the queries, alone. Raises `ConfigError`."""
    kinds = [kind for name, kind in queries.dtypes if name == column]
    if kinds != ["string"]:
        raise ConfigError(
            f"the queries have no column {column!r} of text" if len(kinds) < 2 else f"{column!r} is there twice",
            where="the DataFrame of queries",
            why=f"they have {', '.join(f'{name} {kind}' for name, kind in queries.dtypes)}",
            fix="Name it with column=….",
        )
    if queries.isStreaming:
        raise ConfigError(
            "the queries are a stream",
            where="the DataFrame of queries",
            why="all of its queries would see the table of this moment",
            fix="Call `search_many` in a foreachBatch: each batch then sees the table of its time.",
        )
    escaped = column.replace("`", "``")
    return queries.selectExpr(f"`{escaped}` AS query")  # `mapInArrow` can't take a name with a dot


def answers(
    batches: Iterable[pa.RecordBatch],
    searcher: LakeSearcher,
    snapshot_id: int,
    identity: str,
    asked: SearchRequest,
    *,
    words: bool,
    schema: pa.Schema,
    errors: bool,
) -> Iterator[pa.Table]:
    """Answer the queries in the only column of ``batches``. Executor.

    Args:
        batches: The queries: one column of text, with any number of rows. Null is no query, and has no answer.
        searcher: What searches.
        snapshot_id: The snapshot that all of them see.
        identity: Its identity, as the driver saw it.
        asked: The parameters of each, but for its query.
        words: Whether each query is words.
        schema: The schema of the result.
        errors: Whether what is wrong with a query becomes a row.

    Yields:
        The answer to each query: a table of ``schema`` with at most ``asked.k`` rows; the query is its first column.
    """
    opened = None
    for batch in batches:
        for text in batch.column(0).to_pylist():
            if text is None:
                continue
            opened = opened or searcher.at_again(snapshot_id, identity)
            try:
                found = searcher.search_opened(opened, _request(text, asked, words=words)).rows
            except (ConfigError, SerializationError, FeatureNotSupported) as error:
                if not errors:
                    raise
                nothing = {name: [None] for name in schema.names}
                yield pa.table(nothing | {QUERY: [text], ERROR: [str(error)]}, schema=schema)
                continue
            every = [pa.array([text] * found.num_rows, pa.string()), *found.columns]
            yield pa.table([*every, *([pa.nulls(found.num_rows, pa.string())] if errors else [])], schema=schema)


def _request(text: str, asked: SearchRequest, *, words: bool) -> SearchRequest:
    request = replace(asked, query=query_of_text(text, words=words))
    if request.measure != asked.measure:
        raise ConfigError(
            f"the query {text!r:.80} has {request.measure}, and the result {asked.measure}",
            fix="Ask queries for vectors apart from others, with distance=True.",
        )
    return request


def _searcher(lake: Lake) -> LakeSearcher:
    return lake.searcher(lake.load_table())
