"""Clocks: times in a table never run backwards, what has them is recognised, and a commit mends it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import AddColumn, Conflict, StorageError, WriteMode
from laketier.spi.clocks import shifted
from laketier_iceberg.options import IcebergOptions

DAY = 86_400_000


def _path(table: Any) -> Path:
    return Path(table.table().metadata_location.removeprefix("file://"))


def document(table: Any) -> dict[str, Any]:
    """The metadata as it is stored."""
    found: dict[str, Any] = json.loads(_path(table).read_text())
    return found


def java_refuses(stored: dict[str, Any]) -> list[str]:
    """The checks of `org.apache.iceberg.TableMetadata`'s constructor (1.12), in its words."""
    found = []
    for log, message in (
        ("snapshot-log", "Expected sorted snapshot log"),
        ("metadata-log", "Expected sorted previous"),
    ):
        times = [entry["timestamp-ms"] for entry in stored.get(log, [])]
        found += [message for earlier, later in pairwise(times) if later - earlier < -60_000]
        if times and stored["last-updated-ms"] - times[-1] < -60_000:
            found.append(f"Invalid update timestamp: before the end of the {log}")
    return found


def shift(table: Any, milliseconds: int) -> None:
    """Move all times, as if each commit so far had been made by a clock that was so far ahead of ours."""
    stored = document(table)
    for log in ("snapshot-log", "metadata-log", "snapshots"):
        for entry in stored.get(log, []):
            entry["timestamp-ms"] += milliseconds
    stored["last-updated-ms"] += milliseconds
    _path(table).write_text(json.dumps(stored))


def _reload(table: Any) -> None:
    table.info = table.storage.catalog().load_table(table.info.path)
    table.factory = table.storage.tiering_factory(table.info)


def _alter(table: Any) -> None:
    table.storage.catalog().alter_table(table.info.path, [AddColumn(pa.field("more", pa.int32()))])
    _reload(table)


COMMITS: dict[str, Callable[[Any], Any]] = {
    "append": lambda t: t.round(t.token(1), t.batch(2, 4)),
    "an empty epoch": lambda t: t.round_of(t.token(1)),
    "overwrite": lambda t: t.round(t.token(1), t.batch(2, 4), mode=WriteMode.OVERWRITE),
    "a batch without a pipeline": lambda t: t.round(None, t.batch(2, 4)),
    "a change of the schema": _alter,
    "a change of the schema and an append": lambda t: (_alter(t), t.round_of(t.token(1))),
}


@pytest.mark.parametrize("kind", COMMITS)
@pytest.mark.parametrize("ahead", [2 * 60_000, 3650 * DAY], ids=["two minutes", "ten years"])
def test_a_clock_that_is_behind_writes_no_time_before_the_tables(make: Any, kind: str, ahead: int) -> None:
    table = make(options=IcebergOptions(expire_in_commit=True))
    table.round(table.token(0), table.batch(0, 2))
    shift(table, ahead)
    before = document(table)
    COMMITS[kind](table)
    after = document(table)
    assert java_refuses(after) == []
    assert after["last-updated-ms"] >= before["last-updated-ms"]
    if len(after["snapshot-log"]) > 1:
        one, two = after["snapshot-log"][-2:]
        assert one["timestamp-ms"] < two["timestamp-ms"], "as-of tells every two snapshots apart"
    assert after["last-updated-ms"] < before["last-updated-ms"] + 1000, "just past it"


def test_each_epoch_has_a_time_of_its_own(events: Any) -> None:
    for epoch in range(5):
        events.round_of(events.token(epoch))
    times = [entry["timestamp-ms"] for entry in document(events)["snapshot-log"]]
    assert all(earlier < later for earlier, later in pairwise(times))
    assert abs(times[-1] - time.time() * 1000) < 60_000


def _disorder(table: Any, *shifts: int) -> None:
    """Epochs by a writer that asks its clock, as pyiceberg itself does, and whose clock is moved before each."""
    for epoch, by in enumerate(shifts):
        table.round(table.token(epoch), table.batch(epoch, epoch + 1))
        stored = document(table)
        at = stored["last-updated-ms"] + by
        for log in ("snapshot-log", "snapshots"):
            stored[log][-1]["timestamp-ms"] = at
        if stored.get("metadata-log"):
            stored["metadata-log"][-1]["timestamp-ms"] = at - 1
        stored["last-updated-ms"] = at
        _path(table).write_text(json.dumps(stored))


@pytest.mark.parametrize(
    "shifts",
    [
        (0, -DAY, 0, 0),
        (0, DAY, 0, 0),
        (0, 0, -DAY),
        (DAY, 0),
        (3650 * DAY,),
        (0, 3650 * DAY, 0),
        (-DAY, 0, -2 * DAY, 0),
    ],
    ids=str,
)
def test_a_table_out_of_order_is_recognised_and_mended_in_one_commit(make: Any, shifts: tuple[int, ...]) -> None:
    table = make()
    _disorder(table, *shifts)
    maintenance = table.storage.maintenance(table.info)
    before = document(table)
    found = maintenance.findings()
    assert found
    assert bool(java_refuses(before)) == any("backwards" in each.what or "before" in each.what for each in found)
    rows = table.ids()
    assert maintenance.repair() == []
    after = document(table)
    assert java_refuses(after) == []
    assert maintenance.findings() == []
    assert abs(after["last-updated-ms"] - time.time() * 1000) < 60_000
    bare = [[{**s, "timestamp-ms": 0} for s in d["snapshots"]] for d in (before, after)]
    assert bare[0] == bare[1], "snapshots stay"
    same = ("properties", "table-uuid", "refs", "schemas", "last-sequence-number", "current-snapshot-id")
    assert {key: before[key] for key in same} == {key: after[key] for key in same}
    assert table.ids() == rows
    assert maintenance.repair() == []
    assert document(table) == after, "again does nothing"
    table.round(table.token(len(shifts)), table.batch(100, 101))
    assert java_refuses(document(table)) == []


def test_entries_that_are_in_order_keep_their_times(make: Any) -> None:
    table = make()
    _disorder(table, 0, -DAY, 0, 3650 * DAY, 0)
    before = [entry["timestamp-ms"] for entry in document(table)["snapshot-log"]]
    table.storage.maintenance(table.info).repair()
    after = [entry["timestamp-ms"] for entry in document(table)["snapshot-log"]]
    # All but the third run a day or ten years off: what counts is the longest run that is in order.
    kept = [old == new for old, new in zip(before, after, strict=True)]
    assert sum(kept) >= 2
    assert after == sorted(after)
    assert after[-1] <= time.time() * 1000 + 60_000


def test_the_longest_run_is_kept_and_the_rest_takes_the_time_before_it() -> None:
    from pyiceberg.table.snapshots import SnapshotLogEntry

    from laketier_iceberg.times import _sorted

    def mended(*times: int) -> list[int]:
        return _sorted([SnapshotLogEntry(snapshot_id=1, timestamp_ms=at) for at in times], 100, 90)

    assert mended(10, 11, 5, 12, 13) == [10, 11, 11, 12, 13]
    assert mended(10, 11, 999, 12, 13) == [10, 11, 11, 12, 13]
    assert mended(999, 12, 13) == [12, 12, 13]
    assert mended(999, 998) == [90, 90]
    assert mended() == []
    rng = random.Random(11)
    for _ in range(300):
        times = [rng.randrange(130) for _ in range(rng.randrange(9))]
        result = mended(*times)
        assert result == sorted(result), times
        assert all(at <= 100 for at in result), times
        if times == sorted(times) and all(at <= 100 for at in times):
            assert result == times


def test_a_commit_between_look_and_mend_is_not_overwritten(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from laketier_iceberg import checkup

    table = make()
    _disorder(table, 0, -DAY)
    loaded = table.table()
    table.round(table.token(2), table.batch(2, 3))
    with monkeypatch.context() as patched:
        patched.setattr(checkup, "load", lambda *_: loaded)
        with pytest.raises(Conflict, match="other commits came first, 20 times"):
            table.storage.maintenance(table.info).repair()
    assert table.storage.maintenance(table.info).repair() == []
    assert len(table.ids()) == 3


def test_commits_of_a_damaged_table_do_not_add_to_the_damage(make: Any) -> None:
    table = make()
    _disorder(table, 0, DAY, 0)
    before = java_refuses(document(table))
    for epoch in range(3, 6):
        table.round_of(table.token(epoch))
    assert len(java_refuses(document(table))) <= len(before)


def test_a_host_that_is_behind_takes_no_healthy_table_for_a_sick_one(make: Any) -> None:
    table = make()
    for epoch in range(3):
        table.round(table.token(epoch), table.batch(epoch, epoch + 1))
    before = document(table)
    maintenance = table.storage.maintenance(table.info)
    with shifted(-10 * DAY):
        assert maintenance.findings() == []
        assert maintenance.repair() == []
    assert document(table) == before


@pytest.mark.parametrize("wrong", [-10 * DAY, -2 * 60_000, 2 * 60_000, 10 * DAY])
def test_nothing_is_mended_by_a_host_whose_clock_is_not_the_storages(make: Any, wrong: int) -> None:
    table = make()
    _disorder(table, 0, 3650 * DAY, 0)
    before = document(table)
    maintenance = table.storage.maintenance(table.info)
    with shifted(wrong):
        assert maintenance.findings()
        with pytest.raises(StorageError, match=r"host's clock says .* the storage's .*nothing was changed"):
            maintenance.repair()
    assert document(table) == before
    assert maintenance.repair() == []


def test_each_commit_compares_times_alone(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each entry of the log, field by field."""
    from pyiceberg.table.snapshots import SnapshotLogEntry

    from laketier_iceberg.times import _end_in_order

    log = [SnapshotLogEntry(snapshot_id=i, timestamp_ms=i) for i in range(100)]
    late = SnapshotLogEntry(snapshot_id=100, timestamp_ms=7)
    compared = []
    equal = SnapshotLogEntry.__eq__
    monkeypatch.setattr(SnapshotLogEntry, "__eq__", lambda a, b: (compared.append(1), equal(a, b))[1])
    assert _end_in_order(log, log[:-1]) is log
    assert [entry.timestamp_ms for entry in _end_in_order([*log, late], log)][-2:] == [99, 99]
    assert len(compared) < 3
