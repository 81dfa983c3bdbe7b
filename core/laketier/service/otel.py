"""Pushes the metrics over OTLP, when OpenTelemetry's own environment variables ask for it."""

from __future__ import annotations

import importlib.util
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from prometheus_client.core import Metric

from laketier.service.metrics import (
    BUCKETS,
    DATABASE_UP,
    ENDINGS,
    ROUNDS,
    SECONDS,
    TableCollector,
    ending_of,
    seconds_of,
)
from laketier.service.state import Failure, Lease, Success
from laketier.spi import ConfigError

log = logging.getLogger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTER = "OTEL_METRICS_EXPORTER"
_SPOKEN = "http/protobuf"
_TEMPORALITY = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
_UNKNOWN = 0
"""The start of a series with an unknown start. The totals of tables are older than this process: a receiver must not
take them for counts of this process."""
_UNITS = {"_seconds": "s", "_bytes": "By"}


def is_asked_for(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment asks for metrics over OTLP. Raises `ConfigError` for an exporter or a protocol that is
    not there."""
    exporter = environment.get(_EXPORTER, "").strip().lower()
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return False
    if not exporter and not any(environment.get(name) for name in _ENDPOINTS):
        return False
    if exporter not in ("", "otlp"):
        raise ConfigError(
            f"{_EXPORTER} = {exporter!r} is not supported",
            where="the environment",
            fix=f"Set {_EXPORTER} to otlp or none.",
        )
    name = next((name for name in _PROTOCOLS if environment.get(name)), _PROTOCOLS[-1])
    spoken = environment.get(name) or _SPOKEN
    if spoken != _SPOKEN:
        raise ConfigError(f"{name} = {spoken!r} is not supported", where="the environment", fix=f"Set it to {_SPOKEN}.")
    return True


@contextmanager
def exporting(collector: TableCollector, worker: str) -> Iterator[OtelMetrics | None]:
    """Export in a thread of its own, as the environment says, and a last time at the end.

    Args:
        collector: Finds the metrics of the tables. It is asked at each export.
        worker: The worker's id.

    Returns:
        What counts the rounds of this worker. None, and a warning, where the SDK is missing.

    Raises:
        ConfigError: The SDK refuses the variables.
    """
    if importlib.util.find_spec("opentelemetry") is None:
        log.warning("the environment asks for metrics over OTLP, which needs laketier's extra `otel`: there are none")
        yield None
        return
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader

    asked = os.environ.get(_TEMPORALITY, "").strip().upper()
    tables = TableSeries(collector, is_delta=asked == AggregationTemporality.DELTA.name)
    try:
        provider = provider_of(PeriodicExportingMetricReader(with_tables(OTLPMetricExporter, tables)()), worker)
    except ValueError as error:
        raise ConfigError(
            "the OTEL_* variables can't be read",
            where="the environment",
            why=str(error),
            fix="Check them against OpenTelemetry's documentation.",
        ) from error
    try:
        yield OtelMetrics(provider, tables)
    finally:
        provider.shutdown()


def provider_of(reader: Any, worker: str) -> Any:
    """Make a provider of the SDK, which names this worker. It does not become the process's."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource

    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({SERVICE_INSTANCE_ID: worker, **({} if named else {SERVICE_NAME: "laketier"})})
    return MeterProvider([reader], resource=resource, shutdown_on_exit=False)


@dataclass
class TableSeries:
    """The series of the tables, as /metrics has them, in OpenTelemetry's form. One thread at a time.

    They are no instruments of the SDK: an instrument keeps each table that it ever saw, and merges all beyond 2000 into
    one series. ``is_delta``: sums are sent as what was added since the export before.
    """

    collector: TableCollector
    is_delta: bool = False
    _families: Sequence[Metric] = ()
    _sent: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)
    _sent_at: int = _UNKNOWN

    def look(self, _options: object = None) -> Iterator[Any]:
        """Observe whether the state database answers, and keep the rest for `metrics`. The SDK asks this at each
        collection. It exports nothing unless an instrument has a value, and this one always has."""
        from opentelemetry.metrics import Observation

        up, *self._families = self.collector.collect()
        for each in up.samples:
            yield Observation(each.value, each.labels)

    def metrics(self) -> list[Any]:
        """The results of the last `look`."""
        from opentelemetry.sdk.metrics.export import Gauge, NumberDataPoint
        from opentelemetry.sdk.metrics.export import Metric as Sent

        now, found = time.time_ns(), []
        sent: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in self._families:
            if family.type == "counter":
                sent |= {(family.name, frozenset(each.labels.items())): float(each.value) for each in family.samples}
                data = self._sum(family, now)
            else:
                data = Gauge(
                    [NumberDataPoint(each.labels, _UNKNOWN, now, float(each.value)) for each in family.samples]
                )
            if data.data_points:
                found.append(Sent(instrument_name(family.name), family.documentation, _unit(family.name), data))
        self._sent, self._sent_at = sent, now
        return found

    def _sum(self, family: Metric, now: int) -> Any:
        from opentelemetry.sdk.metrics.export import AggregationTemporality, NumberDataPoint, Sum

        points = []
        for each in family.samples:
            value, start = float(each.value), _UNKNOWN
            if self.is_delta:
                before = self._sent.get((family.name, frozenset(each.labels.items())))
                if before is None:
                    continue
                # A table that was recreated counts from 0.
                value, start = value - before if value >= before else value, self._sent_at
            points.append(NumberDataPoint(each.labels, start, now, value))
        kind = AggregationTemporality.DELTA if self.is_delta else AggregationTemporality.CUMULATIVE
        return Sum(points, kind, is_monotonic=True)


def with_tables(exporter: type, tables: TableSeries) -> type:
    """Make a kind of ``exporter`` that sends the series of the tables, too."""

    class WithTables(exporter):
        def export(self, metrics_data: Any, *arguments: Any, **named: Any) -> Any:
            first, *others = metrics_data.resource_metrics
            scope, *scopes = first.scope_metrics
            scope = replace(scope, metrics=[*scope.metrics, *tables.metrics()])
            first = replace(first, scope_metrics=[scope, *scopes])
            return super().export(replace(metrics_data, resource_metrics=[first, *others]), *arguments, **named)

    return WithTables


class OtelMetrics:
    """The instruments of one worker. Their names are those of Prometheus, counters without ``_total``."""

    def __init__(self, provider: Any, tables: TableSeries) -> None:
        meter = provider.get_meter("laketier")
        meter.create_observable_gauge(DATABASE_UP[0], [tables.look], description=DATABASE_UP[1])
        self._rounds = meter.create_counter(instrument_name(ROUNDS[0]), description=ROUNDS[1])
        self._seconds = meter.create_histogram(
            SECONDS[0], unit="s", description=SECONDS[1], explicit_bucket_boundaries_advisory=list(BUCKETS)
        )
        for ending in ENDINGS:
            # As in /metrics: a rate needs the zero before the first one.
            self._rounds.add(0, {"ending": ending})

    def ended(self, lease: Lease, result: Success | Failure, at: int) -> None:
        """A round of this worker. ``at``: ms since the epoch."""
        self._rounds.add(1, {"ending": ending_of(result)})
        seconds = seconds_of(lease, at)
        if seconds is not None:
            self._seconds.record(seconds)


def instrument_name(name: str) -> str:
    """The name of the instrument for a metric of Prometheus."""
    return name.removesuffix("_total")


def _unit(name: str) -> str:
    """Empty for a count: a unit of 1 becomes a suffix ``_ratio`` where a collector hands gauges to Prometheus."""
    return next((unit for suffix, unit in _UNITS.items() if instrument_name(name).endswith(suffix)), "")
