"""A table of files and manifests whose files stay where they are staged, and what the toolbox refuses for its author.

What crashes and races do to such a table is shown on local files, which move their files as well.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laketier import kit, spi
from laketier.kit.manifests import committer
from laketier.kit.manifests.document import encode
from laketier.tiering import TieringRound
from text_lake import PATH, SCHEMA, Lake, OtherTable, PoorTable, TrustingTable, UncountedSource


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_rounds_snapshots_and_changes(lake: Lake) -> None:
    lake.round(0, 1, 2)
    lake.round(1, 3)
    lake.round(2, 4, mode=spi.WriteMode.OVERWRITE)
    lake.round(3, 5)
    assert lake.read() == [4, 5]
    assert [lake.read(snapshot_id=number) for number in range(5)] == [[], [1, 2], [1, 2, 3], [4], [4, 5]]
    assert [info.operation for info in lake.history.snapshots(2)] == ["append", "overwrite"]
    assert lake.changes.versions().latest == 5
    assert [split.rows for split in lake.changes.plan(0, 3).splits] == [2, 1]
    with pytest.raises(spi.RowsChanged):
        lake.changes.plan(0, 4)
    with pytest.raises(spi.SnapshotNotFound, match="the newest snapshot is 4"):
        lake.changes.plan(0, 9)
    sent = pickle.loads(pickle.dumps(lake.source))  # noqa: S301 - what Spark does
    assert sent.plan(spi.ScanRequest()) == lake.source.plan(spi.ScanRequest())


def test_a_limit_cuts_the_last_split(lake: Lake) -> None:
    lake.round(0, 1, 2)
    lake.round(1, 3, 4)
    plan = lake.source.plan(spi.ScanRequest(limit=3))
    assert [(split.rows, split.limit) for split in plan.splits] == [(2, None), (1, 1)]
    assert lake.read(limit=3) == [1, 2, 3]
    assert plan.splits[1].files == ()


def test_a_limit_keeps_every_split_where_one_does_not_know_its_rows(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.source = UncountedSource(lake.table)
    for epoch in range(3):
        lake.round(epoch, epoch)
    plan = lake.source.plan(spi.ScanRequest(limit=2))
    assert [split.rows for split in plan.splits] == [1, None, 1]


def test_replaced_files_leave_and_stay_for_older_snapshots(lake: Lake) -> None:
    lake.round(0, 1)
    old = lake.source.plan(spi.ScanRequest()).splits[0].files
    tiering = TieringRound(lake, token=spi.Token("p", "run", 1), mode=spi.WriteMode.UPSERT)  # type: ignore[arg-type]
    tiering.begin()
    tiering.commit([replace(lake.stage(2), replaced=old)])
    assert lake.read() == [2]
    assert lake.read(snapshot_id=1) == [1]


def test_orphans_are_files_that_no_snapshot_ever_had(lake: Lake) -> None:
    lake.round(0, 1)
    lake.round(1, 2, mode=spi.WriteMode.OVERWRITE)
    lake.round(2, 3)
    (lake.table.location / "notes.txt").write_text("the user's")
    left = lake.stage(9)
    found = lake.maintenance.orphans(1 << 62)
    assert [(file.path, file.attempt) for file in found] == [(left.files[0].path, left.attempt)]
    assert lake.maintenance.remove_orphans(found) == found
    assert lake.read(snapshot_id=1) == [1]
    assert lake.maintenance.orphans(1 << 62) == []


def test_discard_keeps_what_an_older_snapshot_needs(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    published = lake.round(0, 1)
    lake.round(1, 2, mode=spi.WriteMode.OVERWRITE)
    left = lake.stage(9)
    lake.create_committer(spi.CommitterInitContext("c")).discard([published, left])
    assert "is in the table: kept" in caplog.text
    assert lake.read(snapshot_id=1) == [1]
    assert not (lake.table.location / left.files[0].path).exists()


def test_a_recreated_table_has_nothing_of_the_old_one(lake: Lake) -> None:
    lake.round(0, 1)
    state = lake.table.open()
    lake.catalog.drop_table(PATH)
    with pytest.raises(spi.TableNotFound):
        lake.table.open()
    lake.catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))
    with pytest.raises(spi.Conflict):
        lake.create_committer(spi.CommitterInitContext("c")).publish(state, [], None)
    assert lake.read() == []
    assert lake.table.open().watermark("p") is None


def test_a_table_of_another_format_is_refused_by_its_name(lake: Lake) -> None:
    with pytest.raises(spi.IncompatibleTable, match="has the format 'text', and 'other' was asked for"):
        OtherTable(lake.table.location).open()
    with pytest.raises(spi.IncompatibleTable, match=r"Set lake\.format"):
        kit.ManifestCatalog(OtherTable, lake.catalog.warehouse).create_table(PATH, spi.TableDescriptor(SCHEMA))


@pytest.mark.parametrize(
    ("layout", "feature"),
    [
        ({"partition_by": (spi.PartitionField("id"),)}, "partitioning"),
        ({"partition_by": (spi.PartitionField.parse("bucket(4, id)"),)}, "partition-transforms"),
        ({"buckets": spi.BucketSpec(2, ("id",))}, "bucketing"),
        ({"primary_key": ("id",)}, "upsert"),
    ],
)
def test_what_the_features_leave_out_is_refused(tmp_path: Path, layout: dict[str, Any], feature: str) -> None:
    with pytest.raises(spi.FeatureNotSupported, match=f"text does not support {feature}"):
        kit.ManifestCatalog(PoorTable, tmp_path).create_table(PATH, spi.TableDescriptor(SCHEMA, **layout))
    assert not list(tmp_path.iterdir())


def test_transforms_that_are_not_declared_are_refused_whatever_the_format_checks(tmp_path: Path) -> None:
    transformed = spi.TableDescriptor(SCHEMA, (spi.PartitionField.parse("bucket(4, id)"),))
    with pytest.raises(spi.FeatureNotSupported, match=r"partition-transforms(.|\n)*Add a column that holds bucket"):
        kit.ManifestCatalog(TrustingTable, tmp_path).create_table(PATH, transformed)


def test_reading_what_the_features_leave_out_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path, PoorTable)
    for attempt in (
        lambda: lake.read(snapshot_id=0),
        lambda: lake.read(as_of=1),
        lambda: lake.history.snapshots(1),
        lake.changes.versions,
        lambda: lake.changes.plan(0, 1),
        lambda: lake.catalog.alter_table(PATH, [spi.RenameColumn("id", "key")]),
    ):
        with pytest.raises(spi.FeatureNotSupported):
            attempt()
    lake.round(0, 1, 2)
    [split] = lake.source.plan(spi.ScanRequest(limit=1)).splits
    assert (split.rows, split.limit) == (2, None)


@pytest.mark.parametrize("change", [{"lines": "x"}, {"path": "../1.text"}, {"path": "_text/table.json"}, {"rows": -1}])
def test_an_entry_that_no_writer_made_is_damage(lake: Lake, change: dict[str, Any]) -> None:
    lake.round(0, 1)
    path = lake.table.manifests().path(1)
    body = json.loads(path.read_bytes())["body"]
    body["added"][0] |= change
    path.write_bytes(encode(body))
    (path.parent / "head.json").unlink()
    with pytest.raises(spi.CorruptTable, match=path.name):
        lake.table.open()


def test_a_forged_result_is_not_published(lake: Lake) -> None:
    staged = lake.stage(1)
    committer = lake.create_committer(spi.CommitterInitContext("c"))
    short = replace(staged, files=(replace(staged.files[0], bytes=99),))
    other = replace(staged, attempt=spi.new_attempt_id())
    for forged, error in ((short, spi.StagedFileLost), (other, spi.OutsideTable)):
        with pytest.raises(error):
            committer.publish(committer.open(), [forged], None)
    assert lake.read() == []


def test_what_was_published_is_not_published_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same state and the same files, a moment later: what was answered before counts for nothing."""
    times = iter(range(10**13, 10**13 + 9))
    monkeypatch.setattr(committer, "host_time", lambda: next(times))
    ours = lake.create_committer(spi.CommitterInitContext("c"))
    state, staged = ours.open(), lake.stage(1)
    assert ours.publish(state, [staged], None).snapshot_id == 1
    with pytest.raises(spi.Conflict):
        ours.publish(state, [staged], None)
    assert lake.read() == [1]
