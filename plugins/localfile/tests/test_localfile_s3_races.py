"""Processes that race for a table in S3, and are killed or frozen at any moment: others count the rows."""

from __future__ import annotations

import faulthandler
import os
from typing import Any

import pytest
from localfile_kills import DRAWN, FOLD, run
from localfile_s3 import S3Table

from faulty_s3 import DRAWN as FAULTS
from faulty_s3 import Fault, FaultyS3
from laketier.kit.manifests import files_at
from laketier.spi import Conflict, Passthrough, RolledBack
from laketier_localfile.options import FileFormatName

_BRIEF = tuple(fault for fault in FAULTS if fault not in (Fault.TIME_OUT, Fault.EXPIRED))
TURNS = int(os.environ.get("LAKETIER_KILLS", "50"))
SPREAD = 0.4
"""Seconds within which a signal comes: an epoch takes about half of that here."""


@pytest.fixture
def table(s3: FaultyS3, storage: Passthrough) -> S3Table:
    return S3Table.of(s3, storage, fold_files=FOLD)


def test_processes_with_pipelines_of_their_own_all_land(table: S3Table) -> None:
    children = [table.child("", 0, 1, pipeline=f"p{i}") for i in range(3)]
    for child in children:
        assert child.join() == (0, ["PUBLISHED 0", "PUBLISHED 1"])
    ids = [epoch * 1000 + i for epoch in range(2) for i in range(4)]
    assert table.read_ids() == table.plain_ids() == sorted(ids * 3)
    assert table.committer().open().snapshot_id == 6


@pytest.mark.parametrize("epochs", [2, pytest.param(40, marks=pytest.mark.deep)])
def test_rival_drivers_publish_each_epoch_once(table: S3Table, epochs: int) -> None:
    children = [table.child("", *range(epochs)) for _ in range(3)]
    said = [line for child in children for line in child.join()[1]]
    allowed = ("PUBLISHED", "DONE", "ALREADY_THERE", "RECOVERED", "Traceback")
    assert all(line.startswith(allowed) for line in said), said
    assert all("laketier.spi.errors.Stale" in line for line in said if line.startswith("Traceback")), said
    published = [line.split()[1] for line in said if line.startswith(("PUBLISHED", "RECOVERED"))]
    assert sorted(published, key=int) == [str(epoch) for epoch in range(epochs)]
    table.committer().open()
    assert table.read_ids() == table.plain_ids() == [epoch * 1000 + i for epoch in range(epochs) for i in range(4)]


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(4))
def test_rival_drivers_on_a_store_that_fails(s3: FaultyS3, table: S3Table, seed: int) -> None:
    """A driver that does not know how its epoch ended says so, and its successor goes on."""
    epochs, said = 12, []
    s3.arm(seed, 0.03, (*_BRIEF, Fault.CONFLICT))
    try:
        done = -1
        for _ in range(200):
            children = [table.child("", *range(max(done, 0), epochs), pipeline="p") for _ in range(2)]
            lines = [line for child in children for line in child.join()[1]]
            said += lines
            reached = [int(line.split()[1]) for line in lines if not line.startswith("Traceback")]
            done = max([done, *reached])
            if done == epochs - 1:
                break
    finally:
        s3.disarm()
    assert done == epochs - 1, said[-4:]
    assert s3.injected
    known = (
        "errors.Stale",
        "errors.StorageError",
        "errors.UnknownOutcome",
        "errors.NotBegun",
        "errors.CommitError",
        "errors.ConfigError",
    )
    assert all(any(each in line for each in known) for line in said if line.startswith("Traceback")), said
    table.committer().open()
    assert table.read_ids() == table.plain_ids() == [epoch * 1000 + i for epoch in range(epochs) for i in range(4)]


def test_a_paused_writer_after_manifests_were_deleted(s3: FaultyS3, table: S3Table) -> None:
    for epoch in range(2):
        table.round(epoch)
    zombie = table.committer()
    paused, staged = zombie.open(), table.stage(table.ids(99))
    for epoch in range(2, 5):
        table.round(epoch, [])
    for number in range(1, 5):
        table.log.store.delete(table.log.name(number))
    with pytest.raises(Conflict, match="deleted manifests"):
        zombie.publish(paused, [staged], None)
    assert not table.log.store.exists(table.log.name(3))
    newest = table.committer()
    state = newest.open()
    assert state.snapshot_id == 5
    table.log.store.delete(table.log.name(5))
    with pytest.raises(RolledBack):
        newest.open()


def _judge_files(table: Any) -> None:
    head, _ = table.log.head()
    live = files_at(table.log, head.number)
    assert any(entry.level for entry in live)
    maintenance = table.storage.maintenance(table.info)
    maintenance.remove_orphans(maintenance.orphans(1 << 60))
    assert table.staged_files() == []
    assert len(table.read_ids()) == sum(entry.rows for entry in live)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("file_format", list(FileFormatName))
def test_killed_and_frozen_at_any_moment(
    s3: FaultyS3, storage: Passthrough, file_format: FileFormatName, part: int
) -> None:
    """200 signals for each file format, in four parts."""
    # The dump of all stacks after some minutes ends a process whose server's threads come and go.
    faulthandler.cancel_dump_traceback_later()
    table = S3Table.of(s3, storage, fold_files=FOLD, file_format=file_format)
    run(table, TURNS, spread=SPREAD, most=2, ahead=8, seed=f"{DRAWN}-{part}")
    _judge_files(table)
