"""Sessions that have a SparkContext, and those of Spark Connect, which have none."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

from laketier.spi import FeatureNotSupported


def is_connect(session: Any) -> bool:
    """Whether the session has a server of its own, and so no JVM here."""
    return "connect" in type(session).__module__.split(".")


def context_of(session: Any, work: str, *, fix: str = "") -> SparkContext:
    """The context of a session. Driver.

    Args:
        session: The session.
        work: What needs it, as in "`tier`".
        fix: What to do instead.

    Raises:
        FeatureNotSupported: The session is one of Spark Connect.
    """
    if is_connect(session):
        fix = fix or "Call it in a session of the driver's own, without `remote`."
        raise FeatureNotSupported(work, format="Spark Connect", reason="its sessions have no SparkContext", fix=fix)
    context: SparkContext = session.sparkContext
    return context
