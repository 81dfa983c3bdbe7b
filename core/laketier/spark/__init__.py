"""The engine: the Spark data source, the lanes, and reading; it may use every room but `service` and `cli`.

- `stream(df, config, checkpoint=…)` starts ``df.writeStream.format("laketier")`` under our Arrow setting.
- `await_termination(query)` waits for a query, and raises an error of ours as the one sentence that it is.
- `write(df, config)` writes a DataFrame as one round.
- `write_batch(df, batch_id, config)` writes a micro-batch in a foreachBatch, exactly once.
- `tier(spark, source, config)` moves a folder of Parquet, or a table, without any row crossing the JVM.
- `read(spark, config)` reads a table by the cheapest way.
- `create_index(spark, config, column, kind)` builds an index with one task per part.
- `maintain_indexes(spark, config, policies)` keeps indexes up with a stream, between its batches.
- `search(spark, config, query)` and `search_many(spark, config, queries)` ask a table for words or vectors.
- `register_search(spark, config)` makes a function of Spark SQL of it.
- `read_union(spark, table, service=…)` reads lake and log as one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laketier.spark.failures import await_termination
    from laketier.spark.foreach_batch import write_batch
    from laketier.spark.index_upkeep import maintain_indexes
    from laketier.spark.indexing import create_index
    from laketier.spark.lanes import tier, write
    from laketier.spark.reading import read
    from laketier.spark.search_function import register_search
    from laketier.spark.searching import search, search_many
    from laketier.spark.session import builder, get_or_create
    from laketier.spark.streaming import stream
    from laketier.spark.union_read import read_union

_HOMES = {
    "await_termination": "failures",
    "builder": "session",
    "create_index": "indexing",
    "get_or_create": "session",
    "maintain_indexes": "index_upkeep",
    "read": "reading",
    "read_union": "union_read",
    "register_search": "search_function",
    "search": "searching",
    "search_many": "searching",
    "stream": "streaming",
    "tier": "lanes",
    "write": "lanes",
    "write_batch": "foreach_batch",
}

__all__ = [
    "await_termination",
    "builder",
    "create_index",
    "get_or_create",
    "maintain_indexes",
    "read",
    "read_union",
    "register_search",
    "search",
    "search_many",
    "stream",
    "tier",
    "write",
    "write_batch",
]


def __getattr__(name: str) -> Any:
    """Import on first use: `session` can then say that Spark is missing, and tasks import only what they need."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in ("builder", "get_or_create"):
        from laketier.spark.session import require_pyspark

        require_pyspark()
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
