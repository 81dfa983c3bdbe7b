"""A lake table that Fluss itself created, with its plugin for Lance, is the one that we tier into.

Runs where FLUSS_LIBS names a folder with the server's jars, and FLUSS_PLUGINS one like Fluss's plugins folder, with
org.apache.fluss:fluss-lake-lance in lance/.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fluss_feed import Feed
from fluss_server import FlussServer
from fluss_tables import ORDERS, orders, source_at
from laketier.registry import configure
from laketier.rounds.log_engine import LocalEngine
from laketier.rounds.log_round import LogRound
from laketier_verification.lakes import lake_at, read_all

pytestmark = pytest.mark.skipif(
    not {"FLUSS_LIBS", "FLUSS_PLUGINS"} <= os.environ.keys(), reason="FLUSS_LIBS or FLUSS_PLUGINS names no folder"
)


@pytest.fixture
def lance_server(tmp_path: Path) -> Iterator[FlussServer]:
    settings = f"datalake.format: lance\ndatalake.lance.warehouse: {tmp_path}/lake\n"
    folder = tmp_path / "fluss"
    folder.mkdir()
    started = FlussServer(os.environ["FLUSS_LIBS"], folder, settings, plugins=Path(os.environ["FLUSS_PLUGINS"]))
    yield started
    started.close()


def test_a_lance_table_that_fluss_created(lance_server: FlussServer, tmp_path: Path) -> None:
    import lance

    feed = Feed(lance_server.bootstrap)
    how = {"bucket_keys": ["id"], "properties": {"table.datalake.enabled": "true"}}
    name = feed.create("shop.orders", ORDERS, bucket_count=3, **how)
    place = str(tmp_path / "lake" / "shop" / "orders.lance")
    created = lance.dataset(place)
    assert (created.version, created.count_rows()) == (1, 0)
    source = source_at(lance_server)
    keys = {"lake.format": "lance", "lake.warehouse": f"{tmp_path}/lake", "lake.table": name, "lake.pipeline": "p"}
    engine = LocalEngine(2)
    for turn in range(2):
        feed.append(name, orders(*range(turn * 100, (turn + 1) * 100)))
        one = LogRound(source.open(name, {"with-buckets": False}), configure(keys, environment={}))
        assert one.finish(list(engine.run(one.plan()))).rows == 100
    engine.close()
    rows = read_all(lake_at(tmp_path / "lake", "lance", name))
    assert sorted(rows["id"].to_pylist()) == list(range(200))
    assert lance.dataset(place, version=1).schema.names == ORDERS.names
    source.source.close()
    feed.close()
