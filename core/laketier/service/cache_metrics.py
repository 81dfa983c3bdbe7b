"""The metrics of what this process keeps of tables."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from laketier.tables import metadata_cache

LOOKUPS = (
    "laketier_cache_lookups_total",
    "Descriptions of tables that this worker asked for, by where they came from.",
)
FOUND = {
    "memory": "memory_hits",
    "disk": "disk_hits",
    "unchecked": "unchecked_hits",
    "shared": "shared_hits",
    "miss": "misses",
    "stale": "stale",
    "uncacheable": "uncacheable",
    "passed-by": "passed_by",
}
"""The values of the label ``found``, and their counts."""
EVENTS = ("laketier_cache_events_total", "What else happened to what this worker keeps of tables.")
HAPPENED = {
    "refreshed": "refreshes",
    "evicted": "evictions",
    "saved": "saves",
    "not-saved": "failed_saves",
    "rejected": "rejected_files",
}
"""The values of the label ``event``, and their counts."""
TABLES = ("laketier_cache_tables", "Tables of which this worker keeps a description in memory.")
BYTES = ("laketier_cache_bytes", "What this worker keeps of tables in memory, about.")
OLDEST = ("laketier_cache_oldest_seconds", "The age of the oldest description that this worker keeps in memory.")

CACHE_METRICS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (LOOKUPS[0], "counter", ("found",), LOOKUPS[1]),
    (EVENTS[0], "counter", ("event",), EVENTS[1]),
    (TABLES[0], "gauge", (), TABLES[1]),
    (BYTES[0], "gauge", (), BYTES[1]),
    (OLDEST[0], "gauge", (), OLDEST[1]),
)
"""Name, kind, labels and meaning of each."""


def cache_families() -> Iterator[Metric]:
    """The series as they are now."""
    now = metadata_cache().statistics()
    for (name, doc), label, counts in ((LOOKUPS, "found", FOUND), (EVENTS, "event", HAPPENED)):
        family = CounterMetricFamily(name, doc, labels=[label])
        for value, count in counts.items():
            family.add_metric([value], now.counts[count])
        yield family
    for gauge, amount in ((TABLES, now.tables), (BYTES, now.bytes), (OLDEST, now.oldest_seconds or 0)):
        yield GaugeMetricFamily(*gauge, value=amount)
