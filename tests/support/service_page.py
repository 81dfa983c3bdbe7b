"""A service's page over real HTTP: tables in every condition, and a client."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from laketier.config import LakeConfig
from laketier.service.looked import SharedLook
from laketier.service.metrics import TableCollector, WorkerMetrics, new_registry
from laketier.service.state import IndexFigures, StateStore, Success
from laketier.service.web.access import Address
from laketier.service.web.app import DeadLetterConfigOf, ServicePages
from laketier.service.web.patience import PatientProtocol
from laketier.service.web.server import PageServer
from laketier.spi import Secret
from state_tables import A, Clock, table

EVIL = "<script>alert(1)</script>"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str


@dataclass(frozen=True)
class Page:
    """A page that is being served."""

    url: str
    store: StateStore
    metrics: WorkerMetrics
    health_url: str = ""

    def health(self, path: str, **headers: str) -> Answer:
        """Of the listener that has nothing else."""
        return replace(self, url=self.health_url).get(path, **headers)

    def get(self, path: str, *, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode("utf-8"))
        finally:
            connection.close()


def no_dead_letters(_: str) -> LakeConfig | None:
    return None


@contextmanager
def served(
    store: StateStore,
    *,
    dead_letter_config_of: DeadLetterConfigOf = no_dead_letters,
    token: Secret | None = None,
    seconds: float = 0,
    most: int = 1000,
    protocol: Callable[[], type[PatientProtocol]] | None = None,
) -> Iterator[Page]:
    """The page of ``store`` on a free port."""
    registry = new_registry()
    metrics = WorkerMetrics(registry)
    look = SharedLook(store, seconds)
    registry.register(TableCollector(look, 30, most))
    servers = [PageServer(Address.parse("127.0.0.1:0", token), protocol and protocol()) for _ in range(2)]
    pages = ServicePages(look, registry, dead_letter_config_of, token)
    try:
        servers[0].start(pages.app())
        servers[1].start(pages.health_app())
        yield Page(servers[0].address.url, store, metrics, servers[1].address.url)
    finally:
        for server in servers:
            server.close()


def fill(store: StateStore, clock: Clock) -> None:
    """Tables that are fresh, late, failed, stopped, paused and new; one was made anew. ``orders`` has many rounds."""
    names = ["orders", "late", "failed", "stopped", "paused", f"{EVIL}"]
    store.register([table(name, priority=int(name == "orders")) for name in names])
    leases = {lease.table.source_table: lease for lease in store.acquire(A, 9, 3600)}
    clock.pass_seconds(2)
    for name in ("orders", "late", "paused", EVIL):
        lag: dict[str, Any] = {"lag_offsets": 7, "lag_seconds": 2.5, "bad_records": 3}
        store.finish(leases[name], Success(epoch=0, rows=1234, bytes=5_000_000, files=2, offsets='{"0": 1234}', **lag))
    store.fail(leases["stopped"], "offsets 5 to 9 of bucket 0 expired; password=hunter2hunter2", retryable=False)
    store.pause("s.paused")
    for epoch in range(1, 13):
        clock.pass_seconds(61)
        lease = next(each for each in store.acquire(A, 1, 3600) if each.table.source_table == "orders")
        clock.pass_seconds(1 + epoch % 4)
        if epoch == 7:
            store.fail(lease, "the catalog did not answer", retryable=True)
            store.retier("s.orders")
        else:
            store.finish(lease, Success(epoch=epoch, rows=100 * epoch, bytes=9999, files=1, lag_offsets=epoch))
    store.register([*(table(name) for name in names if name != "late"), table("late", table_id="2")])
    store.fail(leases["failed"], f"the broker at kafka://me:hunter2hunter2@broker/x said {EVIL}", retryable=True)
    upkeep = store.take_upkeep(A, {"s.orders"}, 30)
    assert upkeep is not None
    figures = IndexFigures("text_idx", 3, 7000, 800, 12, clock() - 5000, 4096)
    store.end_upkeep(
        upkeep, [figures, IndexFigures("broken", error=f"no column {EVIL}")], 2, failed=True, again_seconds=9
    )
    store.heartbeat(A, [], 30)
