"""The metrics through OpenTelemetry: the same as Prometheus reads, in the SDK's own reader and over real OTLP."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    MetricExporter,
    MetricExportResult,
    PeriodicExportingMetricReader,
)

from laketier.service.looked import SharedLook
from laketier.service.metrics import METRICS, MeasuredStore, TableCollector
from laketier.service.otel import (
    OtelMetrics,
    TableSeries,
    exporting,
    instrument_name,
    is_asked_for,
    provider_of,
    with_tables,
)
from laketier.service.state import Failure, StateStore, Success
from laketier.spi import ConfigError
from service_page import fill
from state_tables import A, Clock, table


@pytest.fixture(autouse=True)
def _no_otel(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


class Exporter(MetricExporter):
    """Keeps what the SDK exports last."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None

    def export(self, metrics_data: Any, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        self.last = metrics_data
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        return


@dataclass
class Exports:
    """Exports on demand through the SDK."""

    provider: Any
    exporter: Any
    metrics: OtelMetrics

    def families(self) -> dict[str, Any]:
        self.exporter.last = None
        self.provider.force_flush()
        metrics = [
            each for of in self.exporter.last.resource_metrics for scope in of.scope_metrics for each in scope.metrics
        ]
        assert len({each.name for each in metrics}) == len(metrics)
        return {each.name: each for each in metrics}


@contextmanager
def _exports(store: StateStore, most: int = 1000, *, is_delta: bool = False) -> Iterator[Exports]:
    tables = TableSeries(TableCollector(SharedLook(store, 0), 30, most), is_delta)
    exporter = with_tables(Exporter, tables)()
    provider = provider_of(PeriodicExportingMetricReader(exporter, math.inf), "w1")
    try:
        yield Exports(provider, exporter, OtelMetrics(provider, tables))
    finally:
        provider.shutdown()


def _point(metric: Any, **labels: str) -> Any:
    points = [each for each in metric.data.data_points if labels.items() <= dict(each.attributes).items()]
    assert len(points) == 1
    return points[0]


def test_the_series_are_those_of_prometheus(store: StateStore, clock: Clock) -> None:
    fill(store, clock)
    with _exports(store) as exports:
        (lease, *_) = store.acquire(A, 1, 30)
        clock.pass_seconds(3)
        exports.metrics.ended(lease, Success(), clock())
        exports.metrics.ended(lease, Failure("x", retryable=False), clock())
        found = exports.families()
    assert {(name, each.description) for name, each in found.items()} == {
        (instrument_name(name), doc) for name, _, _, doc in METRICS
    }
    for name, _, labels, _ in METRICS:
        for point in found[instrument_name(name)].data.data_points:
            assert set(point.attributes) == set(labels), name
    for status in store.snapshot():
        if status.table.source_table != "late" or status.table.table_id == "2":
            point = _point(found["laketier_table_rows"], table=status.table.name)
            assert (point.value, point.attributes["service"]) == (status.table.rows_total, "default")
    assert _point(found["laketier_worker_rounds"], ending="stopped").value == 1
    assert _point(found["laketier_worker_rounds"], ending="failed").value == 0
    assert _point(found["laketier_worker_round_seconds"]).sum == 6.0
    assert _point(found["laketier_state_database_up"]).value == 1
    # A unit of 1 would become a suffix where a collector hands gauges to Prometheus.
    units = {name: each.unit for name, each in found.items() if each.unit}
    assert set(units.values()) == {"s", "By"}
    assert all(name.endswith({"s": "_seconds", "By": "_bytes"}[unit]) for name, unit in units.items())


def test_each_export_asks_the_database_once(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.register([table("t")])
    asked = []
    snapshot = store.snapshot
    monkeypatch.setattr(store, "snapshot", lambda: (asked.append(1), snapshot())[1])
    with _exports(store) as exports:
        for times in (1, 2, 3):
            exports.families()
            assert len(asked) == times


def test_a_database_that_is_gone_is_a_metric(tmp_path: Path) -> None:
    with StateStore.open(f"sqlite:///{tmp_path}/folder.db") as store:
        store.register([table("t")])
        with _exports(store) as exports:
            assert "laketier_table_fresh" in exports.families()
            store.close()
            for file in tmp_path.glob("folder.db*"):
                file.unlink()
            (tmp_path / "folder.db").mkdir()
            found = exports.families()
            assert _point(found["laketier_state_database_up"]).value == 0
            assert "laketier_table_fresh" not in found


def test_many_tables_have_series_of_their_own(store: StateStore) -> None:
    store.register([table(f"t{number}") for number in range(2100)])

    def names(metric: Any) -> set[str]:
        return {point.attributes["table"] for point in metric.data.data_points}

    with _exports(store, 3000) as exports:
        assert names(exports.families()["laketier_table_fresh"]) == {f"s.t{number}" for number in range(2100)}


def test_the_totals_of_tables_have_no_start(store: StateStore) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    store.finish_all([(lease, Success(rows=5))])
    with _exports(store) as exports:
        rows = exports.families()["laketier_table_rows"].data
    assert (_point_of(rows).value, _point_of(rows).start_time_unix_nano) == (5, 0)
    assert rows.aggregation_temporality is AggregationTemporality.CUMULATIVE


def test_sums_are_sent_as_deltas_where_they_are_asked_for(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    store.finish_all([(lease, Success(rows=5))])
    with _exports(store, is_delta=True) as exports:
        assert "laketier_table_rows" not in exports.families(), "it is older than this process"
        clock.pass_seconds(100)
        (lease,) = store.acquire(A, 1, 30)
        store.finish_all([(lease, Success(rows=7))])
        for added in (7, 0):
            rows = exports.families()["laketier_table_rows"].data
            assert _point_of(rows).value == added
            assert 0 < _point_of(rows).start_time_unix_nano < _point_of(rows).time_unix_nano
            assert rows.aggregation_temporality is AggregationTemporality.DELTA


def _point_of(data: Any) -> Any:
    (point,) = data.data_points
    return point


@dataclass
class Receiver:
    """Takes OTLP over HTTP."""

    url: str
    requests: list[tuple[str, ExportMetricsServiceRequest]] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportMetricsServiceRequest()
            request.ParseFromString(self.rfile.read(int(self.headers["content-length"])))
            made.requests.append((self.path, request))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def test_metrics_are_pushed_to_a_receiver(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=tests")
    assert is_asked_for()
    with MeasuredStore.open(f"sqlite:///{tmp_path}/state.db", service="shop") as store:
        store.register([table("t")])
        with exporting(TableCollector(SharedLook(store, 0), 30), "worker-1") as metrics:
            assert metrics is not None
            store.metrics = (metrics,)
            (lease,) = store.acquire(A, 1, 30)
            store.finish_all([(lease, Success(rows=5, bad_records=2))])
    path, request = receiver.requests[-1]
    assert path == "/v1/metrics"
    (of,) = request.resource_metrics
    named = {each.key: each.value.string_value for each in of.resource.attributes}
    assert (named["service.name"], named["service.instance.id"]) == ("laketier", "worker-1")
    assert named["deployment.environment"] == "tests"
    metrics_of = {each.name: each for scope in of.scope_metrics for each in scope.metrics}
    (bad,) = metrics_of["laketier_table_bad_records"].sum.data_points
    assert (bad.as_int or bad.as_double) == 2
    assert {each.key: each.value.string_value for each in bad.attributes} == {"service": "shop", "table": "s.t"}
    rounds = {each.attributes[0].value.string_value: each.as_int
              for each in metrics_of["laketier_worker_rounds"].sum.data_points}  # fmt: skip
    assert rounds == {"tiered": 1, "force-completed": 0, "failed": 0, "stopped": 0}
    (seconds,) = metrics_of["laketier_worker_round_seconds"].histogram.data_points
    assert seconds.count == 1


def test_the_environment_asks_for_deltas(
    store: StateStore, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    store.register([table("t")])
    with exporting(TableCollector(SharedLook(store, 0), 30), "worker-1"):
        pass
    (of,) = receiver.requests[-1][1].resource_metrics
    found = {each.name for scope in of.scope_metrics for each in scope.metrics}
    assert "laketier_table_fresh" in found
    assert "laketier_table_rows" not in found, "no export was before this one"


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://x"}, True),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, True),
        ({"OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
    ],
)
def test_only_the_environment_asks(environment: dict[str, str], asked: bool) -> None:
    assert is_asked_for(environment) is asked


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"OTEL_METRICS_EXPORTER": "console"}, "OTEL_METRICS_EXPORTER = 'console' is not supported"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL = 'grpc' is not supported",
        ),
    ],
)
def test_what_is_not_there_is_refused(environment: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        is_asked_for(environment)
