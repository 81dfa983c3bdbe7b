"""One request of an operation fails, each in turn; and listings that show the bucket of a while ago."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from localfile_s3 import BUCKET, S3Table

from depth import deep_where
from faulty_s3 import Fault, FaultyS3
from laketier.kit import failpoints
from laketier.spi import (
    AddColumn,
    CorruptTable,
    IncompatibleTable,
    LaketierError,
    Passthrough,
    StorageError,
    TableNotFound,
    WriteMode,
)
from laketier_localfile.place import place_of
from laketier_localfile.s3 import client

COLUMN = AddColumn(pa.field("note", pa.string()))
EXACT = [0, 1, 2, 3]
NEXT = [1000, 1001, 1002, 1003]


def nothing(table: S3Table) -> None:
    """No table is there yet."""


def one_epoch(table: S3Table) -> None:
    table.create()
    table.round(0)


def not_settled(table: S3Table) -> None:
    """An epoch is published, and its file still lies where it was staged."""
    table.create()
    staged, committer = table.stage(table.ids(0)), table.committer()
    table.s3.always_put(Fault.DENIED, ".parquet")
    with pytest.raises(LaketierError):
        committer.publish(committer.open(), [staged], None)
    table.s3.disarm()


def two_of_a_fold(table: S3Table) -> None:
    table.options = replace(table.options, fold_files=2)
    table.create()
    for number in range(2):
        table.round(number, [{"id": number - 2, "region": "x"}], pipeline="before")


def lying(table: S3Table) -> None:
    for part, ids in enumerate((EXACT[:2], EXACT[2:])):
        out = io.BytesIO()
        pq.write_table(pa.table({"id": ids, "region": ["x", "y"]}, schema=table.schema), out)
        table.s3.client.put_object(Bucket=BUCKET, Key=f"{table.location}/d={part}/a.parquet", Body=out.getvalue())


def of_lost_manifests(table: S3Table) -> None:
    one_epoch(table)
    for key in table.all_keys():
        if key.endswith(("/table.json", f"{1:020}.json")):
            table.s3.client.delete_object(Bucket=BUCKET, Key=f"{table.location}/{key}")


def create(table: S3Table) -> None:
    table.create()


def opened(table: S3Table) -> None:
    table.committer().open()


def adopt(table: S3Table) -> None:
    table.storage.adoption().adopt(table.path)


def rebuild(table: S3Table) -> None:
    table.storage.adoption().rebuild(table.path)


def fold(table: S3Table) -> None:
    table.round(0)


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


Step = Callable[[S3Table], None]
OPERATIONS: dict[str, tuple[Step, Step, list[int]]] = {
    "create": (nothing, create, []),
    "open": (not_settled, opened, EXACT),
    "epoch": (one_epoch, epoch, [*EXACT, *NEXT]),
    "fold": (two_of_a_fold, fold, [-2, -1, *EXACT]),
    "alter": (one_epoch, alter, EXACT),
    "overwrite": (one_epoch, overwrite, [7]),
    "orphans": (one_epoch, orphans, EXACT),
    "drop": (one_epoch, drop, []),
    "adopt": (lying, adopt, EXACT),
    "rebuild": (of_lost_manifests, rebuild, EXACT),
}
"""What is there before, what is done, and the rows of it."""
FAULTS = (
    Fault.ERROR_500,
    Fault.SLOW_DOWN,
    Fault.LOST_500,
    Fault.RESET,
    Fault.TIME_OUT,
    Fault.SLOW_BODY,
    Fault.DENIED,
    Fault.EXPIRED,
)
CASES = [
    ("epoch", Fault.LOST_500, 7),
    ("fold", Fault.RESET, 23),
    ("adopt", Fault.LOST_500, 9),
    ("rebuild", Fault.RESET, 23),
    *((name, fault, 1) for name in OPERATIONS for fault in FAULTS),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "fault", "stride"), deep_where(CASES, lambda name, fault, stride: stride == 1))
def test_each_request_fails_once(
    s3: FaultyS3, storage: Passthrough, monkeypatch: pytest.MonkeyPatch, name: str, fault: Fault, stride: int
) -> None:
    """Whatever is said of the operation, done again it is done once, and nothing is doubled or lost."""
    monkeypatch.setattr(client, "RETRIES", 0)
    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setattr("laketier_localfile.s3.proof._WAITS", (0.0,))
    monkeypatch.setattr(s3, "silence", 0.3)
    prepare, operation, rows = OPERATIONS[name]
    n = 0
    while True:
        table = S3Table.of(s3, storage, create=False)
        prepare(table)
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
            again(table, operation)
            table.committer().open()
            assert table.read_ids() == table.plain_ids() == rows, f"request {n}"
        n += stride
    assert n > 4


def again(table: S3Table, operation: Step) -> None:
    """A rebuild whose last answer was lost has ended, and says so."""
    try:
        operation(table)
    except IncompatibleTable as error:
        if operation is not rebuild or "manifests are whole" not in str(error):
            raise


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


def test_adopt_by_listings_that_lag(s3: FaultyS3, storage: Passthrough) -> None:
    """What no listing shows, nobody can adopt. What is listed and gone is no file of the table."""
    table = S3Table.of(s3, storage, create=False)
    lying(table)
    with s3.lagging():
        s3.client.delete_object(Bucket=BUCKET, Key=f"{table.location}/d=1/a.parquet")
        with pytest.raises(LaketierError, match="1 of 2 files can't be read"):
            adopt(table)
    adopt(table)
    assert table.read_ids() == table.plain_ids() == EXACT[:2]


def test_creations_by_listings_that_lag(s3: FaultyS3, storage: Passthrough) -> None:
    """A table that was just made is found by its name. Of one that was just dropped, files are still listed: none is
    made among what seems to be left."""
    table = S3Table.of(s3, storage, create=False)
    with s3.lagging():
        one_epoch(table)
        table.create()
        assert table.read_ids() == EXACT
    with s3.lagging():
        drop(table)
        with pytest.raises(CorruptTable, match="If a drop was cut off, drop the table again"):
            table.create()
    table.create()
    table.round(0, [{"id": 7, "region": "x"}])
    assert table.read_ids() == table.plain_ids() == [7]


def test_rebuilds_by_listings_that_lag(s3: FaultyS3, storage: Passthrough) -> None:
    """A whole chain is found by names. Else files count that are listed, and a listing without the newest manifest,
    which may lack its files, too, is refused."""
    table = S3Table.of(s3, storage, create=False)
    one_epoch(table)
    with s3.lagging():
        table.round(1)
        lose(table)
        rebuild(table)
        assert table.read_ids() == [*EXACT, *NEXT]
    lost = S3Table.of(s3, storage, create=False)
    one_epoch(lost)
    uuid = lost.info.table_uuid
    with s3.lagging():
        lost.round(1)
        lose(lost, f"{uuid}/{0:020}.json")
        with pytest.raises(StorageError, match="a listing does not show a manifest that is there"):
            rebuild(lost)
    rebuild(lost)
    assert lost.read_ids() == lost.plain_ids() == [*EXACT, *NEXT]


def lose(table: S3Table, *names: str) -> None:
    for name in ("table.json", *names):
        table.s3.client.delete_object(Bucket=BUCKET, Key=f"{table.location}/_laketier_manifests/{name}")


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


def test_a_check_of_the_version_takes_one_round_trip(
    s3: FaultyS3, storage: Passthrough, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its four requests do not wait for each other: here each waits until all have come."""
    monkeypatch.setattr(client, "RETRIES", 0)
    monkeypatch.setattr(client, "_clients", {})
    table = S3Table.of(s3, storage)
    table.round(0)
    catalog = table.storage.catalog()
    known = catalog.table_version(table.path)
    assert known is not None
    together = threading.Barrier(4)
    s3.meddle(lambda method, path, environ: (together.wait(30), None)[1])
    assert catalog.table_version(table.path, known) == known
    s3.meddle(lambda method, path, environ: ("503 Slow Down", "SlowDown") if path.endswith("2.json") else None)
    assert catalog.table_version(table.path, known) is None, "a look that failed says nothing of what is newer"
    s3.meddle(None)
    table.round(1)
    assert catalog.table_version(table.path, known) not in (None, known)
