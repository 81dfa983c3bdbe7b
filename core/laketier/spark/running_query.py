"""The streaming query whose foreachBatch runs now, as the driver's JVM knows it.

PySpark gives a foreachBatch no way to its query. The JVM keeps the running ones in the state that all sessions share.
What of it is asked here is internal to Spark, so an answer of None means that nothing is known, never that nothing
runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from laketier.spark.classic import is_connect

_QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True)
class RunningQuery:
    """``id`` lives as long as the checkpoint, ``run_id`` as long as this start of the query. ``output_mode`` as Spark
    spells it: Append, Update or Complete."""

    id: str
    run_id: str
    checkpoint: str
    output_mode: str


def running_query(df: DataFrame) -> RunningQuery | None:
    """The query that handed ``df`` to a foreachBatch. Driver, any thread. None where that can't be told."""
    session: Any = df.sparkSession
    if is_connect(session):
        return None
    try:
        named = session.sparkContext.getLocalProperty(_QUERY_ID)
        for query in _running(session):
            # A thread that the function started has no properties, but the batch has the query's own session.
            if query.id().toString() == named or query.sparkSessionForStream().equals(session._jsparkSession):
                return RunningQuery(
                    query.id().toString(),
                    query.runId().toString(),
                    query.resolvedCheckpointRoot(),
                    query.outputMode().toString(),
                )
    except (Py4JError, PySparkException, AttributeError, TypeError):
        return None
    return None


def in_foreach_batch(df: DataFrame) -> bool:
    """Whether this thread runs a foreachBatch, as far as it can be told."""
    session: Any = df.sparkSession
    return not is_connect(session) and session.sparkContext.getLocalProperty(_QUERY_ID) is not None


def _running(session: Any) -> Iterator[Any]:
    for query in session._jsparkSession.sharedState().activeStreamingQueries().values():
        yield query.streamingQuery() if "Wrapper" in query.getClass().getName() else query


def files_hash(df: DataFrame) -> int:
    """A hash of the files that ``df`` reads, whatever their order. Driver. Made in the JVM where there is one: to fetch
    their names takes 0.1 ms for each."""
    if not is_connect(df.sparkSession):
        try:
            made: Any = df
            sequences = made.sparkSession._jvm.scala.collection.mutable.ArraySeq
            return int(sequences.make(made._jdf.inputFiles()).toSet().hashCode())
        except (Py4JError, PySparkException, AttributeError, TypeError):
            pass
    return hash(frozenset(df.inputFiles()))


def working_folder(session: Any) -> str | None:
    """The folder that the session's JVM works in; None on Spark Connect."""
    if is_connect(session):
        return None
    return str(session._jvm.java.lang.System.getProperty("user.dir"))
