"""Finds the cause of a failure in Spark's message."""

from __future__ import annotations

import re

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from laketier.spi import FeatureNotSupported, LaketierError, OffsetsExpired, errors

_LINE = re.compile(r"^(?:laketier\.spi\.errors\.)(?P<kind>\w+): (?P<text>.*)$", re.MULTILINE)
_SQL_STATE = re.compile(r" SQLSTATE: [0-9A-Z]{5}\s*\Z")
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


def _complete(error: LaketierError, text: str) -> None:
    """Give it what an error of its kind has beside its text, so far as the text tells."""
    if isinstance(error, FeatureNotSupported):
        told = _UNSUPPORTED.match(text)
        parts = told.groupdict() if told else {}
        error.format, error.feature = parts.get("format"), parts.get("feature") or ""
        error.reason = parts.get("reason") or text
    elif isinstance(error, OffsetsExpired):
        error.gone = {}


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
