"""What of a table's files is an orphan, and that nothing goes that is, or will be, committed."""

from __future__ import annotations

import gzip
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ValidationException
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile
from pyiceberg.table.update import (
    SetPartitionStatisticsUpdate,
    SetStatisticsUpdate,
    TableUpdate,
)

from depth import deep_where
from laketier.kit import TableFolder, failpoints
from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    Collected,
    CorruptTable,
    FeatureNotSupported,
    OrphanFile,
    PartitionField,
    TableChanged,
    Transform,
    WriteMode,
)
from laketier.tiering import RoundOutcome
from laketier_iceberg.locations import Below
from laketier_iceberg.options import IcebergOptions

SOON = 60_000
STAGED = "publish.between_manifests_and_commit"


def orphans(table: Any, before: int | None = None) -> dict[str, str]:
    """Path and kind of what is unreferenced now, however young."""
    now = time.time_ns() // 1_000_000
    found = table.storage.maintenance(table.info).orphans(now + SOON if before is None else before)
    assert len({file.path for file in found}) == len(found)
    return {file.path: file.kind for file in found}


def remove(table: Any) -> list[OrphanFile]:
    """Delete all of it, as nobody else is at work."""
    maintenance = table.storage.maintenance(table.info)
    return list(maintenance.remove_orphans(maintenance.orphans(time.time_ns() // 1_000_000 + SOON)))


def collect(table: Any) -> Counter[str]:
    """As another driver would, without a grace period; kinds of what was deleted."""
    time.sleep(0.02)  # a file system's clock may lag behind by some milliseconds
    removed = collect_orphans(table.storage, table.info, grace=timedelta(0)).removed
    return Counter(file.kind for file in removed)


def append(table: Any, *epochs: int, pipeline: str = "p") -> list[int]:
    return [table.round(table.token(e, pipeline), table.batch(e * 10, e * 10 + 10)).snapshot_id for e in epochs]


def every_snapshot(table: Any) -> dict[int, list[int]]:
    loaded = table.table()
    return {
        snapshot.snapshot_id: sorted(loaded.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["id"].to_pylist())
        for snapshot in loaded.metadata.snapshots
    }


def folder(table: Any, name: str = "metadata") -> Path:
    return Path(table.info.location.removeprefix("file:"), name)


def set_properties(table: Any, **properties: str) -> None:
    with table.table().transaction() as change:
        change.set_properties({key.replace("_", "."): value for key, value in properties.items()})


def reopened(table: Any) -> Any:
    return type(table)(table.storage, table.info, table.storage.tiering_factory(table.info))


# -- what is listed ---------------------------------------------------------------------------------------------------


def test_each_kind_is_listed_and_nothing_that_is_needed(events: Any) -> None:
    append(events, 0, 1, 2)
    events.round(events.token(3), events.batch(0, 5), mode=WriteMode.OVERWRITE)
    assert orphans(events) == {}
    staged = events.stage(events.batch(50, 60))
    leftovers = {
        "00009-0dead.metadata.json": "metadata",
        "00009-0dead.gz.metadata.json": "metadata",
        "snap-1-0-0dead.avro": "manifest-list",
        "0dead-m0.avro": "manifest",
        "0dead.stats": "statistics",
        "0dead.puffin": "statistics",
        "partition-stats-1-0dead.parquet": "statistics",
    }
    for name in [*leftovers, "version-hint.text", "notes.txt", ".0dead-m0.avro.crc", "_SUCCESS"]:
        (folder(events) / name).write_bytes(b"1234")
    (folder(events, "data") / "_temporary").mkdir()
    for name in ("0dead.orc", "_SUCCESS", ".hidden.parquet", "_temporary/0dead2.parquet", "notes.txt"):
        (folder(events, "data") / name).write_bytes(b"1234")
    Path(events.info.location, "mine.parquet").write_bytes(b"1234")
    expected = {f"metadata/{name}": kind for name, kind in leftovers.items()}
    expected |= {"data/0dead.orc": "data", staged.files[0].path: "data"}
    assert orphans(events) == expected
    assert orphans(events, before=0) == {}
    before = every_snapshot(events)
    assert {file.path for file in remove(events)} == set(expected)
    assert orphans(events) == {}
    assert every_snapshot(events) == before


def test_size_and_time_are_the_storages_own(events: Any) -> None:
    staged = events.stage(events.batch(0, 10)).files[0]
    path = Path(events.info.location, staged.path)
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    (found,) = events.storage.maintenance(events.info).orphans(1_700_000_000_124)
    attempt = path.name.split("-")[1]
    assert found == OrphanFile(staged.path, path.stat().st_size, 1_700_000_000_123, "data", attempt)
    assert orphans(events, before=1_700_000_000_123) == {}


def test_a_local_file_of_a_whole_second_is_as_old_as_it_says(events: Any) -> None:
    """Object stores cut off what is below a second; there the attempt may have begun later than its file says."""
    staged = events.stage(events.batch(0, 10)).files[0]
    os.utime(Path(events.info.location, staged.path), ns=(0, 1_700_000_000_000_000_000))
    assert orphans(events, before=1_700_000_000_000) == {}
    assert orphans(events, before=1_700_000_000_001) == {staged.path: "data"}


def test_what_is_gone_counts_as_gone_and_what_stays_does_not(events: Any) -> None:
    events.stage(events.batch(0, 10))
    maintenance = events.storage.maintenance(events.info)
    found = maintenance.orphans(time.time_ns() // 1_000_000 + SOON)
    assert maintenance.remove_orphans(found) == found
    assert maintenance.remove_orphans(found) == found
    (folder(events, "data") / "full.parquet").mkdir()
    stuck = OrphanFile("data/full.parquet", 0, 0)
    assert maintenance.remove_orphans([*found, stuck]) == found


def test_branches_and_tags_keep_what_main_has_dropped(events: Any) -> None:
    snapshots = append(events, 0, 1, 2)
    manage = events.table().manage_snapshots()
    manage.create_tag(snapshots[0], "kept")
    manage.create_branch(snapshots[1], "side")
    manage.commit()
    events.table().append(pa.table({"id": [99], "s": ["side"]}), branch="side")
    events.round(events.token(3), events.batch(30, 31), mode=WriteMode.OVERWRITE)
    events.table().maintenance.expire_snapshots().by_ids([snapshots[2]]).commit()
    before = every_snapshot(events)
    assert len(before) == 4
    dead = Counter(orphans(events).values())
    assert (dead["data"], dead["manifest-list"]) == (1, 1), "the data file of epoch 2, which only snapshot 2 had"
    collect(events)
    assert {i: rows for i, rows in every_snapshot(events).items() if i in before} == before
    assert (
        events.table()
        .scan(snapshot_id=events.table().metadata.refs["side"].snapshot_id)
        .to_arrow()["id"]
        .to_pylist()
        .count(99)
        == 1
    )


def test_what_expired_in_a_commit_goes(make: Any) -> None:
    properties = {"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "2"}
    events = make(options=IcebergOptions(expire_in_commit=True), properties=properties)
    append(events, 0, 1, 2)
    for epoch in (3, 4, 5):
        events.round(events.token(epoch), events.batch(epoch * 10, epoch * 10 + 10), mode=WriteMode.OVERWRITE)
    before = every_snapshot(events)
    assert len(before) == 2
    dead = Counter(orphans(events).values())
    assert (dead["data"], dead["manifest-list"]) == (4, 4), "epochs 0 to 3; the older of the two kept reads epoch 4"
    removed = remove(events)
    assert Counter(file.kind for file in removed) == dead
    assert every_snapshot(events) == before
    assert orphans(events) == {}
    assert append(events, 6)
    assert events.ids() == [*range(50, 60), *range(60, 70)]


@pytest.mark.parametrize(
    "fields",
    [
        (PartitionField("s"),),
        (PartitionField("s", Transform.TRUNCATE, 2), PartitionField("id", Transform.BUCKET, 4)),
    ],
)
def test_partitions_by_any_transform_and_value(make: Any, fields: tuple[PartitionField, ...]) -> None:
    events = make(partition_by=fields)
    values = ["a/b", "a%2Fb", "a b", "a+b", "ä#?", "..", "", None, "x=y", "_hidden", "\n"]
    rows = pa.RecordBatch.from_pydict({"id": list(range(len(values))), "s": values}, schema=events.info.schema)
    events.round(events.token(0), rows)
    staged = events.stage(rows)
    assert orphans(events) == {file.path: "data" for file in staged.files}
    remove(events)
    assert sorted(events.ids()) == list(range(len(values)))


def test_folders_of_other_writers_with_special_values(make: Any) -> None:
    """Other writers make folders of partition values, and encode them; hidden-looking columns too."""
    events = make()
    append(events, 0)
    paths = ["_s=a%2Fb/0live.parquet", "s=a b/1live.parquet", "s=a#?b/2live.parquet", ".s=%25/3live.parquet"]
    source = next(folder(events, "data").glob("*.parquet")).read_bytes()
    for path in paths:
        for name in (path, path.replace("live", "dead")):
            target = folder(events, "data") / name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(source)
    add_files(events, [f"{events.info.location}/data/{path}" for path in paths])
    assert orphans(events) == {f"data/{path.replace('live', 'dead')}": "data" for path in paths}
    remove(events)
    assert orphans(events) == {}
    assert events.table().scan().count() == 50
    assert all((folder(events, "data") / path).exists() for path in paths)


def add_files(table: Any, paths: list[str]) -> None:
    """As pyiceberg's own `add_files`, which would decode nothing and read every file, with any path."""
    from laketier_iceberg.transaction import stage

    loaded = table.table()
    (entry,) = loaded.current_snapshot().manifests(loaded.io)[0].fetch_manifest_entry(loaded.io)
    files = []
    for path in paths:
        file = type(entry.data_file).from_args(
            **{
                name: getattr(entry.data_file, name)
                for name in ("content", "file_format", "partition", "record_count", "file_size_in_bytes")
            },
            file_path=path,
        )
        file.spec_id = 0
        files.append(file)
    stage(loaded, files, {}, replace=False).publish()


# -- metadata --------------------------------------------------------------------------------------------------------


def test_the_metadata_file_of_a_commit_that_lost_goes(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    append(events, 0)
    with once_metadata_is_written(monkeypatch, lambda: append(events, 0, pipeline="rival")):
        result = events.round(events.token(1), events.batch(10, 20))
    assert result.conflicts == 1
    current = events.table()
    named = {current.metadata_location, *(entry.metadata_file for entry in current.metadata.metadata_log)}
    unnamed = {path.name for path in folder(events).glob("*.metadata.json")} - {Path(path).name for path in named}
    assert len(unnamed) == 1
    assert orphans(events) == {f"metadata/{name}": "metadata" for name in unnamed}
    collect(events)
    assert orphans(events) == {}
    append(events, 2)
    assert len(events.ids()) == 40


def test_old_metadata_files_go_with_the_commit_as_the_table_says(make: Any) -> None:
    """And are orphans where it does not say so, once they have left the log."""
    kept = make(name="kept", properties={"write.metadata.delete-after-commit.enabled": "false"})
    tidy = make(name="tidy")
    for table in (kept, tidy):
        set_properties(table, **{"write.metadata.previous-versions-max": "3"})
        append(table, *range(8))
    assert len(list(folder(tidy).glob("*.metadata.json"))) == 4
    assert len(list(folder(kept).glob("*.metadata.json"))) == 10
    assert orphans(tidy) == {}
    assert Counter(orphans(kept).values()) == {"metadata": 6}
    remove(kept)
    assert orphans(kept) == {}
    append(kept, 8)
    assert kept.ids() == list(range(90))


def test_statistics_that_the_metadata_names_stay(events: Any) -> None:
    (snapshot,) = append(events, 0)
    common = {"snapshot-id": snapshot, "file-size-in-bytes": 4}
    paths = {name: f"{events.info.location}/metadata/{name}" for name in ("1.stats", "partition-stats-1.parquet")}
    for path in paths.values():
        Path(path).write_bytes(b"1234")
    assert set(orphans(events).values()) == {"statistics"}
    updates: tuple[TableUpdate, ...] = (
        SetStatisticsUpdate(
            statistics=StatisticsFile.model_validate(
                {
                    **common,
                    "statistics-path": paths["1.stats"],
                    "file-footer-size-in-bytes": 4,
                    "blob-metadata": [],
                }
            )
        ),
        SetPartitionStatisticsUpdate(
            partition_statistics=PartitionStatisticsFile.model_validate(
                {**common, "statistics-path": paths["partition-stats-1.parquet"]}
            )
        ),
    )
    table = events.table()
    table.catalog.commit_table(table, (), updates)
    assert orphans(events) == {}


def test_each_manifest_is_read_once(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many snapshots share it."""
    append(events, *range(6))
    events.stage(events.batch(0, 1))
    read: Counter[str] = Counter()
    fetch = ManifestFile.fetch_manifest_entry

    def counted(self: ManifestFile, *arguments: Any, **named: Any) -> Any:
        read[self.manifest_path] += 1
        return fetch(self, *arguments, **named)

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", counted)
    assert len(orphans(events)) == 1
    assert len(read) == 6
    assert set(read.values()) == {1}


def test_a_table_with_a_lost_manifest_is_not_touched(events: Any) -> None:
    append(events, 0)
    events.stage(events.batch(0, 1))
    next(folder(events).glob("*-m0.avro")).unlink()
    with pytest.raises(CorruptTable, match="a manifest is missing"):
        orphans(events)


# -- where the files are -----------------------------------------------------------------------------------------------


def test_folders_elsewhere_below_the_table(make: Any, warehouse: Path) -> None:
    location = warehouse / "db" / "events"
    events = make(properties={"write.data.path": f"{location}/own/rows", "write.metadata.path": f"file:{location}/log"})
    append(events, 0, 1)
    staged = events.stage(events.batch(0, 1)).files[0]
    (location / "log" / "0dead-m0.avro").write_bytes(b"")
    (location / "own" / "mine.parquet").write_bytes(b"")
    (location / "data").mkdir()
    (location / "data" / "0dead.parquet").write_bytes(b"")
    assert orphans(events) == {
        staged.path: "data",
        "log/0dead-m0.avro": "manifest",
        "data/0dead.parquet": "data",
    }
    assert staged.path.startswith("own/rows/")
    remove(events)
    assert orphans(events) == {}
    assert len(events.ids()) == 20


def test_one_folder_for_everything(make: Any, warehouse: Path) -> None:
    location = warehouse / "db" / "events"
    events = make(properties={"write.data.path": str(location), "write.metadata.path": str(location)})
    append(events, 0)
    staged = events.stage(events.batch(0, 1)).files[0]
    for name in ("0dead-m0.avro", "data/0dead.avro"):
        (location / name).parent.mkdir(exist_ok=True)
        (location / name).write_bytes(b"")
    assert orphans(events) == {staged.path: "data", "0dead-m0.avro": "manifest", "data/0dead.avro": "data"}


@pytest.mark.parametrize("form", ["", "file:", "file://"])
def test_folders_outside_the_table_are_left_alone_and_it_is_said(
    make: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    """Nothing says that they are this table's alone."""
    properties = {"write.data.path": f"{form}{tmp_path}/rows", "write.metadata.path": f"file:///{tmp_path}/log"}
    events = make(properties=properties)
    append(events, 0, 1)
    staged = events.stage(events.batch(0, 1)).files[0]
    assert (tmp_path / "rows" / staged.path).stat().st_size == staged.bytes, "relative to where the rows are"
    folder(events, "data").mkdir(parents=True)
    (folder(events, "data") / "0dead.parquet").write_bytes(b"")
    with caplog.at_level(logging.WARNING, "laketier_iceberg"):
        assert orphans(events) == {"data/0dead.parquet": "data"}
    assert [record.getMessage().count("write.") for record in caplog.records] == [1, 1]
    assert collect(events) == {"data": 1}
    assert events.ids() == list(range(20))


@pytest.mark.parametrize("form", ["file:{}", "file://{}", "{}/../events", "/{}", "link"])
def test_one_place_spelled_in_two_ways(make: Any, warehouse: Path, tmp_path: Path, form: str) -> None:
    """The location in one form, the folders' properties in another."""
    location = warehouse / "db" / "events"
    (warehouse / "db").mkdir(parents=True)
    (tmp_path / "link").symlink_to(warehouse / "db")
    other = str(tmp_path / "link" / "events") if form == "link" else form.format(location)
    events = make(properties={"write.data.path": f"{other}/data", "write.metadata.path": f"{other}/metadata"})
    append(events, 0, 1)
    set_properties(events, **{"write.data.path": f"{location}/data", "write.metadata.path": f"{location}/metadata"})
    append(reopened(events), 2)
    assert orphans(events) == {}
    staged = [file.path for file in events.stage(events.batch(0, 1)).files]
    assert orphans(events) == dict.fromkeys(staged, "data")
    remove(events)
    (folder(events, "data") / "0dead.parquet").write_bytes(b"")
    assert collect(events)["data"] == 1
    assert events.ids() == list(range(30))


def test_encoded_and_plain_names_count_as_one(make: Any, warehouse: Path) -> None:
    events = make(properties={"write.data.path": f"{warehouse}/db/events/my data"})
    append(events, 0)
    add_files(events, [f"file://{warehouse}/db/events/my%20data/s=a%252Fb/0live.parquet"])
    target = warehouse / "db" / "events" / "my data" / "s=a%2Fb" / "0live.parquet"
    target.parent.mkdir()
    target.write_bytes(b"")
    assert orphans(events) == {}


def test_a_name_that_the_metadata_has_elsewhere_is_refused(events: Any, tmp_path: Path) -> None:
    """The table's folder may be mounted twice: nobody can tell from the paths."""
    append(events, 0)
    add_files(events, ["s3://mounted/events/data/0live.parquet"])
    assert orphans(events) == {}
    (folder(events, "data") / "0dead.parquet").write_bytes(b"")
    assert orphans(events) == {"data/0dead.parquet": "data"}
    (folder(events, "data") / "0live.parquet").write_bytes(b"")
    with pytest.raises(FeatureNotSupported, match="it is unknown whether they are one file"):
        orphans(events)
    with pytest.raises(FeatureNotSupported):
        collect(events)
    assert (folder(events, "data") / "0dead.parquet").exists()


def test_a_copy_beside_its_original_is_left_alone(events: Any) -> None:
    append(events, 0)
    (original,) = folder(events, "data").glob("*.parquet")
    copy = folder(events, "data") / "backup" / original.name
    copy.parent.mkdir()
    copy.write_bytes(original.read_bytes())
    assert orphans(events) == {}


def test_a_link_does_not_lead_out_of_the_table(events: Any, make: Any, tmp_path: Path) -> None:
    other = make(name="other")
    append(other, 0)
    append(events, 0)
    (folder(events, "data") / "linked").symlink_to(folder(other, "data"))
    assert orphans(events) == {}


def test_a_table_registered_from_a_copied_metadata_file_is_refused(events: Any, tmp_path: Path) -> None:
    """Its folders are those of the table that it was copied from, which may have gone on."""
    append(events, 0)
    copied = tmp_path / "copy.metadata.json"
    copied.write_bytes(Path(events.table().metadata_location).read_bytes())
    append(events, 1)
    from laketier.spi import TablePath

    events.table().catalog.register_table(("db", "again"), str(copied))
    again = events.storage.catalog().load_table(TablePath("db", "again"))
    with pytest.raises(FeatureNotSupported, match=r"because its current.*it may share its folders") as refused:
        events.storage.maintenance(again).orphans(time.time_ns() // 1_000_000 + SOON)
    assert str(refused.value.fix).startswith("Set write.metadata.path")
    assert events.ids() == list(range(20))


def test_a_table_whose_files_will_lie_below_this_one_is_a_neighbour(events: Any, make: Any) -> None:
    """Its properties say so; its own folder is elsewhere, and it has no file yet."""
    append(events, 0)
    make(name="guest", properties={"write.data.path": f"{events.info.location}/data/guest"})
    (folder(events, "data") / "0dead.parquet").write_bytes(b"")
    with pytest.raises(FeatureNotSupported, match=r"db\.guest"):
        orphans(events)
    assert (folder(events, "data") / "0dead.parquet").exists()


def in_another_catalog(table: Any, folder: Path, *appended: list[int]) -> Any:
    """The table as it is now, in a catalog of its own; then rows come there."""
    other = SqlCatalog("other", uri=f"sqlite:///{folder}/other.db", warehouse=str(folder))
    other.create_namespace("db")
    there = other.register_table(("db", "moved"), table.table().metadata_location)
    for ids in appended:
        there.append(pa.Table.from_batches([table.batch(ids[0], ids[-1] + 1)]))
    return there


def test_what_another_catalog_committed_since_is_no_orphan(events: Any, tmp_path: Path) -> None:
    """A table that moved to another catalog, and was not taken out of this one, is the same table."""
    append(events, 0)
    kept = {"write.metadata.delete-after-commit.enabled": "false", "write.metadata.previous-versions-max": "2"}
    set_properties(events, **kept)
    append(events, 1, 2, 3)
    assert set(orphans(events).values()) == {"metadata"}, "metadata files that left the log are no other line"
    there = in_another_catalog(events, tmp_path, [50, 51], [60, 61])
    append(events, 4)
    with pytest.raises(FeatureNotSupported, match="another catalog may have the table"):
        collect(events)
    assert sorted(there.refresh().scan().to_arrow()["id"].to_pylist()) == [*range(40), 50, 51, 60, 61]


@pytest.mark.parametrize("name", ["v5.metadata.json", "v5.gz.metadata.json"])
def test_one_commit_of_a_catalog_of_files_alone_is_no_orphan(events: Any, tmp_path: Path, name: str) -> None:
    """Hadoop's, of which a table was registered here and went on there: a commit that lost leaves no such file."""
    append(events, 0)
    there = in_another_catalog(events, tmp_path, [50, 51])
    written = Path(there.metadata_location)
    data = written.read_bytes()
    (written.parent / name).write_bytes(gzip.compress(data) if ".gz." in name else data)
    written.unlink()
    append(events, 1)
    with pytest.raises(FeatureNotSupported, match=rf"metadata/{name} goes on from metadata .* does not know"):
        collect(events)
    assert sorted(there.scan().to_arrow()["id"].to_pylist()) == [*range(10), 50, 51]
    events.storage.catalog().drop_table(events.info.path)
    assert sorted(there.scan().to_arrow()["id"].to_pylist()) == [*range(10), 50, 51]


def test_metadata_files_from_before_a_gap_are_no_other_line(events: Any, tmp_path: Path) -> None:
    """From the day on which a table deletes its old metadata files, those of before are left, and none names the
    first of them."""
    kept = {"write.metadata.delete-after-commit.enabled": "false", "write.metadata.previous-versions-max": "2"}
    set_properties(events, **kept)
    append(events, 0, 1, 2)
    set_properties(events, **{"write.metadata.delete-after-commit.enabled": "true"})
    append(events, 3, 4, 5, 6, 7)
    assert set(orphans(events).values()) == {"metadata"}
    lost = json.loads(Path(events.table().metadata_location).read_text())
    first = min(path.name for path in Path(events.info.location, "metadata").glob("*.metadata.json"))
    log = [{"timestamp-ms": 1, "metadata-file": f"{events.info.location}/metadata/{first}"}, *lost["metadata-log"]]
    left = Path(events.info.location, "metadata", "00006-0.metadata.json")
    left.write_text(json.dumps(lost | {"metadata-log": log}))
    assert f"metadata/{left.name}" in orphans(events), "a commit that lost, since when files were deleted"
    there = in_another_catalog(events, tmp_path, [90, 91], [95, 96])
    with pytest.raises(FeatureNotSupported, match="another catalog may have the table"):
        collect(events)
    assert sorted(there.refresh().scan().to_arrow()["id"].to_pylist()) == [*range(80), 90, 91, 95, 96]


def test_a_table_that_went_on_in_another_catalog_keeps_its_files_after_a_drop(events: Any, tmp_path: Path) -> None:
    append(events, 0)
    there = in_another_catalog(events, tmp_path, [50, 51], [60, 61])
    events.storage.catalog().drop_table(events.info.path)
    assert sorted(there.refresh().scan().to_arrow()["id"].to_pylist()) == [*range(10), 50, 51, 60, 61]


@pytest.mark.parametrize(
    ("location", "other", "key"),
    [
        ("s3://b/t", "s3a://b/t/data/x", "data/x"),
        ("s3://b/t/", "s3n://b//t/data//x", "data/x"),
        ("s3://b/t", "S3://b/t/data/x#y?z", "data/x#y?z"),
        ("s3://b/t", "s3://c/t/data/x", None),
        ("s3://b/t", "s3://b/t2/data/x", None),
        ("s3://b", "s3://b/data/x", "data/x"),
        ("gs://b/t", "gcs://b/t/x", "x"),
        ("gs://b/t", "s3://b/t/x", None),
        ("abfss://c@a.dfs.core.windows.net/t", "wasbs://c@a.blob.core.windows.net/t/x", "x"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://d@a.dfs.core.windows.net/t/x", None),
        ("hdfs://n:8020/w/t", "hdfs://n:8020/w/t/x", "x"),
        ("hdfs://n:8020/w/t", "hdfs:/w/t/x", None),
        ("/w/t", "file:/w/t/x", "x"),
        ("/w/t", "file:///w/t/x", "x"),
        ("/w/t", "file://localhost/w/t/x", "x"),
        ("/w/t", "file://elsewhere/w/t/x", None),
        ("/w/t", "/w/t/../t2/x", None),
        ("/w/t", "/w/a:b/../t/x", "x"),
        ("file:///w/my%20t", "/w/my t/s=a%252Fb/x%20y", "s=a/b/x y"),
        ("/", "/w/x", "w/x"),
    ],
)
def test_what_locations_mean(location: str, other: str, key: str | None) -> None:
    assert Below(location).key(other) == key


def test_a_location_in_hadoops_form(make: Any, warehouse: Path) -> None:
    """``file:/path``, as Spark writes it."""
    plain = make()
    wanted = plain.table().catalog.create_table(
        ("db", "hadoop"), plain.table().schema(), location=f"file:{warehouse}/db/hadoop"
    )
    assert wanted.location().startswith("file:/")
    from laketier.spi import TablePath

    info = plain.storage.catalog().load_table(TablePath("db", "hadoop"))
    events = type(plain)(plain.storage, info, plain.storage.tiering_factory(info))
    append(events, 0, 1)
    staged = events.stage(events.batch(0, 1)).files[0]
    assert orphans(events) == {staged.path: "data"}
    assert (folder(events) / ".." / staged.path).exists()
    assert collect(events)["data"] == 1
    assert events.ids() == list(range(20))
    assert [row["id"] for row in events.read().to_pylist()] == list(range(20))


def test_a_file_io_of_another_kind(warehouse: Path, tmp_path: Path, events: Any) -> None:
    """pyiceberg's fsspec one: manifests are read by it."""
    from laketier.spi import LakeStorageConfig, Passthrough, TableDescriptor, TablePath

    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/other.db",
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
    }
    storage = type(events.storage)(
        LakeStorageConfig(f"file://{tmp_path}/other", IcebergOptions(catalog=Passthrough(catalog)))
    )
    info = storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(events.info.schema))
    table = type(events)(storage, info, storage.tiering_factory(info))
    assert type(table.table().io).__name__ == "FsspecFileIO"
    (tmp_path / "other" / "db" / "t").mkdir(parents=True, exist_ok=True)
    append(table, 0, 1)
    staged = table.stage(table.batch(0, 1)).files[0]
    assert orphans(table) == {staged.path: "data"}
    assert collect(table)["data"] == 1
    assert table.ids() == list(range(20))


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_table_without_garbage_collection_is_refused(events: Any) -> None:
    append(events, 0)
    events.stage(events.batch(0, 1))
    found = events.storage.maintenance(events.info).orphans(time.time_ns() // 1_000_000 + SOON)
    set_properties(events, gc_enabled="False")
    with pytest.raises(FeatureNotSupported, match=r"gc\.enabled"):
        orphans(events)
    with pytest.raises(FeatureNotSupported, match=r"gc\.enabled"):
        events.storage.maintenance(events.info).remove_orphans(found)
    assert (Path(events.info.location) / found[0].path).exists()


def test_a_recreated_table_is_refused(events: Any) -> None:
    maintenance = events.storage.maintenance(events.info)
    events.storage.catalog().drop_table(events.info.path)
    events.storage.catalog().create_table(events.info.path, events.info.descriptor)
    with pytest.raises(TableChanged, match="recreated"):
        maintenance.orphans(0)


# -- beside commits ----------------------------------------------------------------------------------------------------


def while_staged(moment: str, do: Callable[[], object]) -> Any:
    """Call ``do`` once, when a commit comes to ``moment``."""
    done: list[str] = []

    def at(name: str) -> None:
        if name == moment and not done:
            done.append(name)
            do()

    return failpoints.observed(at)


@contextmanager
def once_metadata_is_written(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> Iterator[None]:
    """Call ``do`` once, when the catalog has written a commit's metadata file and its row does not name it yet."""
    write = SqlCatalog._write_metadata

    def then(**arguments: Any) -> None:
        write(**arguments)
        patch.undo()
        do()

    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "_write_metadata", staticmethod(then))
        yield


def test_a_commit_in_flight_is_refused_when_its_files_are_collected(events: Any) -> None:
    """Between its manifests and the catalog's commit, with no grace at all."""
    append(events, 0)
    staged = events.stage(events.batch(10, 20))
    collected: list[Counter[str]] = []
    with while_staged(STAGED, lambda: collected.append(collect(events))), pytest.raises(Collected):
        events.round_of(events.token(1), staged)
    assert collected == [Counter({"data": 1, "manifest": 1, "manifest-list": 1})]
    assert events.ids() == list(range(10))
    append(events, 1)
    assert events.ids() == list(range(20))
    assert len(every_snapshot(events)) == 3
    assert set(orphans(events).values()) <= {"metadata"}


def test_an_empty_commit_in_flight_lands_with_new_manifests(events: Any) -> None:
    append(events, 0)
    collected: list[Counter[str]] = []
    with while_staged(STAGED, lambda: collected.append(collect(events))):
        result = events.round(events.token(1))
    assert collected == [Counter({"manifest-list": 1})]
    assert (result.outcome, result.conflicts) == (RoundOutcome.PUBLISHED, 1)
    assert list(every_snapshot(events).values()) == [list(range(10))] * 3
    append(events, 2)


def test_a_commit_in_flight_inside_the_catalog_is_refused(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metadata file is written, and the catalog's row does not name it yet."""
    append(events, 0)
    staged, collected = events.stage(events.batch(10, 20)), list[Counter[str]]()
    with (
        once_metadata_is_written(monkeypatch, lambda: collected.append(collect(events))),
        pytest.raises(Collected),
    ):
        events.round_of(events.token(1), staged)
    assert collected == [Counter({"data": 1, "manifest": 1, "manifest-list": 1, "metadata": 1})]
    assert events.ids() == list(range(10))
    append(events, 1)
    assert events.ids() == list(range(20))


def test_a_commit_that_lands_while_files_are_listed_is_no_orphan(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are listed first and compared with what the metadata says after that."""
    append(events, 0)
    staged = events.stage(events.batch(10, 20))
    files = TableFolder.files

    def then_commit(self: TableFolder, folder: str) -> Any:
        yield from files(self, folder)
        if folder == "metadata":
            events.round_of(events.token(1), staged)

    monkeypatch.setattr(TableFolder, "files", then_commit)
    assert orphans(events) == {}
    assert events.ids() == list(range(20))


def test_a_column_added_while_orphans_are_collected_stays(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other commits of laketier write a metadata file too before the catalog names it."""
    from laketier.spi import AddColumn

    append(events, 0)
    events.stage(events.batch(0, 1))
    with once_metadata_is_written(monkeypatch, lambda: collect(events)):
        info = events.storage.catalog().alter_table(events.info.path, [AddColumn(pa.field("new", pa.int32()))])
    assert "new" in info.schema.names
    assert events.ids() == list(range(10))
    document = json.loads(Path(events.table().metadata_location).read_text())
    assert all(Path(entry["metadata-file"]).exists() for entry in document["metadata-log"])


# -- beside other tools ------------------------------------------------------------------------------------------------


def compact(table: Any, before_commit: Callable[[], object] = lambda: None) -> None:
    """As other engines do: all small files of main out, one with the same rows in, in one snapshot."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    loaded = table.table()
    old = [task.file for task in loaded.scan().plan_files()]
    transaction = loaded.transaction()
    with transaction.update_snapshot().overwrite() as rewrite:
        for file in old:
            rewrite.delete_data_file(file)
        for file in _dataframe_to_data_files(loaded.metadata, loaded.scan().to_arrow(), loaded.io):
            rewrite.append_data_file(file)
    before_commit()
    transaction.commit_transaction()


def expire(table: Any) -> None:
    """All but the heads of refs."""
    metadata = table.table().metadata
    heads = {ref.snapshot_id for ref in metadata.refs.values()}
    old = [s.snapshot_id for s in metadata.snapshots if s.snapshot_id not in heads]
    table.table().maintenance.expire_snapshots().by_ids(old).commit()


MOMENTS = ["publish.before", STAGED, "publish.after"]
OTHERS = [[compact], [expire], [compact, expire], [expire, compact]]


@pytest.mark.parametrize(
    ("moment", "others"),
    deep_where(
        [(moment, others) for moment in MOMENTS for others in OTHERS],
        # Each moment and each piece of others' work in `make test`, and both together at each moment.
        lambda moment, others: others != [compact, expire] and (moment != STAGED or len(others) > 1),
    ),
)
def test_foreign_compaction_and_expiry_beside_a_round_lose_nothing(
    events: Any, moment: str, others: list[Callable[[Any], None]]
) -> None:
    append(events, 0, 1)
    append(events, 0, pipeline="idle")
    with while_staged(moment, lambda: [each(events) for each in others]):
        append(events, 2)
    rows = sorted([*range(30), *range(10)])
    assert events.ids() == rows
    compact(events)
    expire(events)
    assert events.ids() == rows
    dead = remove(events)
    assert Counter(file.kind for file in dead)["data"] >= 4
    assert events.ids() == rows
    append(events, 3)
    append(events, 1, pipeline="idle")
    assert events.ids() == sorted([*rows, *range(30, 40), *range(10, 20)])
    assert events.round(events.token(3), events.batch(0, 1)).outcome is RoundOutcome.ALREADY_THERE


def test_a_round_beside_a_foreign_compaction_that_commits_later_loses_nothing(events: Any) -> None:
    """The other order: the compaction has read the table, our round lands, then the compaction commits."""
    append(events, 0, 1)
    with pytest.raises(ValidationException, match="Added data files were found"):
        compact(events, before_commit=lambda: append(events, 2))
    assert events.ids() == list(range(30))
    dead = remove(events)
    assert Counter(file.kind for file in dead)["data"] == 1, "what the compaction had written"
    assert events.ids() == list(range(30))
    append(events, 3)
    assert events.ids() == list(range(40))


def test_a_compaction_in_flight_has_the_grace_period_alone(events: Any) -> None:
    """Other tools know no horizon: collecting with no grace at all is for tables that only laketier writes to."""
    append(events, 0, 1)
    before: list[int] = []

    def collect_with_grace() -> None:
        found = collect_orphans(events.storage, events.info, grace=timedelta(hours=24))
        before.append(len(found.removed))

    compact(events, before_commit=collect_with_grace)
    assert before == [0]
    assert events.ids() == list(range(20))
    append(events, 2)
    assert events.ids() == list(range(30))


def test_a_table_whose_own_folder_does_not_exist(make: Any, tmp_path: Path) -> None:
    """The storage is asked for the time in the table's folder."""
    elsewhere = {f"write.{kind}.path": str(tmp_path / "elsewhere" / kind) for kind in ("data", "metadata")}
    table = make(properties=elsewhere)
    table.round(table.token(0), table.batch(0, 10))
    assert not Path(table.info.location).exists()
    assert collect(table) == {}
    assert not Path(table.info.location).exists()
    assert table.storage.maintenance(table.info).repair() == []
    assert table.ids() == list(range(10))
