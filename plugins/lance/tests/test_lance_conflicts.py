"""Commits of others that come between `open` and `publish`."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import lance
import pyarrow as pa
import pytest

from laketier.spi import (
    CommitterInitContext,
    Conflict,
    Decision,
    RolledBack,
    TableChanged,
    Token,
    Watermark,
    WriteMode,
)
from laketier.tiering import RoundOutcome

CHANGES = [
    "append",
    "delete",
    "compaction",
    "add",
    "drop",
    "rename",
    "cast",
    "overwrite",
    "restore",
    "metadata",
    "update",
    "merge insert",
    "other pipeline",
]


def committer(table, mode=WriteMode.APPEND):
    return table.factory.create_committer(CommitterInitContext(commit_id="c1", mode=mode))


def staged_for(table, mode):
    """Row 3; as an upsert it takes the place of row 2."""
    staged = table.stage(table.rows(3))
    return replace(staged, replaced=tuple(table.fragments(2))) if mode is WriteMode.UPSERT else staged


def watermark(epoch):
    return Watermark(Token("p", "r", epoch), "c1")


@pytest.mark.parametrize("mode", WriteMode)
@pytest.mark.parametrize("change", CHANGES)
def test_a_publish_against_a_state_that_has_passed_is_a_conflict(table, change, mode):
    table.append(0, 1)
    table.append(1, 2)
    round_ = committer(table, mode=mode)
    state, staged = round_.open(), staged_for(table, mode)
    table.foreign(change)
    now = table.open().version
    with pytest.raises(Conflict):
        round_.publish(state, [staged], watermark(2))
    assert table.open().version == now
    assert 3 not in table.ids()


@pytest.mark.parametrize("change", ["append", "delete", "compaction", "metadata", "update", "other pipeline"])
def test_the_round_goes_through_after_such_a_conflict(table, change):
    table.append(0, 1)
    table.append(1, 2)
    round_ = table.round(2)
    staged = table.stage(table.rows(3))
    round_.begin()
    table.foreign(change)
    assert round_.commit([staged]).outcome is RoundOutcome.PUBLISHED
    assert table.ids().count(3) == 1
    assert table.round(2).begin() is Decision.DONE


@pytest.mark.parametrize("change", ["config", "index"])
def test_config_and_indexes_that_come_between_do_not_lose_anything(table, change):
    table.append(0, 1)
    round_ = committer(table)
    state, staged = round_.open(), table.stage(table.rows(2))
    table.foreign(change)
    assert round_.publish(state, [staged], watermark(1)).snapshot_id == table.open().version
    assert table.ids() == [1, 2]
    # The watermark names the version it was meant for, and carries the commit that tells it from a later one.
    assert table.round(2).begin() is Decision.PROCEED


# The other way round: others hold a handle that they opened before our round landed, and commit through it.


def fragments_of(table):
    return lance.fragment.write_fragments(rows_of(table, 91), table.location, mode="append")


def rows_of(table, *ids):
    return pa.Table.from_batches([table.rows(*ids)])


def commit(dataset, operation):
    lance.LanceDataset.commit(dataset, lance.Transaction(dataset.version, operation))


def present(dataset):
    return [fragment.metadata for fragment in dataset.get_fragments()]


def replace_first_file(table, dataset):
    group = lance.LanceOperation.DataReplacementGroup(0, fragments_of(table)[0].files[0])
    commit(dataset, lance.LanceOperation.DataReplacement([group]))


def upsert(table, dataset):
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows_of(table, 1, 92))


LATE = {
    "append": lambda t, d: d.insert(rows_of(t, 90)),
    "delete": lambda t, d: d.delete("id = 1"),
    "update": lambda t, d: d.update({"name": "'x'"}),
    "upsert": upsert,
    "compaction": lambda t, d: d.optimize.compact_files(),
    "merge": lambda t, d: commit(d, lance.LanceOperation.Merge(present(d), d.lance_schema)),
    "merge of the same nullability": lambda t, d: commit(
        d, lance.LanceOperation.Merge(present(d), d.lance_schema, preserves_nullability=True)
    ),
    "join": lambda t, d: d.merge(pa.table({"id": pa.array([1, 2], pa.int64()), "more": [1, 2]}), "id"),
    "new empty column": lambda t, d: d.add_columns(pa.schema([pa.field("more", pa.int32())])),
    "new computed column": lambda t, d: d.add_columns({"more": "id + 1"}),
    "cast": lambda t, d: d.alter_columns({"path": "id", "data_type": pa.int32()}),
    "rename": lambda t, d: d.alter_columns({"path": "name", "name": "title"}),
    "nullability": lambda t, d: d.alter_columns({"path": "id", "nullable": True}),
    "drop": lambda t, d: d.drop_columns(["name"]),
    "project": lambda t, d: commit(d, lance.LanceOperation.Project(d.schema)),
    "replaced file": replace_first_file,
    "metadata": lambda t, d: d.update_schema_metadata({"a": "b"}),
    "all metadata": lambda t, d: d.update_schema_metadata({"a": "b"}, replace=True),
    "field metadata": lambda t, d: d.update_field_metadata({"name": {"a": "b"}}),
    "config": lambda t, d: d.update_config({"a": "b"}),
    "index": lambda t, d: d.create_scalar_index("id", "BTREE"),
}
"""Whatever others do through a late handle, but overwrite and restore."""

GO_THROUGH = {
    WriteMode.APPEND: {"append", "delete", "update", "upsert", "config", "index"},
    WriteMode.OVERWRITE: {"config"},
    WriteMode.UPSERT: {"config"},
}
"""What Lance lets in after our round, or does once more on top of it; it refuses the rest."""


@pytest.mark.parametrize("mode", WriteMode)
@pytest.mark.parametrize("change", LATE)
def test_a_late_commit_of_others_loses_no_row_of_a_round_and_no_watermark(table, change, mode):
    table.append(0, 1)
    table.append(1, 2)
    late = table.open()
    table.land(2, staged_for(table, mode), mode=mode)
    goes_through = change in GO_THROUGH[mode]
    with contextlib.nullcontext() if goes_through else pytest.raises(OSError, match=r"conflict|incompatible"):
        LATE[change](table, late)
    assert table.ids().count(3) == 1
    assert table.open().to_table(filter="id = 3").num_rows == 1
    assert table.round(2).begin() is Decision.DONE
    table.reload()
    assert table.round(3).begin() is Decision.PROCEED


BURIES = {
    "overwrite": (lambda t, d: lance.write_dataset(rows_of(t, 91), d, mode="overwrite"), RolledBack),
    "overwrite with what was read": (lambda t, d: lance.write_dataset(d.to_table(), d, mode="overwrite"), RolledBack),
    "bare overwrite": (
        lambda t, d: commit(d, lance.LanceOperation.Overwrite(d.schema, fragments_of(t))),
        RolledBack,
    ),
    "restore": (lambda t, d: d.restore(), RolledBack),
}
"""What Lance lets through although it buries what came between, and the refusal that follows."""


@pytest.mark.parametrize("change", BURIES)
def test_a_late_overwrite_or_restore_of_others_buries_a_round_and_no_later_one_goes_through(table, change):
    table.append(0, 1)
    table.append(1, 2)
    late = table.open()
    table.append(2, 3)
    bury, refusal = BURIES[change]
    bury(table, late)
    assert 3 not in table.ids(), "once Lance refuses this, the README has a sentence less"
    table.reload()
    for epoch in (2, 3):
        with pytest.raises(refusal):
            table.append(epoch, 3)
    assert 3 not in table.ids()


@pytest.mark.parametrize("mode", [WriteMode.OVERWRITE, WriteMode.UPSERT])
@pytest.mark.parametrize("change", ["overwrite", "overwrite with what was read", "bare overwrite"])
def test_a_late_overwrite_of_others_does_not_bury_an_overwrite_of_ours(table, change, mode):
    table.append(0, 1)
    table.append(1, 2)
    late = table.open()
    table.land(2, staged_for(table, mode), mode=mode)
    with pytest.raises(OSError, match="conflict"):
        BURIES[change][0](table, late)
    assert table.ids() == ([3] if mode is WriteMode.OVERWRITE else [1, 3])


def test_files_staged_before_a_foreign_overwrite_are_refused(table):
    """Lance itself would take them, with a read version of 0, and the table could not be read any more."""
    staged = table.stage(table.rows(1))
    table.foreign("overwrite")
    with pytest.raises(TableChanged):
        table.round(0).commit([staged])
    assert table.ids() == [91]
