"""Searching from Spark with what users may give: odd names, wrong queries, tables that are made anew meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame, SparkSession

import laketier
import laketier.spark
from laketier.registry import configure, open_lake
from laketier.spi import ConfigError, Match, Nearest, query_to_json
from spark_lake import Target

lance = pytest.importorskip("lance")
pytest.importorskip("laketier_lance")

ODD = ("a b", "a'b", 'a"b', "ü 中", "query_id", "k", "select")


@pytest.fixture
def target(tmp_path: Path) -> Target:
    target = Target(tmp_path, "lance", "db.t")
    _made(target, ["snow on lake", "snow on {lake}", "stone"])
    return target


def _made(target: Target, texts: list[str], **more: pa.Array) -> None:
    """By Lance alone: Spark is not what is tested here."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(n) for n in range(4 * len(texts))], pa.float32()), 4)
    columns: dict[str, Any] = {"id": range(len(texts)), "text": texts, "vector": vectors, **more}
    columns |= {name: range(len(texts)) for name in ODD}
    folder = Path(configure(target.options()).warehouse) / "db" / "t.lance"
    folder.parent.mkdir(parents=True, exist_ok=True)
    lance.write_dataset(pa.table(columns), folder).create_scalar_index("text", "INVERTED")


def _queries(spark: SparkSession, *texts: str | None, column: str = "query") -> DataFrame:
    return spark.createDataFrame([(text,) for text in texts], f"`{column.replace('`', '``')}` string").coalesce(1)


def _found(df: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.select(*columns).collect())


def test_odd_names_of_columns(spark: SparkSession, target: Target) -> None:
    plain = laketier.search(target.options(), "snow").rows
    assert plain.column_names == ["id", "text", "vector", *ODD, "_score"]
    assert laketier.spark.search(spark, target.options(), "snow").columns == plain.column_names
    for name in ("a.b", "a`b", "a b", "ü"):
        queries = _queries(spark, "stone", column=name)
        assert _found(laketier.spark.search_many(spark, target.options(), queries, column=name), "id") == [(2,)]


@pytest.mark.parametrize("columns", ["id", 5, b"id"])
def test_columns_are_a_list(spark: SparkSession, target: Target, columns: Any) -> None:
    for call in (
        lambda: laketier.search(target.options(), "snow", columns=columns),
        lambda: laketier.spark.search(spark, target.options(), "snow", columns=columns),
        lambda: laketier.spark.search_many(spark, target.options(), _queries(spark, "snow"), columns=columns),
    ):
        with pytest.raises(ConfigError, match="columns is"):
            call()


def test_queries_that_are_no_column_of_text(spark: SparkSession, target: Target) -> None:
    twice = spark.sql("SELECT 'a' AS query, 'b' AS query")
    stream = spark.readStream.format("rate").load().selectExpr("string(value) AS query")
    for queries, says in (
        (spark.range(1), "no column 'query' of text"),
        (spark.range(1).withColumnRenamed("id", "query"), "query bigint"),
        (twice, "there twice"),
        (stream, "foreachBatch"),
    ):
        with pytest.raises(ConfigError, match=says):
            laketier.spark.search_many(spark, target.options(), queries)


def test_no_queries_have_no_answers(spark: SparkSession, target: Target) -> None:
    none = spark.createDataFrame([], "query string")
    for queries in (none, none.repartition(3), _queries(spark, None, None)):
        found = laketier.spark.search_many(spark, target.options(), queries, columns=["id"])
        assert (found.columns, found.collect()) == (["_query", "id", "_score"], [])


@pytest.mark.deep
def test_a_brace_is_json_unless_queries_are_words(spark: SparkSession, target: Target) -> None:
    laketier.spark.register_search(spark, _lake(target))
    typed, as_json = "{lake} on", query_to_json(Match("stone"))
    both = _queries(spark, typed, as_json)
    with pytest.raises(PythonException, match="a query is not JSON"):
        laketier.spark.search_many(spark, target.options(), both).collect()
    worded = laketier.spark.search_many(spark, target.options(), both, words=True)
    assert _found(worded, "_query", "id") == [(as_json, 2), (typed, 0), (typed, 1)]
    sql = "SELECT id FROM laketier_search('db.t', '{lake} on', 10"
    assert _found(spark.sql(f"{sql}, words => true)"), "id") == [(0,), (1,)]
    for more, says in (("", "a query is not JSON"), (", words => 'yes'", "neither true nor false")):
        with pytest.raises((AnalysisException, PythonException), match=says):
            spark.sql(f"{sql}{more})").collect()


@pytest.mark.every(2)
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_queries_that_are_there_twice_null_or_cached(spark: SparkSession, target: Target, adaptive: str) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.adaptive.enabled", adaptive)
    asked = _queries(other, "stone", None, "snow", "stone", "zzz").repartition(3).cache()
    found = laketier.spark.search_many(other, target.options(), asked, columns=["id"])
    expected = [("snow", 0), ("snow", 1), ("stone", 2), ("stone", 2)]
    assert _found(found, "_query", "id") == expected
    asked.unpersist()
    assert _found(found.cache(), "_query", "id") == expected
    # Joined with itself and grouped, so that adaptive execution has stages to change.
    assert _found(found.groupBy("_query").count(), "_query", "count") == [("snow", 2), ("stone", 2)]
    assert found.join(asked.distinct(), found["_query"] == asked["query"]).count() == 4
    found.unpersist()
    # What one session registers, another of the same process does not have, and both can.
    laketier.spark.register_search(other, _lake(target))
    sql = "SELECT id FROM laketier_search('db.t', 'snow', 10)"
    assert _found(other.sql(sql), "id") == [(0,), (1,)]
    laketier.spark.register_search(spark, _lake(target))
    assert _found(spark.sql(sql), "id") == [(0,), (1,)]


RETRIED = """
import sys
from pyspark import TaskContext
import laketier.spark

def failing(batches):
    for batch in batches:
        yield batch
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("the answers of the first attempt are lost")

spark = laketier.spark.builder(master="local[2,2]").config("spark.speculation", "true").getOrCreate()
options = dict(pair.split("=", 1) for pair in sys.argv[1:])
asked = spark.createDataFrame([("stone",), ("snow",)], "query string").repartition(2)
found = laketier.spark.search_many(spark, options, asked, columns=["id"])
rows = found.select("_query", "id").mapInArrow(failing, "query string, id long").collect()
print(sorted(map(tuple, rows)))
"""
"""A local session tries no task again unless its master says so; hence a session of its own."""


@pytest.mark.deep
def test_a_task_that_is_tried_again_answers_once(target: Target) -> None:
    options = [f"{key}={value}" for key, value in target.options().items()]
    done = subprocess.run([sys.executable, "-c", RETRIED, *options], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["[('snow', 0), ('snow', 1), ('stone', 2)]"], done.stderr
    assert "the answers of the first attempt are lost" in done.stderr


def _lake(target: Target) -> dict[str, str]:
    return {key: value for key, value in target.options().items() if key != "lake.table"}


def test_a_query_without_an_answer_says_why_and_stops_no_other(spark: SparkSession, target: Target) -> None:
    vectors = query_to_json(Nearest((1.0, 2.0, 3.0)))
    asked = ("stone", "", "{", "a\0b", vectors, query_to_json(Match("x", column="nope")), "zzz")
    found = laketier.spark.search_many(
        spark, target.options(), _queries(spark, *asked), columns=["id"], errors=True
    ).collect()
    assert found[0].asDict() == {"_query": "stone", "id": 2, "_score": found[0]["_score"], "_error": None}
    why = {row["_query"]: row["_error"] for row in found[1:]}
    assert list(why) == list(asked[1:-1]), "one that finds nothing has no row"
    for text, says in zip(why, ("empty", "not JSON", "NUL", "_distance", "'nope'"), strict=True):
        assert says in why[text]
    assert {(row["id"], row["_score"]) for row in found[1:]} == {(None, None)}
    near = laketier.spark.search_many(
        spark, target.options(), _queries(spark, vectors), columns=["id"], distance=True, errors=True
    )
    assert "have 4 numbers" in near.collect()[0]["_error"]


@pytest.mark.parametrize("name", ["_query", "_Query", "_SCORE"])
def test_names_that_the_result_needs_are_refused(spark: SparkSession, tmp_path: Path, name: str) -> None:
    target = Target(tmp_path, "lance", "db.t")
    _made(target, ["snow"], **{name: pa.array([1])})
    with pytest.raises(ConfigError, match=name):
        laketier.spark.search_many(spark, target.options(), _queries(spark, "snow"))
    few = laketier.spark.search_many(spark, target.options(), _queries(spark, "snow"), columns=["id"])
    assert _found(few, "id") == [(0,)]


def test_the_snapshot_stays_also_where_the_result_is_computed_again(spark: SparkSession, target: Target) -> None:
    laketier.spark.register_search(spark, _lake(target))
    many = laketier.spark.search_many(spark, target.options(), _queries(spark, "snow"), columns=["id"])
    view = spark.sql("SELECT id FROM laketier_search('db.t', 'snow', 10)")
    once = laketier.spark.search(spark, target.options(), "snow", columns=["id"])
    before = [_found(each, "id") for each in (many, view, once)]
    dataset = lance.dataset(open_lake(configure(target.options())).load_table().location)
    dataset.delete("id = 0")
    assert [_found(each, "id") for each in (many, view, once)] == before == [[(0,), (1,)]] * 3


def test_a_table_that_is_made_anew_answers_for_no_other(spark: SparkSession, target: Target) -> None:
    """Its versions have the numbers of the old one's."""
    laketier.spark.register_search(spark, _lake(target))
    many = laketier.spark.search_many(spark, target.options(), _queries(spark, "snow"), columns=["id"])
    view = spark.sql("SELECT id FROM laketier_search('db.t', 'snow', 10)")
    lake = open_lake(configure(target.options()))
    lake.storage.catalog().drop_table(lake.load_table().path)
    for frame in (many, view):
        with pytest.raises(PythonException, match="there is no Lance dataset"):
            frame.collect()
    _made(target, ["snow of another table"])
    for frame in (many, view):
        with pytest.raises(PythonException, match="is not the one that was chosen"):
            frame.collect()


def test_the_command_takes_braces_as_words(target: Target) -> None:
    from typer.testing import CliRunner

    from laketier.cli.app import app

    where = ["-f", "lance", "-w", str(configure(target.options()).warehouse), "--json", "--columns", "id"]
    done = CliRunner().invoke(app, ["search", "db.t", "{lake}", "--words", *where])
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in json.loads(done.stdout)["rows"]] == [0, 1]
    refused = CliRunner().invoke(app, ["search", "db.t", "{lake}", *where])
    assert "a query is not JSON" in str(refused.exception)
