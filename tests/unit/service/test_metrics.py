"""The metrics: what the page about them says, what the dashboard asks for, and what a scrape gives."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from laketier.service.metrics import METRICS, MeasuredStore, WorkerMetrics, new_registry, prometheus_text
from laketier.service.state import Failure, StateStore, Success
from service_page import fill, served
from state_tables import A, B, Clock, table

DOCS = Path(__file__).parents[3] / "docs"


def _samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found: dict[Any, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def test_the_page_lists_what_there_is() -> None:
    rows = re.findall(
        r"^\| `(laketier_\w+)` \| (\w+) \| (.*?) \| (.*) \|$", (DOCS / "reference/metrics.md").read_text(), re.MULTILINE
    )
    listed = [(name, kind, tuple(re.findall(r"`(\w+)`", labels)), doc) for name, kind, labels, doc in rows]
    assert listed == list(METRICS)


def test_a_scrape_gives_what_is_listed(store: StateStore, clock: Clock) -> None:
    fill(store, clock)
    with served(store) as page:
        lease = store.acquire(B, 1, 30)[0]
        page.metrics.ended(lease, Success(), clock())
        answer = page.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {each.name: each for each in text_string_to_metric_families(answer.text)}
    for name, kind, labels, doc in METRICS:
        family = families.pop(name.removesuffix("_total") if kind == "counter" else name)
        assert (family.type, family.documentation) == (kind, doc)
        assert {frozenset(sample.labels) - {"le"} for sample in family.samples} == {frozenset(labels)}
        if kind == "counter":
            assert name in {sample.name for sample in family.samples}
    assert not [name for name in families if not name.startswith("process_") and not name.endswith("_created")]


def test_the_values_are_the_state_s(store: StateStore, clock: Clock) -> None:
    fill(store, clock)
    with served(store) as page:
        samples = _samples(page.get("/metrics").text)

    def of(name: str, table: str, **more: str) -> float | None:
        labels = {"service": "default", "table": table, **more}
        return samples.get((f"laketier_table_{name}", tuple(sorted(labels.items()))))

    for status in store.snapshot():
        if status.table.source_table == "late":
            continue
        key = status.table.name
        assert of("behind_seconds", key) == status.behind_seconds
        assert of("rows_total", key) == status.table.rows_total
        assert of("lag_offsets", key) == status.table.lag_offsets
        assert of("lag_seconds", key) == status.table.lag_seconds
        assert of("bad_records_total", key) == status.table.bad_records_total
        assert of("fresh", key) == status.fresh
        assert of("freshness_seconds", key) == 60
        assert of("failures", key) == status.table.failures
        assert of("state", key, state=status.table.state.value) == 1
        assert sum(value for (name, labels), value in samples.items()
                   if name == "laketier_table_state" and ("table", key) in labels) == 1  # fmt: skip
    assert of("rounds_total", "s.orders") == 12
    assert of("rounds_total", "s.late") == 0, "the newest registration of a name is the one that counts"
    assert of("behind_seconds", "s.late") is None


def test_a_table_that_was_never_tiered_is_behind(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    clock.pass_seconds(500)
    with served(store) as page:
        samples = _samples(page.get("/metrics").text)
    assert samples[("laketier_service_behind_seconds", (("service", "default"),))] == 500


def test_a_worker_counts_the_rounds_that_it_ended(url: str, clock: Clock) -> None:
    with MeasuredStore.open(url, clock=clock) as store:
        store.register([table(name) for name in ("a", "b", "c", "d", "lost")])
        leases = {lease.table.source_table: lease for lease in store.acquire(A, 9, 30)}
        registry = new_registry()
        store.metrics = (WorkerMetrics(registry),)
        store.drop("s.lost")
        clock.pass_seconds(3)
        lost = store.finish_all(
            [
                (leases["a"], Success(epoch=0)),
                (leases["b"], Success(epoch=0, force_completed=True)),
                (leases["c"], Failure("x", retryable=True)),
                (leases["d"], Failure("x", retryable=False)),
                (leases["lost"], Success(epoch=0)),
            ]
        )
        assert [lease.table.source_table for lease in lost] == ["lost"]
        samples = _samples(prometheus_text(registry).decode())
    endings = {dict(labels)["ending"]: value for (name, labels), value in samples.items()
               if name == "laketier_worker_rounds_total"}  # fmt: skip
    assert endings == {"tiered": 1, "force-completed": 1, "failed": 1, "stopped": 1}
    assert samples["laketier_worker_round_seconds_sum", ()] == 12
    assert samples["laketier_worker_round_seconds_count", ()] == 4


def test_the_dashboard_asks_for_metrics_and_labels_that_exist() -> None:
    dashboard = json.loads((DOCS / "grafana/laketier.json").read_text())
    known = {name: {*labels, "instance", "le"} for name, _, labels, _ in METRICS}
    known["laketier_worker_round_seconds_bucket"] = known["laketier_worker_round_seconds"]
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [each["query"] for each in dashboard["templating"]["list"]]
    used = {name for text in asked for name in re.findall(r"laketier_\w+", text)}
    assert used <= known.keys()
    assert used >= {name for name, _, _, _ in METRICS if not name.endswith("seconds")}, "each is to be seen"
    for text in asked:
        for name, selectors in re.findall(r"(laketier_\w+)\{([^}]*)\}", text):
            assert set(re.findall(r"(\w+)=", selectors)) <= known[name]
        for labels in re.findall(r"by \(([^)]*)\)", text):
            assert all(any(label in known[name] for name in known) for label in labels.split(", "))
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
