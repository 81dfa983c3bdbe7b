"""What is built on the log: splits, changes, history, orphans, warehouses, and formats that move their files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from laketier import kit, spi
from laketier.kit.manifests import storage
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.growth import Growth
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.snapshot import ManifestSnapshot
from laketier.kit.manifests.source import whole_file
from laketier.tiering import TieringRound
from text_lake import PATH, SCHEMA, Lake, PoorTable, TextSource, TextTable, following, put

NAME = "f" * 32 + ".text"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


class Staged(TextTable):
    """Files move: staged in one folder, and kept in another."""

    layout: ClassVar = replace(
        TextTable.layout,
        staging="_in",
        others=("data",),
        attempt_of=lambda path: TextTable.layout.attempt_of(path.removeprefix("_in/")),
        staged_as=lambda path: f"_in/{path.rpartition('/')[2]}",
        allowed=lambda path: path.startswith("data/"),
    )
    told: ClassVar[list[Any]] = []

    def settle(self, manifests: ManifestLog, head: Manifest) -> None:
        self.told.append((manifests, head))

    def check_folder(self) -> None:
        self.told.append("folder")

    def entry(self, state: Any, file: spi.StagedFile) -> FileEntry:
        return replace(super().entry(state, file), path=f"data/{file.path.rpartition('/')[2]}")


def test_a_format_that_moves_its_files(tmp_path: Path) -> None:
    Staged.told.clear()
    lake = Lake(tmp_path, Staged)
    assert (lake.table.location / "_in").is_dir()
    assert Staged.layout.own_folders == {"_text", "_in", "data"}
    assert TextTable.layout.own_folders == {"_text"}
    manifests = lake.table.manifests()
    head = following(
        manifests.head()[0], Staged.layout, added=(FileEntry(f"data/{NAME}", 1, 2, 0, (), None, {"lines": 1}),)
    )
    put(manifests, head)
    lake.table.open()
    assert Staged.told == ["folder", (manifests, head)]
    assert lake.table.published(manifests, head) == {f"_in/{NAME}"}
    other, third = "e" * 32 + ".text", "d" * 32 + ".text"
    opened = FileEntry(f"data/{other}", 1, 2, 0, details={"lines": 1}, growth=Growth(0, 0, 2, 0, "d"))
    assert lake.table.published(manifests, replace(head, open=(opened,), removed=(f"data/{third}",))) == {
        f"_in/{name}" for name in (NAME, other, third)
    }
    before = following(head, Staged.layout)
    put(manifests, replace(before, open=(opened,)))
    reset = replace(following(manifests.read(2), Staged.layout), kind="overwrite", open=())
    assert lake.table.published(manifests, reset) == {f"_in/{other}"}, "it was open, and is taken away"
    assert lake.table.published(manifests, replace(reset, kind="append")) == set()
    put(manifests, before)
    with pytest.raises(spi.CorruptTable, match="manifest 2 is not the one that manifest 3 follows"):
        lake.table.published(manifests, reset)
    manifests.path(2).unlink()
    (lake.table.location / "_in" / "anything").write_text("")
    (lake.table.location / "_in" / NAME).write_text("")
    assert [file.path for file in lake.maintenance.orphans(1 << 60)] == ["_in/anything"]
    with pytest.raises(spi.OutsideTable, match="is not the path of a data file"):
        Staged.layout.data_path(f"_in/{NAME}", where="here")


def test_a_folder_that_the_format_refuses_is_not_touched(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: Any) -> None:
        raise spi.UnsafeTable("not here")

    monkeypatch.setattr(TextTable, "check_folder", refuses)
    manifests = lake.table.manifests()
    put(manifests, following(manifests.head()[0]))
    with pytest.raises(spi.UnsafeTable):
        lake.table.open()
    assert manifests.head()[1] is False


def test_a_split_tells_what_is_known_of_its_file(lake: Lake) -> None:
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    entry = FileEntry(NAME, 7, 99, 0, (("day", "1"), ("x", None)), 3, {"lines": 7})
    snapshot = ManifestSnapshot(manifests, head, head, settled=True)
    assert lake.source.split(4, entry, snapshot, SCHEMA) == spi.LakeSplit(
        index=4,
        rows=7,
        bytes=99,
        bucket=3,
        partition=(("day", "1"), ("x", None)),
        files=(NAME,),
        payload=kit.ManifestFile(NAME),
    )
    assert lake.source.split(0, replace(entry, bucket=None), snapshot, SCHEMA).bucket == -1
    assert whole_file(0, entry, None, "there").plain_parquet == "there"


def test_a_snapshot_knows_what_a_file_was_written_with(lake: Lake) -> None:
    lake.round(0, 1)
    lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("more", pa.int64()))])
    manifests = lake.table.manifests()
    head = manifests.head()[0]
    snapshot = ManifestSnapshot(manifests, head, head, settled=True)
    [entry] = snapshot.files()
    assert snapshot.is_newest
    assert not ManifestSnapshot(manifests, head, manifests.read(1), settled=True).is_newest
    assert snapshot.schema.names == ["id", "more"]
    first = snapshot.written_with(entry)
    assert first.names == ["id"]
    assert snapshot.written_with(replace(entry, schema=2)).names == ["id", "more"]
    assert snapshot.written_with(entry) is first, "it is read once"
    made = [snapshot.remembered("key", lambda answer=answer: answer) for answer in (1, 2)]  # type: ignore[misc]
    assert (made, snapshot.remembered("other", lambda: 3)) == ([1, 1], 3)


def test_an_entry_keeps_partition_bucket_and_payload(lake: Lake) -> None:
    file = spi.StagedFile(NAME, 1, 2, partition=(("day", "1"),), bucket=3, payload={"lines": "1"})
    found = lake.table.entry(lake.table.open(), file)
    assert (found.partition, found.bucket, found.details) == ((("day", "1"),), 3, {"lines": "1"})
    assert found.details is not file.payload


def _upsert(lake: Lake, epoch: int, *numbers: int, replaced: tuple[str, ...] = ()) -> None:
    tiering = TieringRound(lake, token=spi.Token("p", "run", epoch), mode=spi.WriteMode.UPSERT)  # type: ignore[arg-type]
    tiering.begin()
    tiering.commit([replace(lake.stage(*numbers), replaced=replaced)])


def test_a_commit_that_replaces_nothing_is_an_append(lake: Lake) -> None:
    lake.round(0, 1, mode=spi.WriteMode.OVERWRITE)
    assert len(lake.changes.plan(0, 2).splits) == 1, "the table was empty"
    _upsert(lake, 1, 2)
    assert len(lake.changes.plan(0, 3).splits) == 2, "an upsert without a file to replace"
    lake.round(2, 3, mode=spi.WriteMode.OVERWRITE)
    with pytest.raises(spi.RowsChanged):
        lake.changes.plan(0, 4)
    old = lake.source.plan(spi.ScanRequest()).splits[0].files
    _upsert(lake, 3, 4, replaced=old)
    with pytest.raises(spi.RowsChanged):
        lake.changes.plan(4, 5)
    assert lake.changes.plan(4, 5, skip_changes=True).splits == ()
    _upsert(lake, 4, 5)
    assert len(lake.changes.plan(5, 6).splits) == 1


def test_a_plan_of_changes_is_of_its_last_snapshot(lake: Lake) -> None:
    lake.round(0, 1)
    lake.round(1, 2)
    assert lake.changes.plan(0, 2).snapshot_id == 1
    assert lake.changes.plan(0, 3).snapshot_id == 2
    bounds = lake.changes.versions()
    assert bounds == spi.VersionBounds(earliest=0, latest=3, latest_at=lake.table.manifests().head()[0].at)
    with pytest.raises(spi.SnapshotNotFound, match="the newest snapshot is 2"):
        lake.changes.plan(5, 5)
    with pytest.raises(spi.OffsetsExpired):
        lake.changes.plan(-1, 1)


def test_changes_are_looked_at_anew(lake: Lake) -> None:
    for epoch in range(3):
        lake.round(epoch, epoch)
        assert lake.changes.versions().latest == epoch + 2
    assert lake.changes.plan(0, 2).schema.names == ["id"]
    lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("more", pa.int64()))])
    assert lake.changes.plan(0, 2).schema.names == ["id", "more"]


def test_history_tells_who_made_each(lake: Lake) -> None:
    lake.round(0, 1, 2)
    TieringRound(lake, token=spi.Token("q", "run", 0)).commit([lake.stage(3)])  # type: ignore[arg-type]
    TieringRound(lake, token=None).commit([lake.stage(4)])  # type: ignore[arg-type]
    told = [(line.snapshot_id, line.rows, line.pipeline, line.epoch) for line in lake.history.snapshots(9)]
    assert told == [(3, 1, None, None), (2, 1, "q", 0), (1, 2, "p", 0), (0, 0, None, None)]


@pytest.mark.parametrize("mode", [spi.WriteMode.OVERWRITE, spi.WriteMode.UPSERT])
def test_modes_that_the_features_leave_out_are_refused(tmp_path: Path, mode: spi.WriteMode) -> None:
    lake = Lake(tmp_path, PoorTable)
    factory = kit.ManifestStorage(tmp_path, PoorTable, TextSource, _no_writer)
    made = factory.tiering_factory(lake.info)
    with pytest.raises(spi.FeatureNotSupported):
        made.create_writer(spi.WriterInitContext(attempt="a", mode=mode))
    with pytest.raises(spi.FeatureNotSupported):
        made.create_committer(spi.CommitterInitContext("c", mode=mode))
    with pytest.raises(spi.FeatureNotSupported, match="orphan-collection"):
        factory.maintenance(lake.info)


def _no_writer(table: spi.TableInfo, attempt: str) -> Any:
    raise AssertionError("no writer is made")


def test_only_files_older_than_the_moment_are_orphans(lake: Lake) -> None:
    left = lake.stage(1).files[0].path
    manifests = lake.table.manifests()
    (manifests.folder / ".x.tmp").write_text("")
    (manifests.folder.parent / ("e" * 32)).mkdir()
    (manifests.folder.parent / ("e" * 32) / "0.json").write_text("")
    paths = [left, f"_text/{manifests.table_uuid}/.x.tmp", f"_text/{'e' * 32}/0.json"]
    for path in paths:
        os.utime(lake.table.location / path, ns=(5_000_000_000, 5_000_000_000))
    assert {file.path: file.kind for file in lake.maintenance.orphans(5_001)} == {
        paths[0]: "data",
        paths[1]: "manifest",
        paths[2]: "manifest",
    }
    assert lake.maintenance.orphans(5_000) == []


def test_what_is_committed_while_orphans_are_listed_is_none(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    files = kit.manifests.maintenance.ManifestMaintenance._staged

    def committed_meanwhile(self: Any) -> Any:
        found = files(self)
        monkeypatch.undo()
        lake.round(0, 1)
        return [*found, *files(self)]

    monkeypatch.setattr(kit.manifests.maintenance.ManifestMaintenance, "_staged", committed_meanwhile)
    assert lake.maintenance.orphans(1 << 60) == []


@pytest.mark.parametrize(
    ("warehouse", "expected"),
    [
        ("/data/lake", "/data/lake"),
        ("file:///data/a%20b", "/data/a b"),
        ("file://localhost/data", "/data"),
        ("file:/data", "/data"),
        ("~/lake", os.path.expanduser("~/lake")),
        ("lake", os.path.abspath("lake")),
        ("./odd:lake", os.path.abspath("odd:lake")),
        ("/data/odd:lake", "/data/odd:lake"),
        ("/data/a#b?c", "/data/a#b?c"),
        ("#lake", os.path.abspath("#lake")),
    ],
)
def test_a_warehouse_is_a_folder(warehouse: str, expected: str) -> None:
    assert storage.warehouse_folder(warehouse, format="text", features={}) == Path(expected)


@pytest.mark.parametrize(
    ("warehouse", "error", "told"),
    [
        ("", spi.ConfigError, "is empty"),
        ("  ", spi.ConfigError, "is empty"),
        ("file:", spi.ConfigError, "is empty"),
        ("file://", spi.ConfigError, "is empty"),
        ("file://localhost", spi.ConfigError, "is empty"),
        ("file:///data/a#b", spi.ConfigError, "has a #.*%23"),
        ("file:///data/a?b", spi.ConfigError, r"has a \?.*%3F"),
        ("s3:/bucket/lake", spi.ConfigError, r"neither a URI nor a plain path.*s3://bucket/lake.*\./s3:/bucket/lake"),
        ("file://host/data", spi.ConfigError, "names the host 'host'"),
        ("s3://bucket/lake", spi.FeatureNotSupported, "object-stores"),
    ],
)
def test_a_warehouse_that_is_none(warehouse: str, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        storage.warehouse_folder(warehouse, format="text", features={})


class Plain(TextSource):
    """Its files are plain Parquet, it says, and it leaves filters to the reader."""

    def split(self, *about: Any) -> spi.LakeSplit:
        return replace(super().split(*about), plain_parquet="there")


def test_a_plan_says_what_is_left_to_the_reader(lake: Lake) -> None:
    lake.round(0, 1)
    source = Plain(lake.table)
    wanted = (spi.Leaf("id", spi.Op.GT, 0),)
    plan = source.plan(spi.ScanRequest(filters=wanted))
    assert (plan.remaining, [split.plain_parquet for split in plan.splits]) == (wanted, ["there"])
    lake.round(1, 2, 3)
    [first, _] = source.plan(spi.ScanRequest(filters=wanted, limit=1)).splits
    assert (first.limit, first.rows) == (None, 1), "the first row may be none that is asked for"
    [first] = source.plan(spi.ScanRequest(limit=1)).splits[:1]
    assert first.rows == 1
    changes = kit.ManifestChanges(source).plan(0, 2)
    assert [split.plain_parquet for split in changes.splits] == [None], "of a file whose columns may be older ones"


class Plugin(kit.ManifestPlugin):
    """All parts of a format, as an author names them."""

    identifier: ClassVar[str] = "text"
    features: ClassVar[Any] = TextTable.features
    table_type: ClassVar[Any] = TextTable
    source_type: ClassVar[Any] = TextSource
    writer_type: ClassVar[Any] = _no_writer


def test_the_parts_of_a_plugin_are_those_of_its_format(tmp_path: Path) -> None:
    made = Plugin().create_storage(spi.LakeStorageConfig(str(tmp_path)))
    info = made.catalog().create_table(PATH, spi.TableDescriptor(SCHEMA))
    assert isinstance(made.source(info), TextSource)
    committer = made.tiering_factory(info).create_committer(spi.CommitterInitContext("c"))
    assert committer.publish(committer.open(), [], None).snapshot_id == 1
    assert [each.snapshot_id for each in made.history(info).snapshots(9)] == [1, 0]
    with pytest.raises(spi.ConfigError, match="is no folder, and text keeps its manifests in one"):
        Plugin().create_storage(spi.LakeStorageConfig("s3://bucket/lake"))
