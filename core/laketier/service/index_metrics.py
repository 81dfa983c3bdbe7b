"""The metrics of indexes that the service keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from laketier.maintenance.index_policy import built_age
from laketier.service.state import IndexFigures, TableStatus


@dataclass(frozen=True)
class IndexMetric:
    """One series per index. ``value`` takes the index and the time in ms; None gives no series."""

    name: str
    doc: str
    value: Callable[[IndexFigures, int], float | None]


INDEX_METRICS_OF = (
    IndexMetric("laketier_index_tail_share", "The share of the rows that queries look through without the index.",
                lambda each, _: each.tail_share),
    IndexMetric("laketier_index_tail_rows", "The rows that the index does not cover.",
                lambda each, _: each.rows_not_indexed),
    IndexMetric("laketier_index_rows", "The rows that it covers.", lambda each, _: each.rows_indexed),
    IndexMetric("laketier_index_deleted_rows", "Rows that were deleted and that it still counts.",
                lambda each, _: each.rows_deleted),
    IndexMetric("laketier_index_segments", "Its segments.", lambda each, _: each.segments),
    IndexMetric("laketier_index_built_seconds", "The age of its newest segment.",
                lambda each, at: built_age(each.built_at, at)),
    IndexMetric("laketier_index_failed", "1 when its last upkeep failed, else 0.",
                lambda each, _: each.error is not None),
)  # fmt: skip

STEPS = ("laketier_table_index_steps_total", "Appends, merges and builds of the table's indexes.")
FAILURES = ("laketier_table_index_failures_total", "Times that the upkeep of the table's indexes failed.")

INDEX_METRICS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    *((each.name, "gauge", ("service", "table", "index"), each.doc) for each in INDEX_METRICS_OF),
    (STEPS[0], "counter", ("service", "table"), STEPS[1]),
    (FAILURES[0], "counter", ("service", "table"), FAILURES[1]),
)
"""Name, kind, labels and meaning of each."""


def index_families(service: str, statuses: Sequence[TableStatus]) -> Iterator[Metric]:
    """The series of the tables that have indexes to keep, as their last upkeep told."""
    kept = [(each, each.upkeep) for each in statuses if each.upkeep is not None]
    for metric in INDEX_METRICS_OF:
        made = GaugeMetricFamily(metric.name, metric.doc, labels=["service", "table", "index"])
        for status, upkeep in kept:
            for each in upkeep.indexes:
                value = metric.value(each, status.at)
                if value is not None:
                    made.add_metric([service, status.table.name, each.name], value)
        yield made
    steps = CounterMetricFamily(*STEPS, labels=["service", "table"])
    failures = CounterMetricFamily(*FAILURES, labels=["service", "table"])
    for status, upkeep in kept:
        steps.add_metric([service, status.table.name], upkeep.steps_total)
        failures.add_metric([service, status.table.name], upkeep.failures_total)
    yield steps
    yield failures
