"""Readers of a table whose manifests are lost: what they get when they ask for it, and what nobody gets."""

from __future__ import annotations

import logging
import pickle
import shutil
import signal
from collections.abc import Callable
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from laketier.cli.app import app
from laketier.registry import configure, open_lake
from laketier.spi import (
    AddColumn,
    CommitterInitContext,
    CorruptTable,
    FeatureNotSupported,
    LaketierError,
    ScanRequest,
    TableNotFound,
    WriteMode,
    new_attempt_id,
)
from laketier.spi.predicate import Leaf, Op
from laketier.tables import opened
from laketier.tables.evolution import prepare_table
from laketier_localfile.options import FileFormatName, LocalFileOptions

LENIENT = LocalFileOptions(require_metadata=False)


def lose(table: Any) -> None:
    shutil.rmtree(table.location / "_laketier_manifests")


@pytest.fixture(params=["parquet", "json", "csv", "arrow", "vortex"])
def lost(request: Any, make_table: Callable[..., Any]) -> Any:
    """A table of three commits and of a file that was never published, without manifests."""
    table = make_table(options=LocalFileOptions(file_format=FileFormatName(request.param)))
    for epoch in range(3):
        table.round(epoch)
    table.stage([{"id": 99, "region": "never published"}])
    lose(table)
    return table


def test_nobody_gets_rows_unasked(lost: Any) -> None:
    with pytest.raises(CorruptTable, match="laketier schema rebuild"):
        lost.scan()


def test_readers_who_ask_get_the_files_in_place_and_are_told(lost: Any, caplog: pytest.LogCaptureFixture) -> None:
    lost.options = LENIENT
    with caplog.at_level(logging.WARNING):
        assert lost.read_ids() == sorted(row["id"] for epoch in range(3) for row in lost.ids(epoch))
    [told] = {record.getMessage() for record in caplog.records if "by inference" in record.getMessage()}
    assert "all 3 files in place; 1 staged files are left out" in told
    assert "`laketier schema rebuild db.events`" in told
    assert lost.scan(filters=(Leaf("id", Op.EQ, 1002),))["id"].to_pylist().count(1002) == 1
    assert lost.scan(columns=("region",)).num_rows == 12
    assert lost.scan(columns=(), limit=5).num_rows in (5, 12)
    before = sorted(lost.location.rglob("*"))
    assert not any("_laketier_manifests" in path.parts for path in before)


def test_the_rows_are_those_that_plain_readers_find(make_table: Callable[..., Any]) -> None:
    table = make_table(partition_by=("region",))
    for epoch in range(2):
        table.round(epoch)
    table.round(None, [{"id": 5, "region": "r"}], mode=WriteMode.OVERWRITE)
    lose(table)
    table.options = LENIENT
    plain = duckdb.sql(f"SELECT id FROM read_parquet('{table.location}/**/*.parquet')").fetchall()
    assert table.read_ids() == [row[0] for row in plain] == [5]


def test_writers_are_refused_in_any_case(lost: Any) -> None:
    lost.options = LENIENT
    info = lost.info
    catalog = lost.storage.catalog()
    for write in (
        lambda: lost.storage.tiering_factory(info),
        lambda: lost.create(),
        lambda: catalog.alter_table(lost.path, [AddColumn(lost.schema.field(0).with_name("more"))]),
        lambda: lost.storage.maintenance(info),
        lambda: lost.storage.state(info),
    ):
        with pytest.raises(CorruptTable, match="laketier schema rebuild"):
            write()


def test_a_writer_that_was_open_before(table: Any) -> None:
    table.round(0)
    factory = table.factory
    lose(table)
    table.options = LENIENT
    assert len(table.read_ids()) == 4
    with pytest.raises(LaketierError):
        factory.create_committer(CommitterInitContext(new_attempt_id())).open()


def test_the_whole_way_of_a_round_and_of_a_reader(table: Any) -> None:
    table.round(0)
    lose(table)
    keys = {"lake.format": "localfile", "lake.warehouse": str(table.warehouse), "lake.table": "db.events"}
    lake = open_lake(configure({**keys, "lake.localfile.require-metadata": "false"}))
    info = opened(lake)
    source = pickle.loads(pickle.dumps(lake.source(info)))  # noqa: S301 - our own
    plan = source.plan(ScanRequest())
    assert plan.snapshot_id is None
    assert sum(batch.num_rows for split in plan.splits for batch in source.read(split, plan.schema)) == 4
    with pytest.raises(FeatureNotSupported, match="older snapshot"):
        source.plan(ScanRequest(snapshot_id=1))
    prepared = prepare_table(lake, table.schema)
    with pytest.raises(CorruptTable, match="laketier schema rebuild"):
        lake.tiering_factory(prepared)
    table.storage.adoption().rebuild(table.path)
    assert opened(lake).table_uuid != "inferred"


def test_the_command_line(table: Any) -> None:
    table.round(0)
    lose(table)
    command = ["read", "db.events", "-f", "localfile", "-w", str(table.warehouse), "--count"]
    assert CliRunner().invoke(app, command).exit_code == 1
    done = CliRunner().invoke(app, [*command, "-s", "lake.localfile.require-metadata=false"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "4")


def test_a_commit_that_was_killed_half_way(table: Any) -> None:
    """Its files in place are read: more than one commit, less than two. The warning says that nobody knows."""
    table.round(0)
    assert table.child("publish.mid_renames=kill", 1).join()[0] == -signal.SIGKILL
    lose(table)
    table.options = LENIENT
    found = table.read_ids()
    assert set(found) >= {0, 1, 2, 3}
    assert len(found) == len(set(found))


def test_a_whole_table_is_read_as_always(table: Any) -> None:
    table.options = LENIENT
    table.round(0)
    assert table.info.table_uuid != "inferred"
    assert table.read_ids(snapshot_id=1) == table.read_ids()


def test_no_table_is_no_table(make_table: Callable[..., Any]) -> None:
    table = make_table(options=LENIENT)
    shutil.rmtree(table.location)
    with pytest.raises(TableNotFound):
        table.scan()
