"""What is asked for a second time, by another thread, or at the edge of a batch, and what a look leaves behind."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import PartitionField, ScanRequest
from laketier_iceberg import connection, maintenance, pointer, reader
from laketier_iceberg.connection import CatalogSettings, connect, disconnect

EVER = 1 << 53
TOGETHER = 0.2
"""Seconds in which a second thread would have come, had it not to wait."""


def test_threads_that_connect_at_once_share_one_catalog(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one would stay open, and its pool of connections with it."""
    made: list[Any] = []
    both = threading.Barrier(2)
    own = connection._connect

    def slow(settings: CatalogSettings) -> Any:
        with suppress(threading.BrokenBarrierError):
            both.wait(TOGETHER)
        made.append(own(settings))
        return made[-1]

    monkeypatch.setattr(connection, "_connect", slow)
    settings = CatalogSettings("laketier", str(warehouse), True)
    warehouse.mkdir()
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(connect(settings))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert found == made * 2
    disconnect()
    assert connect(settings) is not made[0]


def test_orphans_are_listed_twice_by_one_object(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of metadata that was there the first time is asked about once more only if it still is."""
    events.round(events.token(0), events.batch(0, 3))
    staged = {file.path for file in events.stage(events.batch(3, 6)).files}
    stray = Path(events.info.location, "metadata", "00009-stray.metadata.json")
    stray.write_text("{}")
    asked: list[list[str]] = []

    def foreign(folder: Any, paths: list[str], uuid: str) -> None:
        asked.append(list(paths))

    monkeypatch.setattr(maintenance, "foreign_metadata", foreign)
    found = events.storage.maintenance(events.info)
    for documents in ([f"metadata/{stray.name}"], []):
        assert staged <= {file.path for file in found.orphans(EVER)}
        assert asked.pop() == documents
        stray.unlink(missing_ok=True)


def test_the_version_of_a_table_is_told_and_leaves_nothing(
    events: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    catalog = events.storage.catalog()
    before = catalog.table_version(events.info.path)
    assert before == catalog.table_version(events.info.path, before) is not None
    events.round(events.token(0), events.batch(0, 3))
    assert catalog.table_version(events.info.path, before) not in (None, before)
    assert list(here.iterdir()) == []


def test_the_catalog_s_file_is_looked_at_as_one_that_nobody_may_change(
    events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    own = sqlite3.connect

    def noted(name: str, **more: Any) -> Any:
        asked.update(more, name=name)
        return own(name, **more)

    monkeypatch.setattr(pointer.sqlite3, "connect", noted)
    assert events.storage.catalog().table_version(events.info.path)
    assert asked["name"].endswith("?mode=ro")
    assert (asked["uri"], asked["timeout"]) == (True, pointer.LOCK_SECONDS)


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 5, 7, 8, 9, 10, 11, None])
def test_a_limit_within_and_between_batches(events: Any, limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly so many rows, and no batch is read that has none of them."""
    events.round(events.token(0), events.batch(0, 10))
    read: list[int] = []

    def small(file: Any, names: list[str]) -> Any:
        for batch in file.iter_batches(batch_size=4, columns=list(names)):
            read.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(reader, "read_batches", small)
    source = events.storage.source(events.info)
    plan = source.plan(ScanRequest())
    [split] = [replace(each, limit=limit) for each in plan.splits]
    batches = list(source.read(split, plan.schema))
    assert [row["id"] for batch in batches for row in batch.to_pylist()] == list(range(10))[:limit]
    assert all(batch.num_rows for batch in batches)
    needed = 3 if limit is None or limit > 8 else 2 if limit > 4 else 1
    assert len(read) == needed


def test_a_file_that_has_its_columns_brings_no_values_for_them(make: Callable[..., Any]) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    table = make(schema, partition_by=(PartitionField("p"),))
    table.round(table.token(0), pa.RecordBatch.from_pydict({"id": [1, 2], "p": ["a", None]}, schema=schema))
    plan = table.storage.source(table.info).plan(ScanRequest())
    assert [(split.payload.partition, split.payload.defaults) for split in plan.splits] == [(b"", b"")] * 2
