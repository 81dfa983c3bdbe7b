"""The same metrics through OpenTelemetry: pushed over OTLP when the standard environment variables ask for it."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from laketier.service.metrics import (
    BUCKETS,
    DATABASE_UP,
    ROUNDS,
    SECONDS,
    SERVICE_METRICS,
    STATE,
    TABLE_METRICS,
    TABLES,
    TABLES_WITH_SERIES,
    WORKERS,
    counted,
    ending_of,
    one_per_name,
    seconds_of,
    with_series,
)
from laketier.service.state import Failure, Lease, StateError, StateStore, Success, TableStatus
from laketier.spi import ConfigError

log = logging.getLogger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTER = "OTEL_METRICS_EXPORTER"
_SPOKEN = "http/protobuf"
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
def exporting(
    store: StateStore, lease_seconds: float, worker: str, most: int = TABLES_WITH_SERIES
) -> Iterator[OtelMetrics | None]:
    """Export as the environment says, and a last time at the end. None, and a warning, where the SDK is missing. Asks
    ``store`` at each export, in a thread of its own. Raises `ConfigError` for variables that the SDK refuses."""
    if importlib.util.find_spec("opentelemetry") is None:
        log.warning("the environment asks for metrics over OTLP, which needs laketier's extra `otel`: there are none")
        yield None
        return
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    try:
        provider = provider_of(PeriodicExportingMetricReader(OTLPMetricExporter()), worker)
    except ValueError as error:
        raise ConfigError(
            "the OTEL_* variables can't be read",
            where="the environment",
            why=str(error),
            fix="Check them against OpenTelemetry's documentation.",
        ) from error
    try:
        yield OtelMetrics.of(provider, store, lease_seconds, most)
    finally:
        provider.shutdown()


def provider_of(reader: Any, worker: str) -> Any:
    """A provider of the SDK, which names this worker. It does not become the process's."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource

    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({SERVICE_INSTANCE_ID: worker, **({} if named else {SERVICE_NAME: "laketier"})})
    return MeterProvider([reader], resource=resource, shutdown_on_exit=False)


@dataclass
class _Looked:
    """What the state database said, once for all instruments of one collection: the next one begins when an
    instrument asks again. One thread at a time."""

    store: StateStore
    lease_seconds: float
    most: int
    asked: set[str] = field(default_factory=set)
    every: Sequence[TableStatus] | None = None
    statuses: Sequence[TableStatus] | None = None
    alive: int = 0

    def at(self, instrument: str) -> _Looked:
        if not self.asked or instrument in self.asked:
            self.asked = set()
            try:
                statuses, workers = self.store.snapshot(), self.store.workers()
            except StateError as error:
                log.warning("the metrics of the tables could not be read: %s", error)
                self.every = self.statuses = None
            else:
                self.every = one_per_name(statuses)
                self.statuses = with_series(self.every, self.most)
                now = self.store.now()
                self.alive = sum(each.is_heard_of(now, self.lease_seconds) for each in workers)
        self.asked.add(instrument)
        return self


class OtelMetrics:
    """The instruments of one worker. Their names are those of Prometheus, counters without ``_total``."""

    def __init__(self, rounds: Any, seconds: Any) -> None:
        """Use `of`."""
        self._rounds = rounds
        self._seconds = seconds

    @classmethod
    def of(cls, provider: Any, store: StateStore, lease_seconds: float, most: int = TABLES_WITH_SERIES) -> OtelMetrics:
        """Make them. ``store`` is asked whenever they are collected."""
        meter = provider.get_meter("laketier")
        looked, service = _Looked(store, lease_seconds, most), store.service

        def observed(kind: str, name: str, doc: str, values: Callable[[_Looked], Iterator[Any]]) -> None:
            make = meter.create_observable_counter if kind == "counter" else meter.create_observable_gauge
            make(instrument_name(name), [lambda _: values(looked.at(name))], unit=_unit(name), description=doc)

        for metric in TABLE_METRICS:
            observed(metric.kind, metric.name, metric.doc, _of_tables(service, metric.value))
        for each in SERVICE_METRICS:
            observed(each.kind, each.name, each.doc, _of_all(service, each.value))
        observed("gauge", *TABLES, _counts(service))
        observed("gauge", *STATE, _states(service))
        observed("gauge", *WORKERS, lambda seen: iter(() if seen.statuses is None else [_at(seen.alive, service)]))
        observed("gauge", *DATABASE_UP, lambda seen: iter([_at(int(seen.statuses is not None), service)]))
        rounds = meter.create_counter(instrument_name(ROUNDS[0]), description=ROUNDS[1])
        seconds = meter.create_histogram(
            SECONDS[0], unit="s", description=SECONDS[1], explicit_bucket_boundaries_advisory=list(BUCKETS)
        )
        return cls(rounds, seconds)

    def ended(self, lease: Lease, result: Success | Failure, at: int) -> None:
        """A round of this worker. ``at``: ms since the epoch."""
        self._rounds.add(1, {"ending": ending_of(result)})
        seconds = seconds_of(lease, at)
        if seconds is not None:
            self._seconds.record(seconds)


def instrument_name(name: str) -> str:
    """What an instrument is called whose metric Prometheus calls ``name``."""
    return name.removesuffix("_total")


def _unit(name: str) -> str:
    return next((unit for ending, unit in _UNITS.items() if instrument_name(name).endswith(ending)), "1")


def _of_tables(service: str, value: Callable[[TableStatus], float | None]) -> Callable[[_Looked], Iterator[Any]]:
    def values(looked: _Looked) -> Iterator[Any]:
        for each in looked.statuses or ():
            known = value(each)
            if known is not None:
                yield _at(float(known), service, table=each.table.name)

    return values


def _states(service: str) -> Callable[[_Looked], Iterator[Any]]:
    def values(looked: _Looked) -> Iterator[Any]:
        for each in looked.statuses or ():
            yield _at(1, service, table=each.table.name, state=each.table.state.value)

    return values


def _of_all(service: str, value: Callable[[Sequence[TableStatus]], float]) -> Callable[[_Looked], Iterator[Any]]:
    return lambda looked: iter(() if looked.every is None else [_at(float(value(looked.every)), service)])


def _counts(service: str) -> Callable[[_Looked], Iterator[Any]]:
    def values(looked: _Looked) -> Iterator[Any]:
        if looked.every is not None:
            for state, count in counted(looked.every).items():
                yield _at(count, service, state=state.value)

    return values


def _at(value: float, service: str, **labels: str) -> Any:
    from opentelemetry.metrics import Observation

    return Observation(value, {"service": service, **labels})
