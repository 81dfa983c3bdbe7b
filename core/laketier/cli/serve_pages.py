"""What a worker shows of itself while it serves: its page, its health, and its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laketier.config import LakeConfig
    from laketier.config.service import Service
    from laketier.service.metrics import MeasuredStore
    from laketier.service.tables import ServiceTables
    from laketier.service.web.server import PageServer
    from laketier.spi import Secret


def token_of(http: str | None, health: str | None, file: Path | None) -> Secret | None:
    """Read once for both listeners: a pipe has it only once."""
    if http is None and health is None:
        return None
    from laketier.service.web.access import read_token

    return read_token(file)


@contextmanager
def listening(http: str | None, token: Secret | None, option: str = "--http") -> Iterator[PageServer | None]:
    """Listen before anything else is opened: what is wrong with the address is said at once."""
    if http is None:
        yield None
        return
    from laketier.service.web.access import Address
    from laketier.service.web.server import PageServer

    page = PageServer(Address.parse(http, token, option))
    try:
        yield page
    finally:
        page.close()


@contextmanager
def shown(
    page: PageServer | None, health: PageServer | None, described: Service, tables: ServiceTables, store: MeasuredStore
) -> Iterator[None]:
    """Let the page answer from before the sources are asked until the worker is done."""
    if page is None and health is None:
        yield
        return
    from laketier.rounds.log_task import OnBadRecordPolicy
    from laketier.service.looked import SharedLook
    from laketier.service.metrics import TableCollector, WorkerMetrics, new_registry
    from laketier.service.state import StateStore
    from laketier.service.web.app import ServicePages

    def dead_letter_config_of(name: str) -> LakeConfig | None:
        table = tables.known(name)
        if table is None or table.on_bad_record is not OnBadRecordPolicy.DEAD_LETTER:
            return None
        return table.config

    with StateStore.open(described.state, service=described.name) as own:
        registry = new_registry()
        store.metrics = (*store.metrics, WorkerMetrics(registry))
        look = SharedLook(own, writer=store)
        registry.register(TableCollector(look, described.lease, described.metrics_tables))
        if page is not None:
            page.start(ServicePages(look, registry, dead_letter_config_of, page.address.token).app())
        if health is not None:
            health.start(ServicePages(look, registry, dead_letter_config_of, health.address.token).health_app())
        try:
            yield
        finally:
            for each in (page, health):
                if each is not None:
                    each.close()


@contextmanager
def exported(described: Service, store: MeasuredStore, worker: str) -> Iterator[None]:
    """Push metrics over OTLP, if the environment asks for it, until the worker is done."""
    from laketier.service.otel import exporting, is_asked_for

    if not is_asked_for():
        yield
        return
    from laketier.service.looked import SharedLook
    from laketier.service.metrics import TableCollector
    from laketier.service.state import StateStore

    with (
        StateStore.open(described.state, service=described.name) as own,
        # The last export must have the last rounds, so no look is old enough to be shared.
        exporting(
            TableCollector(SharedLook(own, 0, writer=store), described.lease, described.metrics_tables), worker
        ) as metrics,
    ):
        store.metrics = store.metrics if metrics is None else (*store.metrics, metrics)
        yield
