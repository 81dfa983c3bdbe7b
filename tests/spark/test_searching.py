"""Searching from Spark: one query, many in tasks, and a stream of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

import laketier
import laketier.spark
from laketier.cli.app import app
from laketier.kit import predicate_to_json
from laketier.registry import configure, open_lake
from laketier.spi import (
    ConfigError,
    FeatureNotSupported,
    Leaf,
    Match,
    MultiMatch,
    Nearest,
    Op,
    Or,
    query_from_json,
    query_to_json,
)
from spark_lake import Target

pytest.importorskip("laketier_lance")

WORDS = ("lake", "river", "snow", "stone", "wind")


@pytest.fixture
def target(tmp_path: Path, spark: SparkSession) -> Target:
    target = Target(tmp_path, "lance")
    words = ", ".join(f"if(id % {at + 2} = 0, '{word}', null)" for at, word in enumerate(WORDS))
    text = f"concat_ws(' ', {words})"
    laketier.spark.write(spark.range(200, numPartitions=2).selectExpr("id", f"{text} AS text"), target.options())
    laketier.spark.create_index(spark, target.options(), "text", "inverted")
    laketier.spark.write(spark.range(200, 210).selectExpr("id", "'snow' AS text"), target.options())
    return target


def _plain(target: Target, query: Any, **more: Any) -> list[dict[str, Any]]:
    lake = open_lake(configure(target.options()))
    return lake.searcher(lake.load_table()).search(query, **more).rows.to_pylist()


def _found(df: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in df.select(*columns).collect()]


def test_a_search_is_a_dataframe(spark: SparkSession, target: Target) -> None:
    found = laketier.spark.search(spark, target.options(), "snow stone", k=7, filters=[Leaf("id", Op.GE, 20)])
    expected = _plain(target, "snow stone", k=7, filters=[Leaf("id", Op.GE, 20)])
    assert found.columns == ["id", "text", "_score"]
    assert [row.asDict() for row in found.collect()] == expected
    assert len(expected) == 7
    assert laketier.spark.search(spark, target.options(), "nothing").count() == 0


def test_plain_python_asks_the_same(target: Target) -> None:
    found = laketier.search(target.options(), "snow stone", k=7, columns=["id"])
    assert found.rows.to_pylist() == _plain(target, "snow stone", k=7, columns=["id"])
    earlier = laketier.search({**target.options(), "lake.snapshot-id": str(found.snapshot_id - 1)}, "snow", k=100)
    assert earlier.snapshot_id == found.snapshot_id - 1
    assert max(earlier.rows["id"].to_pylist()) < 200


def test_many_queries_are_answered_as_each_alone(spark: SparkSession, target: Target) -> None:
    asked = [*WORDS, query_to_json(Match("lake wind", operator="and")), "no such word", None]
    queries = spark.createDataFrame([(text,) for text in asked], "query string").repartition(3)
    found = _found(laketier.spark.search_many(spark, target.options(), queries, k=5), "_query", "id", "_score")
    expected = [
        (text, row["id"], row["_score"])
        for text in asked
        if text is not None
        for row in _plain(target, Match("lake wind", operator="and") if text.startswith("{") else text, k=5)
    ]
    assert sorted(found) == sorted(expected)
    assert len(expected) > 25
    few = (Leaf("id", Op.LT, 40),)
    found = _found(laketier.spark.search_many(spark, target.options(), queries, k=5, filters=few), "_query", "id")
    filtered = {text: [row["id"] for row in _plain(target, text, k=5, filters=few)] for text in WORDS}
    assert {text: sorted(row for query, row in found if query == text) for text in WORDS} == {
        text: sorted(ids) for text, ids in filtered.items()
    }
    assert all(filtered.values())
    assert max(row for _, row in found) < 40, "a filter holds for each query"


def test_a_stream_of_queries_is_answered_by_the_table_of_its_time(
    spark: SparkSession, target: Target, tmp_path: Path
) -> None:
    told: list[list[tuple[Any, ...]]] = []

    def answer(queries: DataFrame, _: int) -> None:
        told.append(_found(laketier.spark.search_many(spark, target.options(), queries, k=1000), "_query", "id"))

    asked = tmp_path / "asked"
    asked.mkdir()
    stream = spark.readStream.schema("query string").json(str(asked))
    for batch in range(2):
        (asked / f"{batch}.json").write_text(json.dumps({"query": "snow"}) + "\n", encoding="utf-8")
        checkpoint = str(tmp_path / "checkpoint")
        stream.writeStream.foreachBatch(answer).option("checkpointLocation", checkpoint).trigger(
            availableNow=True
        ).start().awaitTermination()
        laketier.spark.write(spark.range(300, 303).selectExpr("id", "'snow' AS text"), target.options())
    assert len(told[1]) == len(told[0]) + 3 > 50


def test_vectors_are_searched_in_tasks(spark: SparkSession, tmp_path: Path) -> None:
    target = Target(tmp_path, "lance", "db.vectors")
    lake = open_lake(configure(target.options()))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(n % 97) for n in range(400)], pa.float32()), 4)
    import lance

    location = Path(lake.config.warehouse) / "db" / "vectors.lance"
    lance.write_dataset(pa.table({"id": range(100), "vector": vectors}), location)
    query = query_to_json(Nearest((1.0, 2.0, 3.0, 4.0)))
    queries = spark.createDataFrame([(query,)], "query string")
    rows = laketier.spark.search_many(spark, target.options(), queries, k=3, columns=["id"], distance=True)
    assert _found(rows, "id", "_distance") == [
        (row["id"], row["_distance"]) for row in _plain(target, Nearest((1.0, 2.0, 3.0, 4.0)), k=3)
    ]


def test_what_does_not_fit_is_refused(spark: SparkSession, target: Target, tmp_path: Path) -> None:
    queries = spark.createDataFrame([("snow",)], "q string")
    with pytest.raises(ConfigError, match="no column 'query' of text"):
        laketier.spark.search_many(spark, target.options(), queries)
    with pytest.raises(ConfigError, match=r"does not take lake\.as-of"):
        laketier.spark.search(spark, target.options() | {"lake.as-of": "2026-01-01T00:00:00Z"}, "snow")
    plain = Target(tmp_path, "localfile", "db.plain")
    laketier.spark.write(spark.range(3), plain.options())
    with pytest.raises(FeatureNotSupported, match="localfile does not support search"):
        laketier.spark.search(spark, plain.options(), "snow")


def test_the_command_shows_what_was_found(target: Target) -> None:
    lake = configure(target.options())
    where = ["db.t" if lake.table is None else str(lake.table), "-f", "lance", "-w", str(lake.warehouse)]
    done = CliRunner().invoke(app, ["search", where[0], "snow stone", *where[1:], "-k", "3", "--json", "--explain"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["rows"] == _plain(target, "snow stone", k=3)
    assert told["explain"]["rows without index"] == 10
    refused = CliRunner().invoke(app, ["search", where[0], '{"type": "phrase", "text": "snow"}', *where[1:]])
    assert "has no positions" in str(refused.exception)
    refused = CliRunner().invoke(app, ["search", where[0], "snow", *where[1:], "--ef", "9"])
    assert "ef = 9 has no effect" in str(refused.exception)


@pytest.fixture
def function(spark: SparkSession, target: Target) -> str:
    laketier.spark.register_search(spark, {k: v for k, v in target.options().items() if k in LAKE})
    return "laketier_search"


LAKE = ("lake.format", "lake.warehouse")


def test_sql_asks_as_python_does(spark: SparkSession, target: Target, function: str) -> None:
    table = target.options()["lake.table"]
    rows = spark.sql(f"SELECT * FROM {function}('{table}', 'snow stone', 7)")
    assert rows.columns == ["id", "text", "_score"]
    assert [row.asDict() for row in rows.collect()] == _plain(target, "snow stone", k=7)
    asked = query_to_json(Match("lake wind", operator="and"))
    named = spark.sql(f"SELECT id FROM {function}(k => 3, query => '{asked}', table => '{table}')")
    assert [row.id for row in named.collect()] == [row["id"] for row in _plain(target, query_from_json(asked), k=3)]
    assert spark.sql(f"SELECT * FROM {function}('{table}', 'river')").count() == 10
    assert spark.sql(f"SELECT * FROM {function}('{table}', 'nothing')").count() == 0


def test_sql_asks_for_each_row_of_a_table(spark: SparkSession, target: Target, function: str) -> None:
    table = target.options()["lake.table"]
    spark.createDataFrame([(word,) for word in (*WORDS, None)], "word string").createOrReplaceTempView("asked")
    rows = spark.sql(f"SELECT word, id, _score FROM asked, LATERAL {function}('{table}', word, 2)").collect()
    expected = [(word, row["id"], row["_score"]) for word in WORDS for row in _plain(target, word, k=2)]
    assert sorted(tuple(row) for row in rows) == sorted(expected)


def test_sql_filters_before_it_searches(spark: SparkSession, target: Target, function: str) -> None:
    table = target.options()["lake.table"]
    either = predicate_to_json(Or((Leaf("id", Op.LT, 5), Leaf("id", Op.GE, 190))))
    for given, filters in [
        ("'id < 100'", [Leaf("id", Op.LT, 100)]),
        ("array('id >= 20', 'id < 100')", [Leaf("id", Op.GE, 20), Leaf("id", Op.LT, 100)]),
        (f"'{either}'", [Or((Leaf("id", Op.LT, 5), Leaf("id", Op.GE, 190)))]),
    ]:
        rows = spark.sql(f"SELECT * FROM {function}('{table}', 'snow stone', 7, filter => {given})")
        expected = _plain(target, "snow stone", k=7, filters=filters)
        assert [row.asDict() for row in rows.collect()] == expected
        assert expected
    spark.createDataFrame([(word,) for word in WORDS], "word string").createOrReplaceTempView("asked")
    each = spark.sql(
        f"SELECT word, id FROM asked, LATERAL {function}('{table}', word, 2, filter => 'id > 90')"
    ).collect()
    found = [(word, row["id"]) for word in WORDS for row in _plain(target, word, k=2, filters=[Leaf("id", Op.GT, 90)])]
    assert sorted(tuple(row) for row in each) == sorted(found)


def test_sql_tells_how_it_searched(spark: SparkSession, target: Target, function: str) -> None:
    table = target.options()["lake.table"]
    (told,) = spark.sql(f"SELECT * FROM {function}_explain('{table}', 'snow', 5, filter => 'id > 3')").collect()
    assert (told["index"], told.column, told.kind.lower()) == ("text_idx", "text", "inverted")
    assert (told.rows_in_index, told.rows, told.rows_flat, told.found) == (200, 210, 10, 5)
    assert told.share == pytest.approx(200 / 210)
    assert told.milliseconds
    assert all(time >= 0 for time in told.milliseconds.values())
    asked = query_to_json(MultiMatch("snow", ("text",)))
    assert spark.sql(f"SELECT found FROM {function}_explain('{table}', '{asked}')").first().found == 10


def test_words_of_which_nothing_is_left_are_told_each_way(
    spark: SparkSession, target: Target, function: str, caplog: pytest.LogCaptureFixture
) -> None:
    lake = configure(target.options())
    said = "index 'text_idx' leaves no word of 'the'"
    assert laketier.spark.search(spark, target.options(), "the").count() == 0
    assert said in caplog.text
    assert said in laketier.search(target.options(), "the").explain.notes[0]
    where = [str(lake.table), "-f", "lance", "-w", str(lake.warehouse)]
    done = CliRunner().invoke(app, ["search", where[0], "the", *where[1:]])
    assert (done.exit_code, said in done.stderr.replace("\n", " ")) == (0, True)
    (told,) = spark.sql(f"SELECT * FROM {function}_explain('{lake.table}', 'the')").collect()
    assert said in told.notes[0]


def test_a_statement_keeps_the_snapshot_of_its_analysis(spark: SparkSession, target: Target, function: str) -> None:
    rows = spark.sql(f"SELECT * FROM {function}('{target.options()['lake.table']}', 'zebra')")
    laketier.spark.write(spark.sql("SELECT 999L AS id, 'zebra' AS text"), target.options())
    assert rows.count() == 0
    assert spark.sql(f"SELECT * FROM {function}('{target.options()['lake.table']}', 'zebra')").count() == 1


WRONG = [
    ("'{table}'", "query"),
    ("'{table}', 'x', 0", "1 to 10,000"),
    ("'{table}', 'x', CAST(NULL AS INT)", "no constant number"),
    ("CAST(NULL AS STRING), 'x'", "no constant text"),
    ("'{table}', 7", "is no text"),
    ("'db.none', 'x'", "db.none"),
    ("'{table}', '{{\"type\": \"matsch\"}}'", "matsch"),
    ("'{table}', 'x', filter => 'idd < 3'", "there is no column 'idd'"),
    ("'{table}', 'x', filter => 3", "neither a constant text"),
    ("'{table}', 'x', filter => 'id < 3 and id > 1'", "more than one comparison"),
]


def test_sql_says_what_is_wrong(spark: SparkSession, target: Target, function: str) -> None:
    """On one table: another for each takes two writes and an index."""
    for call, said in WRONG:
        statement = f"SELECT * FROM {function}({call.format(table=target.options()['lake.table'])})"
        with pytest.raises(Exception, match=said):  # Spark wraps it
            spark.sql(statement).collect()


def test_a_query_for_vectors_from_a_row_is_refused(spark: SparkSession, target: Target, function: str) -> None:
    asked = query_to_json(Nearest((1.0,)))
    with pytest.raises(Exception, match="search_many"):  # Spark wraps it
        spark.sql(
            f"SELECT * FROM VALUES ('{asked}') AS asked(q), LATERAL {function}('{target.options()['lake.table']}', q)"
        ).collect()


def test_a_function_is_for_all_tables_at_their_newest(spark: SparkSession, target: Target) -> None:
    options = target.options()
    with pytest.raises(ConfigError, match=r"lake\.table is set"):
        laketier.spark.register_search(spark, options)
    lake = {key: options[key] for key in LAKE}
    with pytest.raises(ConfigError, match="a snapshot is set"):
        laketier.spark.register_search(spark, lake | {"lake.snapshot-id": "1"})
    with pytest.raises(ConfigError, match="no name of a function"):
        laketier.spark.register_search(spark, lake, name="a b")
