"""Searching in Spark SQL: ``SELECT * FROM laketier_search('db.papers', 'snow on lakes', 10)``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from laketier.config import LakeConfig
from laketier.registry import Lake, open_lake
from laketier.spark.schema import for_spark, reading_schema, spark_schema
from laketier.spark.target import as_config
from laketier.spi import ConfigError, SearchQuery, SearchRequest, TablePath, as_query, query_from_json

NAME = "laketier_search"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ANY_TABLE = "any.table"
"""Stands for the table while the other keys are looked at: a call names its own."""
_USAGE = f"{NAME}('db.table', 'words', 10)"


def register_search(spark: SparkSession, config: Mapping[str, Any], *, name: str = NAME) -> None:
    """Make a table function of Spark SQL that searches tables of one lake. Driver.

    ``SELECT * FROM laketier_search('db.papers', 'snow on lakes', 10)`` has the table's columns and ``_score``, or
    ``_distance`` where the query is the JSON of a `Nearest`. With LATERAL it takes its query from each row of another
    table. The table and ``k`` are constants: they decide the columns. All rows of a call see one snapshot, that of the
    moment in which Spark analyses the statement; a view, or a DataFrame, stays with it.

    Args:
        spark: The session that has the function.
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
    function: Any = udtf(_handler(lake))
    spark.udtf.register(name, function)


@dataclass
class _Analysed(AnalyzeResult):
    """What the analysis found, handed to each task."""

    snapshot_id: int = 0


def _handler(config: LakeConfig) -> type:
    """The class that Spark asks. It holds the configuration by value, as its processes have no other way to it."""

    class Search:
        @staticmethod
        def analyze(table: AnalyzeArgument, query: AnalyzeArgument, k: AnalyzeArgument | None = None) -> AnalyzeResult:
            lake = _lake(config, _constant(table, "table"))
            asked = _request("any" if query.value is None else query.value, _rows(k))
            opened = lake.searcher(lake.load_table()).at()
            schema = asked.projected(opened.schema, where=str(lake.config.table))
            return _Analysed(spark_schema(schema), snapshot_id=opened.snapshot_id)

        def __init__(self, analysed: _Analysed) -> None:
            self._schema = analysed.schema
            self._snapshot_id = analysed.snapshot_id
            self._opened: Any = None

        def eval(self, table: str, query: str, k: int = 10) -> Iterator[tuple[Any, ...]]:
            if query is None:
                return
            if self._opened is None:
                lake = _lake(config, table)
                self._opened = lake.searcher(lake.load_table()).at(self._snapshot_id)
            request = _request(query, k)
            if request.measure not in self._schema.fieldNames():
                raise ConfigError(
                    f"the query {query!r:.80} has {request.measure}, and the result has not",
                    why="the columns are known before the rows, and only a constant query can be one for vectors",
                    fix="Use `search_many` of `laketier.spark` with distance=True.",
                )
            as_read = reading_schema(self._schema)
            for batch in self._opened.search(request).rows.to_batches():
                for row in for_spark(batch, as_read).to_pylist(maps_as_pydicts="strict"):
                    yield tuple(row.values())

    return Search


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


def _request(query: str, k: int) -> SearchRequest:
    if not isinstance(query, str):
        raise ConfigError(f"the query {query!r:.80} is no text", where=NAME, fix=f"Call it as {_USAGE}.")
    asked: SearchQuery = query_from_json(query) if query.lstrip().startswith("{") else as_query(query)
    return SearchRequest(query=asked, k=k)
