"""Finds the cause of a failure in Spark's message."""

from __future__ import annotations

import re

from pyspark import SparkContext
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from laketier.kit.library_errors import in_one_line
from laketier.spi import ConfigError, FeatureNotSupported, LaketierError, OffsetsExpired, StorageError, errors

_LINE = re.compile(r"^(?:laketier\.spi\.errors\.)(?P<kind>\w+): (?P<text>.*)$", re.MULTILINE)
_STATES = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}")
_QUERY = "=== Streaming Query ==="
_SHARED_CHECKPOINT = "[CONCURRENT_STREAM_LOG_UPDATE]"
_LONGEST = 1000
_SQL_STATE = re.compile(r" SQLSTATE: [0-9A-Z]{5}\s*\Z")
GONE = "Spark is gone: its JVM died, or its context was stopped"
GONE_FIX = (
    "Start it again: the tables say where each goes on. If that comes back, look for the end of the JVM in the log of "
    "the kernel (memory) and in that of the cluster."
)
_DEATHS = ("Python worker exited unexpectedly", "exited caused by one of the running tasks")
_CALL = "An error occurred while calling "
_TRACEBACK = "Traceback (most recent call last):"
_CLASS = re.compile(r"^: [\w.$]+: ")
_UNSUPPORTED = re.compile(
    r"(?:the format|(?P<format>\S+)) does not support (?P<feature>[\w-]+)(?:, because (?P<reason>.*))?\Z"
)


def cause_of(error: BaseException) -> LaketierError | None:
    """The error of ours inside an exception of Spark's, or None.

    Spark hands an error over from its Python processes as the text of a traceback. The last error of ours in it is the
    one that ended the work; its parts are one text then.
    """
    if isinstance(error, LaketierError):
        return error
    found = list(_LINE.finditer(f"{error}"))
    for match in reversed(found):
        kind = getattr(errors, match["kind"], None)
        if isinstance(kind, type) and issubclass(kind, LaketierError):
            text = _SQL_STATE.sub("", match["text"])
            rebuilt = kind.__new__(kind, text)
            LaketierError.__init__(rebuilt, text)
            _complete(rebuilt, text)
            return rebuilt
    return None


def told_of_spark(error: PySparkException, where: str) -> LaketierError:
    """What a job that Spark ended says: the error of ours in it, or else Spark's own reason without its pages around
    it, which stay in ``__cause__``. ``where``: the table."""
    found = cause_of(error)
    if found is not None:
        return found
    text = (error.getMessage() or str(error)).partition(_QUERY)[0]
    why = " ".join(_STATES.sub("", text).partition("\nJVM stacktrace")[0].split())[:_LONGEST]
    if _SHARED_CHECKPOINT in text:
        return ConfigError(
            "another run has the checkpoint of this stream",
            where=where,
            why=why,
            fix="No row is lost or doubled. Wait until the other run has ended; or give each stream a checkpoint and a "
            "pipeline of its own.",
        )
    return StorageError(
        "Spark could not run the job",
        where=where,
        why=why,
        fix="Mend what Spark names, in the source, in `sql` or in the cluster, and run the job again: what it has "
        "published is not published again where it has a pipeline.",
    )


def why_ended(error: BaseException) -> str:
    """Why a job ended, in one line: Spark's reason or, where a task raised a Python error, that error. Spark has it
    between the name of a call of the bridge and pages of Java."""
    text = error.getMessage() if isinstance(error, PySparkException) else None
    told = (text or str(error)).partition("\n\tat ")[0]
    lines = [line.strip() for line in told.splitlines() if line.strip() and not line.startswith(_CALL)]
    if not lines:
        return type(error).__name__
    is_python = any(line.endswith(_TRACEBACK) for line in lines)
    return _CLASS.sub("", lines[-1] if is_python else lines[0])[:_LONGEST]


def is_of_a_death(error: BaseException) -> bool:
    """Whether a job ended as the process of one of its tasks died, and not by an error that Python raised in it, nor
    as an executor was taken away."""
    return any(death in str(error) for death in _DEATHS)


def why_gone(context: SparkContext) -> str | None:
    """Why no job can run in a context any more; None where one can. Driver."""
    try:
        context.defaultParallelism  # noqa: B018 - Spark answers it as long as it runs
    except Exception as error:  # noqa: BLE001 - the bridge to the JVM has several
        return in_one_line(str(error)) or type(error).__name__
    return None


def _complete(error: LaketierError, text: str) -> None:
    """Give it what an error of its kind has beside its text, so far as the text tells."""
    if isinstance(error, FeatureNotSupported):
        told = _UNSUPPORTED.match(text)
        parts = told.groupdict() if told else {}
        error.format, error.feature = parts.get("format"), parts.get("feature") or ""
        error.reason = parts.get("reason") or text
    elif isinstance(error, OffsetsExpired):
        error.gone, error.again = {}, False


def await_termination(query: StreamingQuery, timeout: float | None = None) -> bool:
    """`StreamingQuery.awaitTermination`, for a query that ended by an error of ours: raises that error, a sentence with
    the next step at the end of the output, instead of Spark's pages around it (they stay in ``__context__``). Driver.

    Returns whether the query has ended (always, without ``timeout``, in seconds). Raises what Spark raises where the
    error is none of ours.
    """
    try:
        if timeout is None:
            query.awaitTermination()
            return True
        return bool(query.awaitTermination(timeout))  # type: ignore[arg-type] # floats are fine, says its code
    except StreamingQueryException as error:
        cause = cause_of(error)
        if cause is None:
            raise
        raise cause from None
