"""The metrics that Prometheus reads: the tables in the state database, and the rounds of this process."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import prometheus_client
from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from laketier.service.cache_metrics import CACHE_METRICS, cache_families
from laketier.service.file_metrics import FILE_METRICS, file_families
from laketier.service.index_metrics import INDEX_METRICS, index_families
from laketier.service.looked import SharedLook
from laketier.service.schedule import State
from laketier.service.state import Failure, Lease, StateError, StateStore, Success, TableStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TABLES_WITH_SERIES = 1000
"""Where a service has more tables, those in trouble and those farthest behind have series; the sums are of all."""
BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0)


@dataclass(frozen=True)
class TableMetric:
    """One series per table. ``value``: None gives none, as nothing is known yet."""

    name: str
    kind: str
    doc: str
    value: Callable[[TableStatus], float | None]


TABLE_METRICS = (
    TableMetric("laketier_table_lag_offsets", "gauge", "Offsets that the last round left in the source.",
                lambda each: each.table.lag_offsets),
    TableMetric("laketier_table_lag_seconds", "gauge",
                "How much newer the newest record was that the last round left than all that the lake holds, at most.",
                lambda each: each.table.lag_seconds),
    TableMetric("laketier_table_behind_seconds", "gauge", "How old what the lake holds is, at most.",
                lambda each: each.behind_seconds),
    TableMetric("laketier_table_freshness_seconds", "gauge", "How old it may be: the table's freshness.",
                lambda each: each.table.freshness_seconds),
    TableMetric("laketier_table_fresh", "gauge", "1 when it is within its freshness, else 0.",
                lambda each: each.fresh),
    TableMetric("laketier_table_failures", "gauge", "Rounds that failed in a row.",
                lambda each: each.table.failures),
    TableMetric("laketier_table_deaths", "gauge", "Workers in a row that died in rounds of it, and were charged to it.",
                lambda each: each.table.deaths),
    TableMetric("laketier_table_rounds_total", "counter", "Rounds that were published or found nothing new.",
                lambda each: each.table.rounds_total),
    TableMetric("laketier_table_rows_total", "counter", "Rows published.", lambda each: each.table.rows_total),
    TableMetric("laketier_table_bytes_total", "counter", "Bytes of the files published.",
                lambda each: each.table.bytes_total),
    TableMetric("laketier_table_files_total", "counter", "Files published.", lambda each: each.table.files_total),
    TableMetric("laketier_table_bad_records_total", "counter", "Records that were left out as they are no rows.",
                lambda each: each.table.bad_records_total),
)  # fmt: skip


@dataclass(frozen=True)
class ServiceMetric:
    """One series for all tables together, also those that have none of their own."""

    name: str
    kind: str
    doc: str
    value: Callable[[Sequence[TableStatus]], float]


def _total(name: str) -> Callable[[Sequence[TableStatus]], float]:
    return lambda statuses: sum(getattr(each.table, name) or 0 for each in statuses)


def _is_tiered(status: TableStatus) -> bool:
    return status.table.state not in (State.DROPPED, State.RECREATED, State.PAUSED)


def _behind(status: TableStatus) -> float:
    """An alert must not take a table that never got there for one that is fresh."""
    known_for = max(0, status.at - status.table.registered_at) / 1000
    return known_for if status.behind_seconds is None else status.behind_seconds


SERVICE_METRICS = (
    ServiceMetric("laketier_service_late", "gauge", "Tables that are not within their freshness, without paused ones.",
                  lambda statuses: sum(_is_tiered(each) and not each.fresh for each in statuses)),
    ServiceMetric("laketier_service_behind_seconds", "gauge",
                  "How far the table is behind that is it the most; one that was never tiered, since it is known.",
                  lambda statuses: max((_behind(each) for each in statuses if _is_tiered(each)), default=0)),
    ServiceMetric("laketier_service_lag_offsets", "gauge", "Offsets that the last rounds left in the sources.",
                  _total("lag_offsets")),
    ServiceMetric("laketier_service_rounds_total", "counter", "Rounds of all tables.", _total("rounds_total")),
    ServiceMetric("laketier_service_rows_total", "counter", "Rows published of all tables.", _total("rows_total")),
    ServiceMetric("laketier_service_bytes_total", "counter", "Bytes published of all tables.", _total("bytes_total")),
    ServiceMetric("laketier_service_files_total", "counter", "Files published of all tables.", _total("files_total")),
    ServiceMetric("laketier_service_bad_records_total", "counter", "Records left out of all tables.",
                  _total("bad_records_total")),
)  # fmt: skip

TABLES = ("laketier_service_tables", "Tables in each state.")
STATE = ("laketier_table_state", "1 for the state that the table is in.")
WORKERS = ("laketier_workers", "Workers of the service that gave a sign within a lease's time.")
DATABASE_UP = ("laketier_state_database_up", "1 when the state database answers and takes writes, else 0.")
ROUNDS = ("laketier_worker_rounds_total", "Rounds that this worker ended, by how.")
ENDINGS = ("tiered", "force-completed", "failed", "stopped")
"""The values of the label ``ending``."""
SECONDS = ("laketier_worker_round_seconds", "From the lease to the end of a round of this worker.")

METRICS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (TABLES[0], "gauge", ("service", "state"), TABLES[1]),
    *((each.name, each.kind, ("service",), each.doc) for each in SERVICE_METRICS),
    *((each.name, each.kind, ("service", "table"), each.doc) for each in TABLE_METRICS),
    (STATE[0], "gauge", ("service", "table", "state"), STATE[1]),
    (WORKERS[0], "gauge", ("service",), WORKERS[1]),
    (DATABASE_UP[0], "gauge", ("service",), DATABASE_UP[1]),
    (ROUNDS[0], "counter", ("ending",), ROUNDS[1]),
    (SECONDS[0], "histogram", (), SECONDS[1]),
    *INDEX_METRICS,
    *CACHE_METRICS,
    *FILE_METRICS,
)
"""Name, kind, labels and meaning of each; the page about metrics says the same."""


class TableCollector(Collector):
    """Looks once per scrape. A database that does not answer is a metric, not an error: what this process counts must
    still be read. ``most``: tables with series of their own."""

    def __init__(self, look: SharedLook, lease_seconds: float, most: int = TABLES_WITH_SERIES) -> None:
        self._look = look
        self._lease_seconds = lease_seconds
        self._most = most

    def collect(self) -> Iterator[Metric]:
        """See `Collector`."""
        service = self._look.service
        up = GaugeMetricFamily(*DATABASE_UP, labels=["service"])
        try:
            looked = self._look.now()
        except StateError:
            up.add_metric([service], 0)
            yield up
            yield from cache_families()
            yield from file_families()
            return
        up.add_metric([service], int(self._look.refuses is None))
        yield up
        yield from cache_families()
        yield from file_families()
        alive = GaugeMetricFamily(*WORKERS, labels=["service"])
        alive.add_metric([service], sum(each.is_heard_of(looked.at, self._lease_seconds) for each in looked.workers))
        yield alive
        statuses = one_per_name(looked.statuses)
        yield from _service_families(service, statuses)
        shown = with_series(statuses, self._most)
        yield from _families(service, shown)
        yield from index_families(service, shown)

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask the database."""
        return []


def one_per_name(statuses: Sequence[TableStatus]) -> list[TableStatus]:
    """A recreated table is two registrations of one name; a series may be there only once, so it is the newest's,
    or that of the older one that was taken up again."""

    def order(status: TableStatus) -> tuple[bool, int]:
        return status.table.state is not State.RECREATED, status.table.id

    return list({each.table.name: each for each in sorted(statuses, key=order)}.values())


def with_series(statuses: Sequence[TableStatus], most: int) -> Sequence[TableStatus]:
    """Those that have series of their own: all, or where they are too many those in trouble, then those farthest
    behind."""
    if len(statuses) <= most:
        return statuses
    troubled = (State.STOPPED, State.FAILED)

    def urgency(status: TableStatus) -> tuple[bool, bool, float]:
        tiered = _is_tiered(status)
        return status.table.state not in troubled, not tiered or status.fresh, -(status.behind_seconds or 0)

    return heapq.nsmallest(most, statuses, key=urgency)


def counted(statuses: Sequence[TableStatus]) -> dict[State, int]:
    """How many tables are in each state, also in those in which none is."""
    return dict.fromkeys(State, 0) | Counter(each.table.state for each in statuses)


def _service_families(service: str, statuses: Sequence[TableStatus]) -> Iterator[Metric]:
    tables = GaugeMetricFamily(*TABLES, labels=["service", "state"])
    for state, count in counted(statuses).items():
        tables.add_metric([service, state.value], count)
    yield tables
    for metric in SERVICE_METRICS:
        family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        made = family(metric.name, metric.doc, labels=["service"])
        made.add_metric([service], metric.value(statuses))
        yield made


def _families(service: str, statuses: Sequence[TableStatus]) -> Iterator[Metric]:
    for metric in TABLE_METRICS:
        family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        made = family(metric.name, metric.doc, labels=["service", "table"])
        for each in statuses:
            value = metric.value(each)
            if value is not None:
                made.add_metric([service, each.table.name], value)
        yield made
    states = GaugeMetricFamily(*STATE, labels=["service", "table", "state"])
    for each in statuses:
        states.add_metric([service, each.table.name, each.table.state.value], 1)
    yield states


def ending_of(result: Success | Failure) -> str:
    """The label ``ending`` of a round."""
    if isinstance(result, Failure):
        return "failed" if result.retryable else "stopped"
    return "force-completed" if result.force_completed else "tiered"


def seconds_of(lease: Lease, at: int) -> float | None:
    """How long a round took that ended at ``at`` (ms since the epoch), None where its start is unknown."""
    return None if lease.table.leased_at is None else max(0, at - lease.table.leased_at) / 1000


class RoundMetrics(Protocol):
    """Counts rounds."""

    def ended(self, lease: Lease, result: Success | Failure, at: int) -> None:
        """``at``: ms since the epoch."""
        ...


class WorkerMetrics:
    """The work of this process since its start."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rounds = prometheus_client.Counter(*ROUNDS, ["ending"], registry=registry)
        for ending in ENDINGS:
            # A rate needs the zero before the first one.
            self._rounds.labels(ending)
        self._seconds = Histogram(*SECONDS, buckets=BUCKETS, registry=registry)

    def ended(self, lease: Lease, result: Success | Failure, at: int) -> None:
        """``at``: ms since the epoch."""
        self._rounds.labels(ending_of(result)).inc()
        seconds = seconds_of(lease, at)
        if seconds is not None:
            self._seconds.observe(seconds)


class MeasuredStore(StateStore):
    """A worker's state store that counts the rounds which end through it. Set ``metrics`` before it is used."""

    metrics: tuple[RoundMetrics, ...] = ()

    def finish_all(self, results: Sequence[tuple[Lease, Success | Failure | None]]) -> tuple[Lease, ...]:
        """See `StateStore.finish_all`. Lost leases are not counted: their rounds are another worker's. Nor are those
        that were given back: they had none."""
        lost = super().finish_all(results)
        if self.metrics:
            gone = {lease.table.id for lease in lost}
            now = self.now()
            for lease, result in results:
                if result is not None and lease.table.id not in gone:
                    for metrics in self.metrics:
                        metrics.ended(lease, result, now)
        return lost


def new_registry() -> CollectorRegistry:
    """A registry of this process: its CPU time and memory are in it (``process_*``)."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry


def prometheus_text(registry: CollectorRegistry) -> bytes:
    """The text format. Asks the state database."""
    return generate_latest(registry)
