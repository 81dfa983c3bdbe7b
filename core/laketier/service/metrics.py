"""What Prometheus reads: the tables as the state database has them when it asks, and the rounds of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from laketier.service.schedule import State
from laketier.service.state import Failure, Lease, Outcome, StateError, StateStore, TableStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
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
    TableMetric("laketier_table_deaths", "gauge", "Workers in a row that died in rounds of it, which ran alone.",
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

STATE = ("laketier_table_state", "1 for the state that the table is in, 0 for the others.")
WORKERS = ("laketier_workers", "Workers of the service that gave a sign within a lease's time.")
DATABASE_UP = ("laketier_state_database_up", "1 when the state database answered, else 0; then no table is shown.")
ROUNDS = ("laketier_worker_rounds_total", "Rounds that this worker ended, by how.")
SECONDS = ("laketier_worker_round_seconds", "From the lease to the end of a round of this worker.")

METRICS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    *((each.name, each.kind, ("service", "table"), each.doc) for each in TABLE_METRICS),
    (STATE[0], "gauge", ("service", "table", "state"), STATE[1]),
    (WORKERS[0], "gauge", ("service",), WORKERS[1]),
    (DATABASE_UP[0], "gauge", ("service",), DATABASE_UP[1]),
    (ROUNDS[0], "counter", ("ending",), ROUNDS[1]),
    (SECONDS[0], "histogram", (), SECONDS[1]),
)
"""Name, kind, labels and meaning of each; the page about metrics says the same."""


class TableCollector(Collector):
    """Asks the state database once per scrape. A database that does not answer is a metric, not an error: what this
    process counts must still be read."""

    def __init__(self, store: StateStore, lease_seconds: float) -> None:
        self._store = store
        self._lease_seconds = lease_seconds

    def collect(self) -> Iterator[Metric]:
        """See `Collector`."""
        service = self._store.service
        up = GaugeMetricFamily(*DATABASE_UP, labels=["service"])
        try:
            statuses, workers = self._store.snapshot(), self._store.workers()
        except StateError:
            up.add_metric([service], 0)
            yield up
            return
        up.add_metric([service], 1)
        yield up
        since = self._store.now() - self._lease_seconds * 1000
        alive = GaugeMetricFamily(*WORKERS, labels=["service"])
        alive.add_metric([service], sum(each.heartbeat_at >= since for each in workers))
        yield alive
        yield from _families(service, one_per_name(statuses))

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask the database."""
        return []


def one_per_name(statuses: Sequence[TableStatus]) -> list[TableStatus]:
    """A recreated table is two registrations of one name; a series may be there only once, so it is the newest's."""
    return list({each.table.name: each for each in sorted(statuses, key=lambda each: each.table.id)}.values())


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
        for state in State:
            states.add_metric([service, each.table.name, state.value], each.table.state is state)
    yield states


def ending_of(result: Outcome | Failure) -> str:
    """The label ``ending`` of a round."""
    if isinstance(result, Failure):
        return "failed" if result.retryable else "stopped"
    return "force-completed" if result.force_completed else "tiered"


def seconds_of(lease: Lease, at: int) -> float | None:
    """How long a round took that ended at ``at`` (ms since the epoch), None where its start is unknown."""
    return None if lease.table.leased_at is None else max(0, at - lease.table.leased_at) / 1000


class RoundMetrics(Protocol):
    """Counts rounds."""

    def ended(self, lease: Lease, result: Outcome | Failure, at: int) -> None:
        """``at``: ms since the epoch."""
        ...


class WorkerMetrics:
    """What this process did since its start."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rounds = Counter(*ROUNDS, ["ending"], registry=registry)
        for ending in ("tiered", "force-completed", "failed", "stopped"):
            # A rate needs the zero before the first one.
            self._rounds.labels(ending)
        self._seconds = Histogram(*SECONDS, buckets=BUCKETS, registry=registry)

    def ended(self, lease: Lease, result: Outcome | Failure, at: int) -> None:
        """``at``: ms since the epoch."""
        self._rounds.labels(ending_of(result)).inc()
        seconds = seconds_of(lease, at)
        if seconds is not None:
            self._seconds.observe(seconds)


class MeasuredStore(StateStore):
    """A worker's state store that counts the rounds which end through it. Set ``metrics`` before it is used."""

    metrics: tuple[RoundMetrics, ...] = ()

    def finish_all(self, results: Sequence[tuple[Lease, Outcome | Failure]]) -> tuple[Lease, ...]:
        """See `StateStore.finish_all`. Lost leases are not counted: their rounds are another worker's."""
        lost = super().finish_all(results)
        if self.metrics:
            gone = {lease.table.id for lease in lost}
            now = self.now()
            for lease, result in results:
                if lease.table.id not in gone:
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
