"""Searching in Spark SQL: ``SELECT * FROM laketier_search('db.papers', 'snow on lakes', 10)``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.types import ArrayType, DoubleType, LongType, MapType, StringType, StructField, StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from laketier.config import LakeConfig
from laketier.kit import predicate_from_json, predicate_to_json
from laketier.registry import Lake, open_lake
from laketier.spark.schema import for_spark, reading_schema, spark_schema
from laketier.spark.target import as_config
from laketier.spi import (
    ConfigError,
    LakeSearcher,
    Predicate,
    SearchRequest,
    SearchResult,
    SearchSnapshot,
    TablePath,
    query_of_text,
)
from laketier.tables.comparisons import parse_filter

NAME = "laketier_search"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ANY_TABLE = "any.table"
"""Stands for the table while the other keys are looked at: a call names its own."""
_USAGE = f"{NAME}('db.table', 'words', 10)"
_WORDED = f"{NAME}('db.table', query, 10, words => true)"
_FILTERED = f"{NAME}('db.table', 'words', 10, filter => 'id < 100')"


def register_search(spark: SparkSession, config: Mapping[str, Any], *, name: str = NAME) -> None:
    """Make table functions of Spark SQL that search tables of one lake. Driver.

    ``SELECT * FROM laketier_search('db.papers', 'snow on lakes', 10)`` has the table's columns and ``_score``, or
    ``_distance`` where the query is the JSON of a `Nearest`. With LATERAL it takes its query from each row of another
    table. The table and ``k`` are constants: they decide the columns. All rows of a call see one snapshot, that of the
    moment in which Spark analyses the statement; a view, or a DataFrame, stays with it.

    ``filter => 'id < 100'`` chooses the rows that are searched: a comparison, as ``--where`` of the command takes it,
    an array of several that all have to hold, or a predicate as JSON (`laketier.kit.predicate_to_json`). It is a
    constant.

    A query whose first character is ``{`` is JSON. With ``words => true`` each query is words, whatever it begins with:
    for what users type. A query that can't be answered ends the statement; `search_many` can tell instead.

    A second function, ``<name>_explain``, takes the same and tells how it was searched: a row for each index that was
    used, or one without, with the rows that no index covers and the milliseconds of each part.

    Args:
        spark: The session that has the functions.
        config: The lake, without ``lake.table``.
        name: The name of the function.

    Raises:
        ConfigError: The configuration has ``lake.table`` or a snapshot, or is not valid, or the name is no word.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name of a function", fix="Use a word of a-z, 0-9 and _.")
    if "lake.table" in config:
        raise ConfigError("lake.table is set", why="each call of the function names its table", fix="Leave it out.")
    lake = as_config({**config, "lake.table": _ANY_TABLE}, spark)
    if lake.snapshot_id is not None or lake.as_of is not None:
        raise ConfigError(
            "a snapshot is set", why="the function is for many tables", fix="Use `search` of `laketier.spark` for one."
        )
    for called, handler in ((name, _handler(lake)), (f"{name}_explain", _explaining(lake))):
        function: Any = udtf(handler)
        spark.udtf.register(called, function)


@dataclass
class _Analysed(AnalyzeResult):
    """What the analysis found, handed to each task."""

    snapshot_id: int = 0
    identity: str = ""
    filters: str = "[]"

    @classmethod
    def of(cls, schema: StructType, opened: SearchSnapshot, asked: SearchRequest) -> _Analysed:
        filters = json.dumps([predicate_to_json(each) for each in asked.filters])
        return cls(schema, snapshot_id=opened.snapshot_id, identity=opened.identity, filters=filters)


_EXPLAINED = StructType(
    [
        StructField("query", StringType()),
        StructField("index", StringType()),
        StructField("column", StringType()),
        StructField("kind", StringType()),
        StructField("rows_in_index", LongType()),
        StructField("rows", LongType(), nullable=False),
        StructField("rows_flat", LongType(), nullable=False),
        StructField("share", DoubleType(), nullable=False),
        StructField("found", LongType(), nullable=False),
        StructField("snapshot_id", LongType(), nullable=False),
        StructField("milliseconds", MapType(StringType(), DoubleType()), nullable=False),
        StructField("notes", ArrayType(StringType()), nullable=False),
    ]
)
"""One row for each index that was used; without one, a row whose ``index`` is null."""


def _analyzing(config: LakeConfig, columns: StructType | None = None) -> Any:
    """The method that Spark calls to analyse a call, before there is a row. Both functions take the same arguments.
    ``columns``: those of the rows that the function gives; by default those of the table and of the score."""

    def analyze(
        table: AnalyzeArgument,
        query: AnalyzeArgument,
        k: AnalyzeArgument | None = None,
        filter: AnalyzeArgument | None = None,
        words: AnalyzeArgument | None = None,
    ) -> AnalyzeResult:
        named = _constant(table, "table")
        lake = _lake(config, named)
        opened = lake.searcher(lake.load_table()).at()
        filters = _filters(filter, opened.schema)
        if words is not None and type(words.value) is not bool:
            raise ConfigError("words is neither true nor false", where=NAME, fix=f"Call it as {_WORDED}.")
        typed = words is not None and bool(words.value)
        asked = _request("any" if query.value is None else query.value, _rows(k), filters, words=typed)
        given = spark_schema(asked.projected(opened.schema, where=named)) if columns is None else columns
        return _Analysed.of(given, opened, asked)

    return staticmethod(analyze)


def _handler(config: LakeConfig) -> type:
    """The class that Spark asks. It holds the configuration by value, as its processes have no other way to it."""

    class Search:
        analyze = _analyzing(config)

        def __init__(self, analysed: _Analysed) -> None:
            self._schema = analysed.schema
            self._asking = _Asking(config, analysed)

        def eval(
            self, table: str, query: str, k: int = 10, filter: Any = None, words: bool = False
        ) -> Iterator[tuple[Any, ...]]:
            found = self._asking.answer(table, query, k, words, self._schema.fieldNames())
            as_read = reading_schema(self._schema)
            for batch in [] if found is None else found.rows.to_batches():
                for row in for_spark(batch, as_read).to_pylist(maps_as_pydicts="strict"):
                    yield tuple(row.values())

    return Search


def _explaining(config: LakeConfig) -> type:
    """As `_handler`, for the function that tells how."""

    class Explain:
        analyze = _analyzing(config, _EXPLAINED)

        def __init__(self, analysed: _Analysed) -> None:
            self._asking = _Asking(config, analysed)

        def eval(
            self, table: str, query: str, k: int = 10, filter: Any = None, words: bool = False
        ) -> Iterator[tuple[Any, ...]]:
            found = self._asking.answer(table, query, k, words)
            if found is None:
                return
            told = found.explain
            figures = (told.rows, told.rows_flat, told.share, found.rows.num_rows, found.snapshot_id)
            for use in told.indexes or (None,):
                index = (None,) * 4 if use is None else (use.name, use.column, use.kind, use.rows)
                yield (query, *index, *figures, dict(told.milliseconds), list(told.notes))

    return Explain


class _Asking:
    """The snapshot of a statement, opened by a task with its first query."""

    def __init__(self, config: LakeConfig, analysed: _Analysed) -> None:
        self._config = config
        self._snapshot = (analysed.snapshot_id, analysed.identity)
        self._filters = tuple(predicate_from_json(each) for each in json.loads(analysed.filters))
        self._searcher: LakeSearcher | None = None
        self._opened: SearchSnapshot | None = None

    def answer(
        self, table: str, query: str | None, k: int, words: bool, columns: Sequence[str] | None = None
    ) -> SearchResult | None:
        """The answer to a query. None for none. ``columns``: those that the result has to have."""
        if query is None:
            return None
        request = _request(query, k, self._filters, words=words)
        if columns is not None and request.measure not in columns:
            raise ConfigError(
                f"the query {query!r:.80} has {request.measure}, and the result has not",
                why="the columns are known before the rows, and only a constant query can be one for vectors",
                fix="Use `search_many` of `laketier.spark` with distance=True.",
            )
        if self._opened is None:
            lake = _lake(self._config, table)
            self._searcher = lake.searcher(lake.load_table())
            self._opened = self._searcher.at_again(*self._snapshot)
        assert self._searcher is not None
        return self._searcher.search_opened(self._opened, request)


def _filters(argument: AnalyzeArgument | None, schema: pa.Schema) -> tuple[Predicate, ...]:
    if argument is None:
        return ()
    given = argument.value
    if not isinstance(given, str | list) or not all(isinstance(each, str) for each in given):
        raise ConfigError(
            "filter is neither a constant text nor a constant array of texts",
            where=NAME,
            fix=f"Call it as {_FILTERED}.",
        )
    texts = [given] if isinstance(given, str) else given
    return tuple(
        predicate_from_json(text) if text.lstrip().startswith("{") else parse_filter(text, schema, option="filter")
        for text in texts
    )


def _lake(config: LakeConfig, table: str) -> Lake:
    return open_lake(replace(config, table=TablePath.parse(table)))


def _constant(argument: AnalyzeArgument, name: str) -> str:
    if not isinstance(argument.value, str):
        raise ConfigError(f"{name} is no constant text", where=NAME, fix=f"Call it as {_USAGE}.")
    return argument.value


def _rows(k: AnalyzeArgument | None) -> int:
    if k is None:
        return 10
    if type(k.value) is not int:
        raise ConfigError("k is no constant number", where=NAME, fix=f"Call it as {_USAGE}.")
    return k.value


def _request(query: str, k: int, filters: Sequence[Predicate], *, words: bool) -> SearchRequest:
    if not isinstance(query, str):
        raise ConfigError(f"the query {query!r:.80} is no text", where=NAME, fix=f"Call it as {_USAGE}.")
    return SearchRequest(query=query_of_text(query, words=words), k=k, filters=tuple(filters))
