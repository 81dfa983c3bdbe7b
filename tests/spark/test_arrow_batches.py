"""The Arrow batch setting: bounded by the schema's width, held while ours run, and given back."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from laketier.spark.arrow_batches import MAX_BYTES, MAX_RECORDS, UNBOUNDED, arrow_batches, batch_limits

NARROW = pa.schema({"a": pa.int64(), "b": pa.float64()})
WIDE = pa.schema({"v": pa.list_(pa.float32(), 1536)})
TEXTS = pa.schema({"s": pa.string()})
BLOBS = pa.schema({"id": pa.int64(), "s": pa.struct({"blob": pa.binary()})})


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    own = spark.newSession()
    yield own
    for key in (MAX_BYTES, MAX_RECORDS):
        own.conf.unset(key)


def explicit(session: SparkSession) -> tuple[str | None, str | None]:
    settings = session.conf.getAll
    return settings.get(MAX_BYTES), settings.get(MAX_RECORDS)


def fail_if_lifted(session: SparkSession) -> None:
    if explicit(session) == (str(UNBOUNDED), "500"):
        raise ZeroDivisionError


def test_rows_are_bounded_by_width() -> None:
    assert batch_limits(NARROW).max_records == 65_536
    assert batch_limits(WIDE).max_records == 64 * 1024 * 1024 // (4 * 1536)
    assert batch_limits(pa.schema({"v": pa.list_(pa.float64(), 10_000_000)})).max_records == 256
    assert batch_limits(NARROW).lift_bytes
    assert not batch_limits(BLOBS).lift_bytes, "no schema tells how long a blob is"


def test_set_and_unset(session: SparkSession) -> None:
    with arrow_batches(session, NARROW):
        assert explicit(session) == (str(UNBOUNDED), "65536")
    assert explicit(session) == (None, None)


def test_what_the_user_set_comes_back_and_a_tighter_bound_stays(session: SparkSession) -> None:
    session.conf.set(MAX_BYTES, "1000000")
    session.conf.set(MAX_RECORDS, "500")
    with pytest.raises(ZeroDivisionError), arrow_batches(session, NARROW):
        fail_if_lifted(session)
    assert explicit(session) == ("1000000", "500")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.list_(pa.string()), pa.struct({"s": pa.string()})])
def test_texts_of_a_batch_fit_into_arrow(kind: pa.DataType) -> None:
    """A batch has 2 GiB of text at most, as offsets have 31 bits. No schema tells how long texts are."""
    limits = batch_limits(pa.schema({"s": kind}))
    assert limits.lift_bytes
    assert limits.max_records * 128 * 1024 <= 2**31


def test_a_bound_of_bytes_that_the_user_set_is_kept_by_rows_where_their_width_is_known(session: SparkSession) -> None:
    session.conf.set(MAX_BYTES, "16000")
    with arrow_batches(session, NARROW):
        assert explicit(session) == (str(UNBOUNDED), "1000")
    session.conf.set(MAX_BYTES, "1")
    with arrow_batches(session, NARROW):
        assert explicit(session) == (str(UNBOUNDED), "1")
    session.conf.set(MAX_BYTES, "1m")
    with arrow_batches(session, NARROW):
        assert explicit(session) == ("1m", "65536"), "Spark knows what that means"
    session.conf.set(MAX_BYTES, str(UNBOUNDED))
    with arrow_batches(session, TEXTS):
        assert explicit(session)[0] == str(UNBOUNDED)


@pytest.mark.deep
def test_a_bound_of_bytes_that_the_user_set_holds_for_long_texts(session: SparkSession) -> None:
    """By Spark, row for row. Without it, these 40 MB would be one batch."""
    session.conf.set(MAX_BYTES, str(4 * 1024 * 1024))
    rows = session.range(0, 40, numPartitions=1).selectExpr("repeat('x', 1024 * 1024) AS s")

    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch([pa.array([batch.nbytes])], names=["size"])

    with arrow_batches(session, TEXTS):
        found = [row["size"] for row in rows.mapInArrow(sizes, "size long").collect()]
    assert sum(found) > 40 * 1024 * 1024
    assert max(found) <= 6 * 1024 * 1024


def test_blobs_keep_sparks_own_bound(session: SparkSession) -> None:
    with arrow_batches(session, BLOBS):
        assert explicit(session)[0] is None


def test_concurrent_jobs_share_the_tightest_and_the_last_one_restores(session: SparkSession) -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with arrow_batches(session, WIDE):
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with arrow_batches(session, NARROW):
        thread.start()
        assert inside.wait(60)
        assert explicit(session) == (str(UNBOUNDED), str(batch_limits(WIDE).max_records))
    assert explicit(session)[0] == str(UNBOUNDED), "the other job still runs"
    leave.set()
    thread.join(60)
    assert explicit(session) == (None, None)


def test_sessions_do_not_share(session: SparkSession, spark: SparkSession) -> None:
    before = explicit(spark)
    with arrow_batches(session, NARROW):
        assert explicit(spark) == before
