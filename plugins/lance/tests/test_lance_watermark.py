"""What a table remembers of its pipelines, and what makes it forget."""

from __future__ import annotations

from datetime import timedelta

import lance
import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    CommitterInitContext,
    Decision,
    RolledBack,
    SetProperty,
    TableChanged,
    new_attempt_id,
)
from laketier.tiering import pipelines
from laketier_lance import rounds
from laketier_lance.state import ROLLBACK_HORIZON


def test_the_watermark_survives_what_others_do(table):
    for epoch in range(4):
        table.append(epoch, epoch)
    table.foreign("append")
    table.foreign("delete")
    table.foreign("compaction")
    table.foreign("add")
    table.foreign("upsert")
    table.open().cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert [ref["version"] for ref in table.open().version_refs()] == [table.open().version]
    assert table.round(3).begin() is Decision.DONE
    table.reload()
    table.append(4, 4)
    assert table.ids().count(4) == 1
    assert {0, 2, 3, 90, 94} <= set(table.ids())
    table.open().validate()


def test_a_restore_that_brings_back_an_older_watermark_is_refused(table):
    for epoch in range(3):
        table.append(epoch, epoch)
    lance.dataset(table.location, version=3).restore()
    for epoch in (1, 2, 3):
        with pytest.raises(RolledBack, match="version 4 published a later epoch"):
            table.round(epoch).begin()
    pipelines.adopt(table.factory, "p", run="r", epoch=1)
    table.append(2, 2)
    assert table.ids() == [0, 1, 2]


def test_a_restore_stays_noticed_after_the_rounds_of_other_pipelines(table):
    for epoch in range(3):
        table.append(epoch, epoch)
    table.append(0, 7, pipeline="q")
    table.append(1, 8, pipeline="q")
    lance.dataset(table.location, version=3).restore()
    for epoch in range(3):
        table.append(epoch, 20 + epoch, pipeline="r")
    table.open().cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises(RolledBack, match="version 4"):
        table.round(2).begin()
    table.append(3, 23, pipeline="r")
    pipelines.adopt(table.factory, "p", run="r", epoch=1)
    table.append(2, 2)
    assert table.round(2).begin() is Decision.DONE
    assert table.ids() == [0, 1, 2, 20, 21, 22, 23]


def test_an_idle_pipeline_costs_nothing_while_others_publish(table, monkeypatch):
    """The horizon of orphan collection is such a one, and looked at in each round."""
    table.append(0, 1, pipeline="idle")
    for epoch in range(20):
        table.append(epoch, epoch)
    state = table.factory.create_committer(CommitterInitContext(commit_id="c")).open()
    monkeypatch.setattr(rounds, "properties_of", lambda _: pytest.fail("a transaction was read"))
    assert state.watermark("idle").token.epoch == 0


def test_a_version_is_read_once_however_often_the_table_is_opened(table, monkeypatch):
    table.append(0, 0)
    asked = []
    read = rounds.recent_transactions
    monkeypatch.setattr(rounds, "recent_transactions", lambda at, count: asked.append(count) or read(at, count))
    for more in (3, 2):
        for _ in range(more):
            table.foreign("append")
        for _ in range(4):
            assert table.round(0).begin() is Decision.DONE
    assert [count for count in asked if count] == [3, 2]


def test_a_restore_is_noticed_after_many_looks_before_it(table):
    table.append(0, 0)
    table.foreign("append")
    table.append(1, 1)
    assert table.round(1).begin() is Decision.DONE
    lance.dataset(table.location, version=2).restore()
    table.foreign("append")
    for _ in range(2):
        with pytest.raises(RolledBack, match="version 4"):
            table.round(1).begin()


def test_a_restore_that_keeps_the_watermark_is_fine(table):
    table.append(0, 1)
    table.foreign("append")
    lance.dataset(table.location, version=2).restore()
    assert table.round(0).begin() is Decision.DONE
    table.append(1, 2)
    assert table.ids() == [1, 2]


@pytest.mark.filterwarnings("ignore:replace_schema_metadata:DeprecationWarning")
@pytest.mark.parametrize(
    "erase",
    [
        lambda t: t.foreign("overwrite"),
        lambda t: lance.dataset(t.location, version=1).restore(),
        lambda t: t.open().replace_schema_metadata({"a": "b"}),
    ],
)
def test_an_erased_watermark_is_a_loud_refusal(table, erase):
    table.append(0, 1)
    table.append(1, 2)
    staged = table.stage(table.rows(3))
    erase(table)
    with pytest.raises(RolledBack, match="version 3 knows pipeline 'p', and the newest one does not"):
        table.round(2).commit([staged])
    assert 3 not in table.ids()
    table.reload()
    with pytest.raises(RolledBack):  # a log is read from its start where the table says nothing
        table.round(0).begin()
    assert table.factory.create_committer(CommitterInitContext(new_attempt_id())).open().pipelines() == ["p"]
    pipelines.forget(table.factory, "p")
    assert table.round(0).begin() is Decision.PROCEED


def _without_the_watermark(table):
    kept = {name.decode(): value.decode() for name, value in table.open().schema.metadata.items()}
    table.open().replace_schema_metadata({name: value for name, value in kept.items() if "watermark" not in name})


def _cleaned_up(table):
    table.open().replace_schema_metadata({})
    table.open().cleanup_old_versions(timedelta(0), retain_versions=1)


def _long_ago(table):
    table.open().replace_schema_metadata({})
    dataset = table.open()
    for number in range(ROLLBACK_HORIZON):
        dataset.update_config({"a": str(number)})


def _moved_and_cleaned_up(table):
    """No file of laketier's is left, nor a version that a round made."""
    table.foreign("compaction")
    table.open().cleanup_old_versions(timedelta(0), retain_versions=1)
    table.open().replace_schema_metadata({})


@pytest.mark.filterwarnings("ignore:replace_schema_metadata:DeprecationWarning")
@pytest.mark.parametrize("erase", [_without_the_watermark, _cleaned_up, _long_ago, _moved_and_cleaned_up])
def test_rows_whose_pipeline_was_erased_are_not_loaded_again(table, erase):
    """Also where no version tells of the rounds any more: the files are laketier's."""
    table.append(0, 1)
    table.append(1, 2)
    erase(table)
    table.reload()
    with pytest.raises(RolledBack, match="pipeline"):
        table.append(0, 1)
    assert table.ids() == [1, 2]
    pipelines.adopt(table.factory, "p", run="r", epoch=1)
    table.append(2, 3)
    assert table.ids() == [1, 2, 3]


@pytest.mark.filterwarnings("ignore:replace_schema_metadata:DeprecationWarning")
def test_what_was_erased_stays_so_for_each_pipeline_until_it_is_decided(table):
    """A batch, a property and another pipeline write metadata anew, and tell nothing of those that were forgotten."""
    table.append(0, 1)
    table.append(0, 2, pipeline="q")
    _cleaned_up(table)
    table.reload()
    table.storage.catalog().alter_table(table.path, [SetProperty("owner", "me", None)])
    table.reload()
    table.append(None, 3)
    pipelines.adopt(table.factory, "p", run="r", epoch=0)
    table.append(1, 4)
    for pipeline in ("q", "new"):
        with pytest.raises(RolledBack, match="nothing of what it kept of its pipelines"):
            table.append(0, 2, pipeline=pipeline)
    pipelines.forget(table.factory, "new")
    table.append(0, 5, pipeline="new")
    assert table.ids() == [1, 2, 3, 4, 5]


def test_a_dataset_of_others_has_no_pipelines_that_it_could_have_lost(table):
    lance.write_dataset(pa.Table.from_batches([table.rows(9)]), table.location, mode="overwrite")
    table.open().cleanup_old_versions(timedelta(0), retain_versions=1)
    table.reload()
    table.append(0, 1)
    assert table.ids() == [1, 9]


def test_a_table_that_was_recreated_is_refused(table):
    table.append(0, 1)
    staged = table.stage(table.rows(2))
    table.storage.catalog().drop_table(table.path)
    type(table)(table.warehouse)
    with pytest.raises(TableChanged, match="recreated"):
        table.round(0).commit([staged])


def test_a_dataset_of_others_gets_an_identity_by_the_first_publish(table):
    other = f"{table.warehouse}/db/theirs.lance"
    lance.write_dataset(pa.Table.from_batches([table.rows(1)]), other)
    theirs = type(table).__new__(type(table))
    theirs.__dict__.update(table.__dict__, path=type(table.path)("db", "theirs"), location=other)
    theirs.reload()
    assert b"laketier.table-uuid" not in (lance.dataset(other).schema.metadata or {})
    derived = theirs.info.table_uuid
    theirs.append(0, 2)
    lance.dataset(other).cleanup_old_versions(older_than=timedelta(0))
    theirs.reload()
    assert theirs.info.table_uuid == derived
    assert lance.dataset(other).schema.metadata[b"laketier.table-uuid"].decode() == derived
    theirs.append(1, 3)
    assert theirs.ids() == [1, 2, 3]


def test_watermarks_survive_a_new_column(table):
    table.append(0, 1)
    table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int32()))])
    assert table.round(0).begin() is Decision.DONE
    table.reload()
    table.append(1, 2)
    assert table.open().to_table(columns=["more"]).column("more").null_count == 2


def test_pipelines_have_watermarks_of_their_own(table):
    names = ["p", "p.q", "ü/ß", new_attempt_id()]
    for name in names:
        table.append(0, 1, pipeline=name)
    assert [table.round(0, pipeline=name).begin() for name in names] == [Decision.DONE] * 4
    assert table.round(0, pipeline="other").begin() is Decision.PROCEED
