"""Tables and workers for tests of the state store."""

from __future__ import annotations

from typing import Any

from laketier.service.state import (
    Registration,
    StateStore,
    Worker,
)

A = Worker("a", "here", 1, "0")
B = Worker("b", "there", 2, "0")


class Clock:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


def table(name: str, **settings: Any) -> Registration:
    values = {"table_id": "1", "format": "f", "target": f"lake/{name}", "pipeline": name, "freshness_seconds": 60}
    return Registration(source="s", table=name, **{**values, **settings})


def row(store: StateStore, name: str) -> Any:
    return next(status.table for status in store.snapshot() if status.table.source_table == name)


def names(leases: Any) -> list[str]:
    return [lease.table.source_table for lease in leases]
