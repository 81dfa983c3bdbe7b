"""A table as a log: which versions there are, and entries that others, or damage, left."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable

from laketier.spi import (
    AddColumn,
    BucketSpec,
    CorruptTable,
    IncompatibleTable,
    OffsetsExpired,
    Passthrough,
    RowsChanged,
    TableNotFound,
    VersionBounds,
)
from laketier_delta.changes import _read, bounds
from laketier_delta.delta_log import DeltaLog
from laketier_delta.location import Location


def entry(lake: Any, version: int) -> Path:
    return Path(lake.uri, "_delta_log", f"{version:020}.json")


def edited(lake: Any, version: int, change: Callable[[dict[str, Any]], object]) -> None:
    """What another writer would have put there."""
    actions = [json.loads(line) for line in entry(lake, version).read_bytes().splitlines()]
    for action in actions:
        change(action)
    entry(lake, version).write_text("\n".join(map(json.dumps, actions)))


@pytest.fixture
def filled(lake: Any, support: Any) -> Any:
    """Versions 0 to 3, of which 1 to 3 have a row each."""
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch, support.ids(epoch))
    return lake


def planned(lake: Any, start: int, end: int, **how: bool) -> tuple[Any, list[int]]:
    plan = lake.storage.changes(lake.table).plan(start, end, **how)
    source = lake.storage.source(lake.table)
    batches = [batch for split in plan.splits for batch in source.read(split, plan.schema)]
    return plan, [row["id"] for batch in batches for row in batch.to_pylist()]


def test_bounds_tell_when_the_newest_version_came(filled: Any) -> None:
    committed = entry(filled, 3).stat().st_mtime_ns // 1_000_000
    found = filled.storage.changes(filled.table).versions()
    assert found == VersionBounds(earliest=0, latest=4, latest_at=committed)


def test_bounds_begin_after_a_gap(filled: Any) -> None:
    DeltaTable(filled.uri).create_checkpoint()
    entry(filled, 1).unlink()
    found = bounds(Location(filled.uri, Passthrough()))
    assert (found.earliest, found.latest) == (2, 4)


def test_bounds_where_a_checkpoint_took_the_place_of_all_entries(filled: Any) -> None:
    DeltaTable(filled.uri).create_checkpoint()
    for version in range(4):
        entry(filled, version).unlink()
    assert bounds(Location(filled.uri, Passthrough())) == VersionBounds(earliest=4, latest=4, latest_at=None)


@pytest.mark.parametrize("left", ["nothing", "an empty log"])
def test_bounds_where_there_is_no_log(tmp_path: Path, left: str) -> None:
    if left == "an empty log":
        (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    with pytest.raises(TableNotFound, match="there is no Delta table"):
        bounds(Location(str(tmp_path / "t"), Passthrough()))


@dataclass(frozen=True)
class Missing:
    """A file system whose listings lack a name."""

    name: str
    real: pafs.FileSystem

    def get_file_info(self, asked: Any) -> Any:
        found = self.real.get_file_info(asked)
        return found if isinstance(asked, str) else [each for each in found if each.base_name != self.name]


def test_a_listing_that_lacks_an_entry_is_looked_at_again(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Missing(entry(filled, 1).name, pafs.LocalFileSystem())
    monkeypatch.setattr(Location, "filesystem", missing)
    assert bounds(Location(filled.uri, Passthrough())).earliest == 0


def test_splits_tell_rows_and_bytes(filled: Any) -> None:
    plan, ids = planned(filled, 1, 4)
    sizes = [Path(filled.uri, split.payload.path).stat().st_size for split in plan.splits]
    assert [(split.rows, split.bytes) for split in plan.splits] == [(1, size) for size in sizes]
    assert ids == [0, 1, 2]


def test_splits_tell_their_bucket(lake: Any, support: Any) -> None:
    lake.create(support.IDS, buckets=BucketSpec(2, ("id",)))
    lake.epoch(0, support.ids(*range(8)))
    plan, _ = planned(lake, 1, 2)
    assert {split.bucket for split in plan.splits} == {0, 1}


def test_a_file_without_statistics_tells_no_rows(filled: Any) -> None:
    edited(filled, 1, lambda action: action["add"].pop("stats") if "add" in action else None)
    plan, ids = planned(filled, 1, 2)
    assert ([split.rows for split in plan.splits], ids) == ([None], [0])


def test_files_that_were_only_moved_are_no_change(filled: Any) -> None:
    DeltaTable(filled.uri).optimize.compact()
    assert planned(filled, 1, 5)[1] == [0, 1, 2]


def test_a_restore_is_a_change_also_where_it_only_adds(filled: Any) -> None:
    DeltaTable(filled.uri).delete()
    DeltaTable(filled.uri).restore(3)
    with pytest.raises(RowsChanged, match="RESTORE"):
        planned(filled, 5, 6)
    assert planned(filled, 5, 6, skip_changes=True)[1] == []


def test_a_deletion_vector_of_an_appended_file_is_refused(filled: Any) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    edited(filled, 1, lambda action: action["add"].update(deletionVector=vector) if "add" in action else None)
    with pytest.raises(IncompatibleTable, match="was appended has a deletion vector"):
        planned(filled, 1, 2)


FILE = {"path": "x.parquet", "partitionValues": {}, "size": 7, "modificationTime": 1, "dataChange": True}
NO_FILES = [
    {"path": 7},
    {"path": None},
    {"partitionValues": []},
    {"partitionValues": {"v": 7}},
    {"stats": {"numRecords": 1}},
    {"size": "7"},
    {"partitionValues": 7},
]


DAMAGE = [
    *("{", "[1]", '{"add": 7}', "\ufffd", '{"add": {}}', '{"remove": {}}', '{"cdc": {}}', '{"metaData": 7}'),
    *('{"metaData": {"configuration": [1]}}', '{"commitInfo": "WRITE"}', '{"add": ' + "[" * 100_000),
    *(json.dumps({kind: FILE | change}) for kind in ("add", "remove", "cdc") for change in NO_FILES),
]


def test_an_entry_that_is_none_is_damage(filled: Any) -> None:
    """The columns are known by then: delta-rs would say so first."""
    changes = filled.storage.changes(filled.table)
    changes.plan(1, 4)
    for damage in DAMAGE:
        entry(filled, 2).write_text(damage)
        with pytest.raises(CorruptTable, match=r"00002\.json is not a log entry"):
            changes.plan(1, 4)


@pytest.mark.parametrize(
    "stats", ["{", "[]", "7", '{"numRecords": "1"}', "{}", '{"numRecords": null}', "[" * 100_000, ""]
)
def test_statistics_that_are_none_tell_no_rows(filled: Any, stats: str) -> None:
    """Nobody needs them to read the file."""
    changes = filled.storage.changes(filled.table)
    changes.plan(1, 4)
    edited(filled, 2, lambda action: action["add"].update(stats=stats) if "add" in action else None)
    assert [split.rows for split in changes.plan(1, 4).splits] == [1, None, 1]


def test_a_partition_value_of_another_type_is_told(lake: Any, support: Any) -> None:
    lake.create(support.IDS, "id")
    lake.epoch(0, support.ids(7))
    changes = lake.storage.changes(lake.table)
    assert [split.partition for split in changes.plan(1, 2).splits] == [(("id", "7"),)]
    edited(lake, 1, lambda action: action["add"].update(partitionValues={"id": "x"}) if "add" in action else None)
    with pytest.raises(IncompatibleTable, match="partition value 'x', which is no int64"):
        changes.plan(1, 2)


def test_a_table_without_any_property_is_no_damage(filled: Any) -> None:
    changes = filled.storage.changes(filled.table)
    for described in ({}, {"configuration": None}, {"configuration": {}}):
        entry(filled, 2).write_text(json.dumps({"metaData": described}))
        assert _read(DeltaLog(pafs.LocalFileSystem(), filled.uri), 2).feed is False
    assert changes.versions().latest == 4


def test_empty_lines_of_an_entry_are_none(filled: Any) -> None:
    entry(filled, 2).write_bytes(entry(filled, 2).read_bytes() + b"\n\n")
    assert planned(filled, 1, 4)[1] == [0, 1, 2]


def test_entries_that_are_gone_are_told(filled: Any) -> None:
    DeltaTable(filled.uri).create_checkpoint()
    entry(filled, 1).unlink()
    with pytest.raises(OffsetsExpired, match=r"version.*1") as told:
        planned(filled, 1, 4)
    assert "logRetentionDuration" in (told.value.fix or "")


def test_columns_are_looked_up_again_when_an_entry_describes_the_table(lake: Any, support: Any) -> None:
    lake.create()
    lake.epoch(0, support.ids(0))
    changes = lake.storage.changes(lake.table)
    assert changes.plan(1, 2).schema.names == ["id", "v"]
    lake.storage.catalog().alter_table(support.PATH, [AddColumn(pa.field("more", pa.int64()))])
    assert changes.plan(1, 3).schema.names == ["id", "v", "more"]
    assert changes.plan(1, 2).schema.names == ["id", "v", "more"], "also of a range before it, from then on"
