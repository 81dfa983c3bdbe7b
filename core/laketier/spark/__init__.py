"""The engine: the Spark data source, the lanes, and reading.

- `stream(df, config, checkpoint=…)` starts ``df.writeStream.format("laketier")`` under our Arrow setting.
- `write(df, config)` writes a DataFrame as one round.
- `tier(spark, source, config)` moves a folder of Parquet, or a table, without any row crossing the JVM.
- `read(spark, config)` reads a table by the cheapest way.
- `union(spark, table, service=…)` reads lake and log as one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laketier.spark.lanes import tier, write
    from laketier.spark.reading import read
    from laketier.spark.session import builder, get_or_create
    from laketier.spark.streaming import stream
    from laketier.spark.union_read import union

_HOMES = {
    "builder": "session",
    "get_or_create": "session",
    "read": "reading",
    "stream": "streaming",
    "tier": "lanes",
    "union": "union_read",
    "write": "lanes",
}

__all__ = ["builder", "get_or_create", "read", "stream", "tier", "union", "write"]


def __getattr__(name: str) -> Any:
    """Import on first use: `session` can then say that Spark is missing, and tasks import only what they need."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in ("builder", "get_or_create"):
        from laketier.spark.session import require_pyspark

        require_pyspark()
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
