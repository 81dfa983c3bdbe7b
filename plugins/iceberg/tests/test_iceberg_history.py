"""Rollback detection, expiry in the commit, refs and tags."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table.update import SetSnapshotRefUpdate

from laketier.spi import CommitterInitContext, Decision, RolledBack, UnknownOutcome, WatermarkLost, new_attempt_id
from laketier.spi.clocks import shifted
from laketier.tiering import TieringRound, pipelines
from laketier_iceberg import erased, stored
from laketier_iceberg.expiry import expired
from laketier_iceberg.options import IcebergOptions


def _epochs(events: Any, first: int, last: int, pipeline: str = "p") -> list[int]:
    return [
        events.round(events.token(e, pipeline), events.batch(e * 10, e * 10 + 10)).snapshot_id
        for e in range(first, last + 1)
    ]


def test_a_rollback_is_noticed_and_adopting_ends_it(events: Any) -> None:
    snapshots = _epochs(events, 0, 3)
    events.table().manage_snapshots().rollback_to_snapshot(snapshots[1]).commit()
    with pytest.raises(RolledBack, match=str(snapshots[3])):
        TieringRound(events.factory, token=events.token(4)).begin()
    with pytest.raises(RolledBack):
        events.round(events.token(4), events.batch(90, 95))
    assert events.ids() == list(range(20))
    pipelines.adopt(events.factory, "p", run="run", epoch=1)
    events.round(events.token(2), events.batch(20, 30))
    assert events.ids() == list(range(30))


def test_a_rollback_is_noticed_also_after_others_have_gone_on(events: Any) -> None:
    snapshots = _epochs(events, 0, 2)
    events.table().manage_snapshots().set_current_snapshot(snapshot_id=snapshots[0]).commit()
    _epochs(events, 0, 1, "other")
    with pytest.raises(RolledBack):
        TieringRound(events.factory, token=events.token(3)).begin()
    assert TieringRound(events.factory, token=events.token(2, "other")).begin() is Decision.PROCEED


def test_a_rollback_behind_an_expired_snapshot_is_noticed_by_sequence_numbers(events: Any) -> None:
    snapshots = _epochs(events, 0, 3)
    events.table().manage_snapshots().rollback_to_snapshot(snapshots[1]).commit()
    events.table().maintenance.expire_snapshots().by_ids([snapshots[0], snapshots[2], snapshots[3]]).commit()
    with pytest.raises(RolledBack):
        TieringRound(events.factory, token=events.token(4)).begin()


def _expire_all_but_the_current(events: Any) -> None:
    metadata = events.table().metadata
    old = [each.snapshot_id for each in metadata.snapshots if each.snapshot_id != metadata.current_snapshot_id]
    events.table().maintenance.expire_snapshots().by_ids(old).commit()


def test_a_rollback_behind_newer_snapshots_is_noticed_after_all_others_expired(events: Any) -> None:
    """The snapshots of today don't tell; an older metadata file does."""
    snapshots = _epochs(events, 0, 3)
    events.table().manage_snapshots().rollback_to_snapshot(snapshots[1]).commit()
    events.table().append(pa.Table.from_batches([events.batch(90, 91)]))
    _expire_all_but_the_current(events)
    for epoch in (3, 4):
        with pytest.raises(RolledBack, match=f"snapshot {snapshots[3]}, which carried epoch 3"):
            TieringRound(events.factory, token=events.token(epoch)).begin()
    assert events.ids() == [*range(20), 90]
    pipelines.adopt(events.factory, "p", run="run", epoch=1)
    events.round(events.token(2), events.batch(20, 30))
    assert events.ids() == [*range(30), 90]


def test_a_rollback_that_was_taken_back_before_all_others_expired_is_none(events: Any) -> None:
    snapshots = _epochs(events, 0, 3)
    for snapshot in (snapshots[1], snapshots[3]):
        events.table().manage_snapshots().set_current_snapshot(snapshot_id=snapshot).commit()
    events.table().append(pa.Table.from_batches([events.batch(90, 91)]))
    _expire_all_but_the_current(events)
    _epochs(events, 4, 4)
    assert events.ids() == sorted([*range(50), 90])


def test_metadata_of_before_a_watermark_tells_of_no_rollback(events: Any) -> None:
    """Where others removed what says when it came, and those that had its snapshot are gone."""
    (snapshot,) = _epochs(events, 0, 0)
    table = events.table()
    with table.transaction() as tx:
        tx.remove_properties("laketier.sequence-number.p")
    table.append(pa.Table.from_batches([events.batch(90, 91)]))
    _expire_all_but_the_current(events)
    older = [Path(each.metadata_file.removeprefix("file://")) for each in events.table().metadata.metadata_log]
    without = [path for path in older if str(snapshot) not in path.read_text()]
    assert without
    for path in set(older) - set(without):
        path.unlink()
    assert TieringRound(events.factory, token=events.token(1)).begin() is Decision.PROCEED


@pytest.mark.parametrize("still_there", [0, 8], ids=["none has its snapshot", "some have its snapshot"])
def test_a_pipeline_that_rests_asks_few_older_metadata_files_and_each_once(
    events: Any, monkeypatch: pytest.MonkeyPatch, still_there: int
) -> None:
    """Each may have megabytes, there are a hundred of them, and each round looks several times."""
    _epochs(events, 0, 0)
    with events.table().transaction() as tx:
        tx.set_properties({"write.metadata.previous-versions-max": "16"})
    for number in range(20):
        if number == 20 - still_there // 2:
            _expire_all_but_the_current(events)
        if number == 1 and not still_there:
            _expire_all_but_the_current(events)
        events.table().append(pa.Table.from_batches([events.batch(90 + number, 91 + number)]))
    older = [each.metadata_file for each in events.table().metadata.metadata_log]
    assert len(older) == 16
    read: list[str] = []

    def document_at(options: Any, file: str) -> Any:
        read.append(file)
        return stored.document_at(options, file)

    monkeypatch.setattr(erased, "document_at", document_at)
    for _ in range(3):
        assert TieringRound(events.factory, token=events.token(1)).begin() is Decision.PROCEED
    assert len(read) == len(set(read))
    assert len(read) == 1 if not still_there else 1 < len(read) <= 6
    events.table().append(pa.Table.from_batches([events.batch(80, 81)]))
    known = len(read)
    assert TieringRound(events.factory, token=events.token(1)).begin() is Decision.PROCEED
    assert len(read) == len(set(read)) <= known + 1


def test_a_dropped_main_branch_is_noticed(events: Any) -> None:
    _epochs(events, 0, 1)
    table = events.table()
    from pyiceberg.table.update import RemoveSnapshotRefUpdate

    table.catalog.commit_table(table, (), (RemoveSnapshotRefUpdate.model_validate({"ref-name": "main"}),))
    with pytest.raises(RolledBack):
        TieringRound(events.factory, token=events.token(2)).begin()


def test_foreign_commits_on_top_are_no_rollback(events: Any) -> None:
    _epochs(events, 0, 1)
    events.table().delete("id < 5")
    events.table().overwrite(events.table().scan().to_arrow())
    assert TieringRound(events.factory, token=events.token(2)).begin() is Decision.PROCEED
    assert TieringRound(events.factory, token=events.token(1)).begin() is Decision.DONE


def test_a_watermark_survives_the_expiry_of_its_snapshot(events: Any) -> None:
    snapshots = _epochs(events, 0, 1)
    _epochs(events, 0, 1, "other")
    events.table().maintenance.expire_snapshots().by_ids(snapshots).commit()
    assert TieringRound(events.factory, token=events.token(1)).begin() is Decision.DONE
    _epochs(events, 2, 2)
    assert len(events.ids()) == 50


@pytest.mark.parametrize("only", [True, False], ids=["the watermark", "all properties"])
def test_a_pipeline_whose_property_others_removed_is_not_loaded_again(events: Any, only: bool) -> None:
    """A log is read from its start, as the first epoch, where the table says nothing of the pipeline."""
    _epochs(events, 0, 1)
    _epochs(events, 0, 0, "other")
    table = events.table()
    with table.transaction() as tx:
        tx.remove_properties(*(["laketier.watermark.p"] if only else list(table.properties)))
    for epoch in (0, 2):
        with pytest.raises(RolledBack, match="holds epoch 1 of the pipeline"):
            TieringRound(events.factory, token=events.token(epoch)).begin()
    context = CommitterInitContext(new_attempt_id())
    assert sorted(events.factory.create_committer(context).open().pipelines()) == ["other", "p"]
    assert TieringRound(events.factory, token=events.token(0, "new")).begin() is Decision.PROCEED
    pipelines.adopt(events.factory, "p", run="run", epoch=1)
    events.round(events.token(2), events.batch(20, 30))
    assert events.ids() == sorted([*range(10), *range(30)])
    pipelines.forget(events.factory, "p")
    assert TieringRound(events.factory, token=events.token(0)).begin() is Decision.PROCEED


def _erase_and_expire(events: Any) -> None:
    """All properties and all snapshots of laketier, behind the commit of another tool."""
    table = events.table()
    with table.transaction() as tx:
        tx.remove_properties(*list(table.properties))
    table.append(pa.Table.from_batches([events.batch(90, 91)]))
    _expire_all_but_the_current(events)


def test_a_pipeline_whose_property_and_snapshots_others_removed_is_not_loaded_again(events: Any) -> None:
    """An older metadata file tells. Pipelines that it does not know, or that were forgotten, are new ones."""
    _epochs(events, 0, 0, "forgotten")
    pipelines.forget(events.factory, "forgotten")
    _epochs(events, 0, 1)
    _erase_and_expire(events)
    for epoch in (0, 2):
        with pytest.raises(RolledBack, match="an older metadata file of the table holds epoch 1 of the pipeline"):
            TieringRound(events.factory, token=events.token(epoch)).begin()
    for name in ("new", "forgotten"):
        assert TieringRound(events.factory, token=events.token(0, name)).begin() is Decision.PROCEED
    pipelines.adopt(events.factory, "p", run="run", epoch=1)
    events.round(events.token(2), events.batch(20, 30))
    assert events.ids() == sorted([*range(10), *range(30), 90])
    pipelines.forget(events.factory, "p")
    assert TieringRound(events.factory, token=events.token(0)).begin() is Decision.PROCEED


def test_older_metadata_files_that_are_gone_or_damaged_hinder_nothing(events: Any) -> None:
    """Then nothing tells of the pipeline any more."""
    _epochs(events, 0, 1)
    _erase_and_expire(events)
    for number, entry in enumerate(events.table().metadata.metadata_log):
        file = Path(entry.metadata_file.removeprefix("file://"))
        if number % 2:
            file.unlink()
        else:
            file.write_text("{")
    assert TieringRound(events.factory, token=events.token(0)).begin() is Decision.PROCEED


def test_a_property_that_went_with_the_rows_is_a_lost_watermark(events: Any) -> None:
    snapshots = _epochs(events, 0, 0, "other")
    _epochs(events, 0, 1)
    events.table().manage_snapshots().rollback_to_snapshot(snapshots[0]).commit()
    with events.table().transaction() as tx:
        tx.remove_properties("laketier.watermark.p")
    with pytest.raises(WatermarkLost):
        TieringRound(events.factory, token=events.token(2)).begin()
    assert TieringRound(events.factory, token=events.token(0)).begin() is Decision.PROCEED


def test_a_rollback_is_noticed_although_others_removed_the_sequence_number(events: Any) -> None:
    snapshots = _epochs(events, 0, 2)
    with events.table().transaction() as tx:
        tx.remove_properties("laketier.sequence-number.p")
    events.table().manage_snapshots().rollback_to_snapshot(snapshots[0]).commit()
    with pytest.raises(RolledBack):
        TieringRound(events.factory, token=events.token(3)).begin()


def _expiring(make: Any, **properties: str) -> Any:
    return make(options=IcebergOptions(expire_in_commit=True), properties=properties)


def test_expiry_in_the_commit_keeps_the_watermark_and_the_rows(make: Any) -> None:
    events = _expiring(make, **{"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "3"})
    _epochs(events, 0, 0, "idle")
    snapshots = _epochs(events, 0, 9)
    kept = [s.snapshot_id for s in events.table().metadata.snapshots]
    assert sorted(kept) == sorted(snapshots[-3:])
    assert len(events.ids()) == 110
    assert TieringRound(events.factory, token=events.token(0, "idle")).begin() is Decision.DONE
    assert TieringRound(events.factory, token=events.token(10)).begin() is Decision.PROCEED


def test_without_the_option_nothing_expires(make: Any) -> None:
    events = make(properties={"history.expire.max-snapshot-age-ms": "0"})
    _epochs(events, 0, 4)
    assert len(events.table().metadata.snapshots) == 5


def test_expiry_honours_age_branches_tags_and_their_own_limits(make: Any) -> None:
    events = _expiring(make, **{"history.expire.max-snapshot-age-ms": "0"})
    plain = make(name="plain")
    snapshots = _epochs(plain, 0, 4)
    manage = plain.table().manage_snapshots()
    manage.create_tag(snapshots[0], "kept-tag")
    manage.create_branch(snapshots[2], "wide", min_snapshots_to_keep=2)
    manage.create_tag(snapshots[3], "old-tag", max_ref_age_ms=1)
    manage.commit()
    table = plain.table()
    with table.transaction() as tx:
        tx.set_properties({"history.expire.max-snapshot-age-ms": "0"})
    later = max(s.timestamp_ms for s in table.metadata.snapshots) + 1000
    ids, refs = expired(plain.table().metadata, later)
    assert refs == ["old-tag"]
    assert set(ids) == {snapshots[3]}
    expiring = type(plain)(events.storage, plain.info, events.storage.tiering_factory(plain.info))
    time.sleep(0.002)  # the tag's maximum age is a millisecond
    expiring.round(expiring.token(5), expiring.batch(50, 60))
    after = expiring.table().metadata
    assert set(after.refs) == {"main", "kept-tag", "wide"}
    assert {s.snapshot_id for s in after.snapshots} == {
        snapshots[0], snapshots[1], snapshots[2], after.current_snapshot_id
    }  # fmt: skip
    assert plain.table().scan(snapshot_id=snapshots[0]).to_arrow().num_rows == 10
    assert expiring.ids() == list(range(60))


def test_a_commit_keeps_what_main_itself_retains(make: Any) -> None:
    """An update of the ref without its settings takes them away, and its snapshots would go in the same commit."""
    events = _expiring(make, **{"history.expire.max-snapshot-age-ms": "0"})
    _epochs(events, 0, 0)
    table = events.table()
    head = table.metadata.current_snapshot().snapshot_id
    retains = {"min-snapshots-to-keep": 4, "max-snapshot-age-ms": 1}
    main = {"ref-name": "main", "type": "branch", "snapshot-id": head}
    table.catalog.commit_table(table, (), (SetSnapshotRefUpdate.model_validate({**main, **retains}),))
    snapshots = _epochs(events, 1, 6)
    after = events.table().metadata
    assert after.refs["main"].model_dump(by_alias=True, exclude_none=True) == {
        **retains, "type": "branch", "snapshot-id": snapshots[-1]
    }  # fmt: skip
    assert {s.snapshot_id for s in after.snapshots} == set(snapshots[-4:])


def test_the_default_age_keeps_five_days_and_gc_can_be_off(make: Any) -> None:
    events = _expiring(make)
    snapshots = _epochs(events, 0, 2)
    metadata = events.table().metadata
    now = metadata.current_snapshot().timestamp_ms
    day = 24 * 60 * 60 * 1000
    assert expired(metadata, now + 4 * day) == ([], [])
    assert set(expired(metadata, now + 6 * day)[0]) == set(snapshots[:2])
    with events.table().transaction() as tx:
        tx.set_properties({"gc.enabled": "false"})
    assert expired(events.table().metadata, now + 6 * day) == ([], [])


def test_a_host_that_is_ahead_expires_nothing_that_is_young(make: Any) -> None:
    events = _expiring(make)
    snapshots = _epochs(events, 0, 3)
    with shifted(10 * 24 * 60 * 60 * 1000):
        _epochs(events, 3, 5)
    assert set(snapshots) <= {snapshot.snapshot_id for snapshot in events.table().metadata.snapshots}


def test_a_batch_without_a_pipeline_knows_whether_it_landed(events: Any) -> None:
    _epochs(events, 0, 1)
    committer = events.committer("mine")
    state = committer.open()
    committer.publish(state, [events.stage(events.batch(90, 95))], None)
    assert committer.open().landed("mine") is True
    assert committer.open().landed("theirs") is False
    assert events.committer().open().landed("mine") is True


def test_a_batch_whose_time_has_expired_says_so(events: Any) -> None:
    snapshots = _epochs(events, 0, 3)
    events.table().maintenance.expire_snapshots().by_ids(snapshots[:2]).commit()
    with pytest.raises(UnknownOutcome, match="expired"):
        events.committer().open().landed("mine")
