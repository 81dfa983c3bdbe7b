"""The session that Spark knows in a thread. It looks for a Python data source to write to in that session alone, and a
thread of the user's has none: there ``format("laketier")`` was not found (Spark 4.3.0)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from laketier.spark.classic import is_connect


@contextmanager
def known_here(session: SparkSession) -> Iterator[None]:
    """Let Spark know a session in this thread, within the block. Driver."""
    if is_connect(session):
        yield
        return
    sessions, ours = _in_jvm(session)
    before = sessions.getActiveSession()
    sessions.setActiveSession(ours)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def make_known(session: SparkSession) -> None:
    """Let Spark know a session in this thread from now on, if it knows none there. Driver."""
    if not is_connect(session):
        sessions, ours = _in_jvm(session)
        if not sessions.getActiveSession().isDefined():
            sessions.setActiveSession(ours)


def _in_jvm(session: Any) -> tuple[Any, Any]:
    """The class of sessions, and this one."""
    return session._jvm.org.apache.spark.sql.classic.SparkSession, session._jsparkSession
