from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError

from laketier.spi import (
    CommitterInitContext,
    Conflict,
    Decision,
    Gap,
    NotBegun,
    StagedFileLost,
    TableChanged,
    TableError,
    Token,
    UnknownOutcome,
    Watermark,
    WriteMode,
)
from laketier.tiering import RoundOutcome
from laketier_lance.lance_schema import field_ids


def committer(table, commit_id="c1", mode=WriteMode.APPEND):
    return table.factory.create_committer(CommitterInitContext(commit_id=commit_id, mode=mode))


def watermark(epoch, commit_id="c1", pipeline="p"):
    return Watermark(Token(pipeline, "r", epoch), commit_id)


def test_an_epoch_and_its_watermark_land_in_one_version(table):
    result = table.append(0, 1, 2)
    assert (result.rows, result.files, result.snapshot_id) == (2, 1, 2)
    before, after = (lance.dataset(table.location, version=v) for v in (1, 2))
    assert (before.count_rows(), after.count_rows()) == (0, 2)
    assert b"laketier.watermark.p" not in before.schema.metadata
    stored = Watermark.from_json(after.schema.metadata[b"laketier.watermark.p"])
    assert (stored.token.epoch, stored.rows, stored.snapshot_id) == (0, 2, 2)


def test_a_replayed_epoch_changes_nothing_and_leaves_no_file(table):
    table.append(0, 1)
    files = table.data_files()
    assert table.append(0, 1).outcome is RoundOutcome.ALREADY_THERE
    assert table.ids() == [1]
    assert table.data_files() == files
    assert table.open().version == 2


def test_an_empty_epoch_moves_the_watermark(table):
    table.append(0)
    table.append(1, 7)
    table.append(2)
    assert table.round(2).begin() is Decision.DONE
    assert table.ids() == [7]


def test_publishing_twice_against_one_state_does_not_double_the_rows(table):
    # Lance itself takes the very same Append twice: the next test.
    round_ = committer(table)
    state, staged = round_.open(), table.stage(table.rows(1, 2))
    round_.publish(state, [staged], watermark(0))
    with pytest.raises(Conflict):
        round_.publish(state, [staged], watermark(0))
    assert table.ids() == [1, 2]


def test_a_conflict_with_ones_own_transaction_is_none(table):
    round_ = committer(table)
    dataset = round_.open().dataset
    merge = lance.LanceOperation.Merge([], dataset.lance_schema, preserves_nullability=True)
    transaction = lance.Transaction(read_version=dataset.version, operation=merge)
    lance.LanceDataset.commit(dataset, transaction, max_retries=0)
    with pytest.raises(CommitConflictError) as again:
        lance.LanceDataset.commit(dataset, transaction, max_retries=0)
    assert round_._resolve(dataset, transaction.uuid, again.value) == 2
    with pytest.raises(Conflict):
        round_._resolve(dataset, "another", again.value)


def test_lance_doubles_an_append_that_is_committed_twice(table):
    # The reason why an append is not an Append here. If this fails, Lance has changed.
    fragments = lance.fragment.write_fragments(pa.Table.from_batches([table.rows(1)]), table.location, mode="append")
    transaction = lance.Transaction(read_version=1, operation=lance.LanceOperation.Append(fragments))
    lance.LanceDataset.commit(table.location, transaction)
    lance.LanceDataset.commit(table.location, transaction)
    assert table.ids() == [1, 1]


def test_an_index_finds_old_and_new_rows(table):
    table.append(0, 1, 2)
    table.foreign("index")
    table.append(1, 3)
    table.open().delete("id < 3")
    table.append(2, 4)
    dataset = table.open()
    assert len(dataset.describe_indices()) == 1
    assert [dataset.count_rows(f"id = {i}") for i in (1, 2, 3, 4)] == [0, 0, 1, 1]


@pytest.mark.parametrize("of_ours", [True, False])
def test_rounds_go_on_after_a_compaction_that_rewrote_an_index(table, of_ours):
    """pylance can't tell what that transaction was: reading it raises a `TypeError`."""
    if of_ours:
        table.append(0, 1)
        table.append(1, 2)
    else:
        for number in (1, 2):
            rows = pa.Table.from_batches([table.rows(number)])
            lance.write_dataset(rows, table.location, mode="append" if number == 2 else "overwrite")
        table.reload()
    table.foreign("index")
    table.foreign("compaction")
    with pytest.raises(TypeError, match="RewrittenIndex"):
        table.open().read_transaction(table.open().version)
    assert table.storage.history(table.info).snapshots(1)[0].operation == "rewrite"
    if of_ours:
        assert table.round(1).begin() is Decision.DONE
    else:
        table.open().cleanup_old_versions(older_than=timedelta(0))
        table.reload()
        identity = table.info.table_uuid
        table.append(0)
        table.append(1)
        table.reload()
        assert table.info.table_uuid == identity
    assert table.append(2, 3).outcome is RoundOutcome.PUBLISHED
    assert table.ids() == [1, 2, 3]
    # And where the answer to a batch was lost just then.
    round_, staged = table.round(None), table.stage(table.rows(4))
    state = round_._committer.open()
    table.foreign("append")
    table.foreign("compaction")
    with pytest.raises(Conflict):
        round_._committer.publish(state, [staged], None)
    assert not round_._committer.open().landed("c1")
    assert round_.commit([staged]).outcome is RoundOutcome.PUBLISHED
    assert table.ids() == [1, 2, 3, 4, 90]


def test_compaction_keeps_the_rows_of_files_whose_field_ids_have_gaps(table):
    table.append(0, 1)
    table.open().drop_columns(["name"])
    table.open().add_columns(pa.schema([pa.field("name", pa.string())]))
    table.reload()
    assert [number for _, number in field_ids(table.open().lance_schema)] == [0, 2]
    table.append(1, 2)
    table.append(2, 3)
    expected = [{"id": 1, "name": None}, {"id": 2, "name": "n2"}, {"id": 3, "name": "n3"}]
    assert table.open().to_table().to_pylist() == expected
    table.open().optimize.compact_files()
    assert len(table.open().get_fragments()) == 1
    assert table.open().to_table().to_pylist() == expected


@pytest.mark.parametrize("change", ["cast", "rename", "drop", "add"])
def test_files_staged_before_a_schema_change_are_refused(table, change):
    table.append(0, 1)
    staged = table.stage(table.rows(2))
    table.foreign(change)
    with pytest.raises(TableChanged, match="schema changed"):
        table.round(1).commit([staged])
    assert table.open().count_rows() == 1
    # Certain not to have landed, so the file is gone.
    assert not (Path(table.location) / staged.files[0].path).exists()


def test_a_column_that_was_dropped_and_added_again_is_another_column(table):
    table.append(0, 1)
    staged = table.stage(table.rows(2))
    table.open().drop_columns(["name"])
    table.open().add_columns(pa.schema([pa.field("name", pa.string())]))
    with pytest.raises(TableChanged, match="schema changed"):
        table.round(1).commit([staged])


def test_publish_itself_refuses_fragments_with_other_field_ids(table):
    staged = table.stage(table.rows(2))
    table.foreign("add")
    round_ = committer(table)
    with pytest.raises(NotBegun, match="has fields"):
        round_.publish(round_.open(), [staged], watermark(0))


def test_publish_refuses_files_that_the_driver_does_not_see(table):
    staged = table.stage(table.rows(2))
    os.remove(Path(table.location) / staged.files[0].path)
    round_ = committer(table)
    with pytest.raises(StagedFileLost, match="does not see"):
        round_.publish(round_.open(), [staged], watermark(0))
    assert table.open().version == 1


def test_a_stale_publish_after_cleanup_is_refused(table):
    table.append(0, 1)
    round_ = committer(table)
    state, staged = round_.open(), table.stage(table.rows(2))
    for number in range(3):
        table.append(number, 10 + number, pipeline="q")
    table.open().cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises((Conflict, NotBegun, UnknownOutcome, TableError)) as refusal:
        round_.publish(state, [staged], watermark(1))
    assert not isinstance(refusal.value, Conflict)  # some versions are gone: nobody can tell for certain
    assert 2 not in table.ids()


def test_an_epoch_that_skips_one_is_a_gap(table):
    table.append(0, 1)
    with pytest.raises(Gap):
        table.append(2, 2)


def test_overwrite_replaces_all_rows_and_keeps_identity_watermarks_and_history(table):
    table.append(0, 1, pipeline="q")
    table.append(0, 2)
    identity = table.info.table_uuid
    table.append(1, 3, mode=WriteMode.OVERWRITE)
    assert table.ids() == [3]
    table.reload()
    assert table.info.table_uuid == identity
    assert table.round(0, pipeline="q").begin() is Decision.DONE
    assert table.round(1).begin() is Decision.DONE
    assert table.scan(snapshot_id=3).num_rows == 2
    table.append(2, mode=WriteMode.OVERWRITE)
    assert table.ids() == []
    table.append(1, 4, pipeline="q")
    assert table.ids() == [4]


def test_an_append_of_others_that_began_before_an_epoch_lands_beside_it(table):
    transaction = lance.fragment.write_fragments(
        pa.Table.from_batches([table.rows(90)]), table.location, mode="append", return_transaction=True
    )
    table.append(0, 1)
    lance.LanceDataset.commit(table.location, transaction)
    assert table.ids() == [1, 90]
    assert table.round(0).begin() is Decision.DONE


def test_landed_finds_a_batch_without_a_pipeline(table):
    round_ = committer(table, "mine")
    state, staged = round_.open(), table.stage(table.rows(1))
    assert not state.landed("mine")
    round_.publish(state, [staged], None)
    table.foreign("append")
    assert round_.open().landed("mine")
    assert not round_.open().landed("other")
    assert b"laketier.watermark.p" not in table.open().schema.metadata


def test_landed_says_when_it_can_not_tell(table):
    round_ = committer(table, "mine")
    state = round_.open()
    round_.publish(state, [], None)
    for number in range(3):
        table.append(number, number)
    table.open().cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises(UnknownOutcome, match="cleaned up"):
        round_.open().landed("mine")
