"""One request of an operation fails, each in turn; and listings that show the bucket of a while ago."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from localfile_s3 import BUCKET, S3Table

from depth import deep_where
from faulty_s3 import Fault, FaultyS3
from laketier.kit import failpoints
from laketier.spi import AddColumn, CorruptTable, LaketierError, Passthrough, TableNotFound, WriteMode
from laketier_localfile.place import place_of
from laketier_localfile.s3 import client

COLUMN = AddColumn(pa.field("note", pa.string()))
EXACT = [0, 1, 2, 3]


def epoch(table: S3Table) -> None:
    table.round(1)


def alter(table: S3Table) -> None:
    table.storage.catalog().alter_table(table.path, [COLUMN])


def overwrite(table: S3Table) -> None:
    table.round(1, [{"id": 7, "region": "x"}], mode=WriteMode.OVERWRITE)


def drop(table: S3Table) -> None:
    table.storage.catalog().drop_table(table.path)


def orphans(table: S3Table) -> None:
    maintenance = table.storage.maintenance(table.info)
    maintenance.remove_orphans(maintenance.orphans(1 << 60))


OPERATIONS: dict[str, tuple[Callable[[S3Table], None], list[int]]] = {
    "epoch": (epoch, [*EXACT, 1000, 1001, 1002, 1003]),
    "alter": (alter, EXACT),
    "overwrite": (overwrite, [7]),
    "orphans": (orphans, EXACT),
    "drop": (drop, []),
}
FAULTS = (Fault.ERROR_500, Fault.LOST_500, Fault.RESET, Fault.DENIED)
CASES = [("epoch", Fault.LOST_500, 7), *((name, fault, 1) for name in OPERATIONS for fault in FAULTS)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "fault", "stride"), deep_where(CASES, lambda name, fault, stride: stride == 1))
def test_each_request_fails_once(
    s3: FaultyS3, storage: Passthrough, monkeypatch: pytest.MonkeyPatch, name: str, fault: Fault, stride: int
) -> None:
    """Whatever is said of the operation, done again it is done once, and nothing is doubled or lost."""
    monkeypatch.setattr(client, "RETRIES", 0)
    monkeypatch.setattr(client, "_clients", {})
    operation, rows = OPERATIONS[name]
    n = 0
    while True:
        table = S3Table.of(s3, storage)
        table.round(0)
        before = s3.injected[fault]
        s3.fail_nth(n, fault)
        with suppress(LaketierError):
            operation(table)
        failed = s3.injected[fault] > before
        s3.disarm()
        if not failed:
            break
        if name == "drop":
            with suppress(TableNotFound):
                operation(table)
            with pytest.raises(TableNotFound):
                table.info  # noqa: B018
        else:
            operation(table)
            table.committer().open()
            assert table.read_ids() == table.plain_ids() == rows, f"request {n}"
        n += stride
    assert n > 4


def test_listings_that_lag(s3: FaultyS3, storage: Passthrough) -> None:
    """What was put is in no listing, and what was deleted still is. No commit, and no reader of ours, asks one."""
    table = S3Table.of(s3, storage, fold_files=2)
    table.round(0)
    with s3.lagging():
        for number in range(1, 5):
            table.round(number)
        alter(table)
        assert table.committer().open().snapshot_id == 6
        wanted = [number * 1000 + i for number in range(5) for i in range(4)]
        assert table.read_ids() == wanted
    assert table.plain_ids() == wanted


@pytest.mark.parametrize("kill", [False, True])
def test_orphans_by_listings_that_lag(s3: FaultyS3, storage: Passthrough, kill: bool) -> None:
    """Staged files that were published since are still listed as staged. Collecting them loses nothing: they are told
    from orphans by the newest manifest, which no listing finds. ``kill``: they are published and not in place yet."""
    table = S3Table.of(s3, storage)
    staged, committer = table.stage(table.ids(0)), table.committer()
    with s3.lagging():
        if kill:
            s3.always_put(Fault.DENIED, ".parquet")
            with pytest.raises(LaketierError):
                committer.publish(committer.open(), [staged], None)
            s3.disarm()
        else:
            committer.publish(committer.open(), [staged], None)
        late: Any = table.stage(table.ids(1))
        orphans(table)
    assert table.read_ids() == EXACT
    committer.publish(committer.open(), [late], None)
    assert table.read_ids() == table.plain_ids() == [*EXACT, 1000, 1001, 1002, 1003]


def test_a_drop_that_was_cut_off_is_ended_by_the_next(s3: FaultyS3, storage: Passthrough) -> None:
    table = S3Table.of(s3, storage)
    table.round(0)

    def cut_off(point: str) -> None:
        if point == "drop.after_rename":
            raise KeyboardInterrupt

    with failpoints.observed(cut_off), pytest.raises(KeyboardInterrupt):
        drop(table)
    with pytest.raises(CorruptTable, match="If a drop was cut off, drop the table again"):
        table.info  # noqa: B018
    drop(table)
    assert table.all_keys() == set()
    with pytest.raises(TableNotFound):
        drop(table)
    table.create()
    assert table.read_ids() == []


def test_files_of_others_are_no_rest_of_a_drop(s3: FaultyS3, storage: Passthrough) -> None:
    table = S3Table.of(s3, storage, create=False)
    place = place_of(f"s3://{BUCKET}/{table.location}", table.options.storage)
    for name in ("a.parquet", "_laketier_manifests/0123/00000000000000000000.json"):
        place.create(name, b"theirs")
    with pytest.raises(TableNotFound):
        drop(table)
    assert len(table.all_keys()) == 2
