"""Replacing fragments by one `Overwrite` of those that stay and the new ones: what Lance makes of it."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laketier.spi import AddColumn, NotBegun, Refused, ScanRequest, WriteMode
from laketier_lance.private import with_metadata


def upsert(table, epoch, ids, replaced=()):
    land(table, epoch, table.stage(table.rows(*ids)), replaced)


def land(table, epoch, staged, replaced):
    table.land(epoch, replace(staged, replaced=tuple(replaced)), mode=WriteMode.UPSERT)


@pytest.fixture
def keyed(table):
    """Rows 1 and 2 in one fragment, 3 and 4 in another, 5 in a third."""
    for epoch, ids in enumerate([(1, 2), (3, 4), (5,)]):
        upsert(table, epoch, ids)
    return table


def test_one_version_per_epoch_and_lance_finds_it_valid(keyed):
    before = keyed.open().version
    upsert(keyed, 3, (3, 6), keyed.fragments(3))
    dataset = keyed.open()
    assert dataset.version == before + 1, "rows and watermark in one commit"
    dataset.validate()
    assert keyed.ids() == [1, 2, 3, 5, 6]
    assert keyed.scan()["id"].to_pylist() == [1, 2, 5, 3, 6]
    assert sorted(keyed.scan(snapshot_id=before)["id"].to_pylist()) == [1, 2, 3, 4, 5]


def test_an_epoch_that_replaces_nothing_is_a_merge(keyed):
    """So indexes and appends of others that are under way are as with appends."""
    keyed.foreign("index")
    upsert(keyed, 3, (6,))
    dataset = keyed.open()
    assert isinstance(dataset.read_transaction(dataset.version).operation, lance.LanceOperation.Merge)
    assert [index.name for index in dataset.describe_indices()] == ["id_idx"]


def test_a_merge_of_rows_is_refused_while_there_is_an_index(keyed):
    """Lance would drop it."""
    keyed.foreign("index")
    names = keyed.fragments(3)
    with pytest.raises(Refused, match="would drop the indexes id_idx"):
        upsert(keyed, 3, (3,), names)
    assert keyed.ids() == [1, 2, 3, 4, 5]
    dataset = keyed.open()
    assert [index.name for index in dataset.describe_indices()] == ["id_idx"]
    dataset.drop_index("id_idx")
    upsert(keyed, 3, (3,), names)


def test_an_overwrite_tells_which_indexes_it_drops(table, caplog):
    table.append(0, 1)
    table.foreign("index")
    with caplog.at_level(logging.WARNING):
        table.land(1, table.stage(table.rows(7)), mode=WriteMode.OVERWRITE)
    assert table.open().describe_indices() == []
    assert "id_idx" in caplog.text


def test_fragment_names_are_never_used_again(keyed):
    """So a name of an older snapshot can't be taken for another fragment."""
    seen = set()
    for epoch in range(3, 10):
        names = set(keyed.fragments(*range(100)))
        assert not names & seen
        seen |= names
        upsert(keyed, epoch, (epoch + 10,), keyed.fragments(epoch + 9) or sorted(names)[:1])


def test_fragments_of_an_older_schema_stay_readable(keyed):
    keyed.storage.catalog().alter_table(keyed.path, [AddColumn(pa.field("more", pa.int64()))])
    keyed.reload()
    batch = pa.RecordBatch.from_pylist(
        [{"id": 3, "name": "n", "more": 7}], schema=keyed.open().schema.remove_metadata()
    )
    land(keyed, 3, keyed.stage(batch), keyed.fragments(3))
    read = keyed.open().to_table().sort_by("id")
    assert read.select(["id", "more"]).to_pydict() == {"id": [1, 2, 3, 5], "more": [None, None, 7, None]}
    keyed.open().validate()


def test_columns_in_files_of_their_own_stay(keyed):
    """A column that others computed is in a second file of each fragment."""
    keyed.open().add_columns({"twice": "id * 2"})
    keyed.reload()
    schema = keyed.open().schema.remove_metadata()
    batch = pa.RecordBatch.from_pylist([{"id": 3, "name": "n", "twice": 6}], schema=schema)
    land(keyed, 3, keyed.stage(batch), keyed.fragments(3))
    read = keyed.open().to_table()
    assert sorted(read["id"].to_pylist()) == [1, 2, 3, 5]
    assert read["twice"].equals(pc.multiply(read["id"], 2))
    keyed.open().validate()


def test_columns_that_were_written_anew_stay(keyed):
    """A cast leaves the old column in its file, without a field, and the new one in a file of its own."""
    keyed.foreign("cast")
    keyed.reload()
    schema = keyed.open().schema.remove_metadata()
    assert schema.field("id").type == pa.int32()
    land(
        keyed, 3, keyed.stage(pa.RecordBatch.from_pylist([{"id": 3, "name": "new"}], schema=schema)), keyed.fragments(3)
    )
    read = keyed.open().to_table().sort_by("id")
    assert read.to_pydict() == {"id": [1, 2, 3, 5], "name": ["n1", "n2", "new", "n5"]}
    keyed.open().validate()


def test_fragments_that_others_deleted_rows_of(keyed):
    """Replaced they may be, kept not: Lance refuses it, and so do we, with what to do about it."""
    keyed.open().delete("id = 1")
    upsert(keyed, 3, (2, 7), keyed.fragments(2))
    assert keyed.ids() == [2, 3, 4, 5, 7]
    keyed.open().delete("id = 4")
    with pytest.raises(Refused, match="materialize_deletions_threshold=0"):
        upsert(keyed, 4, (5, 8), keyed.fragments(5))
    assert keyed.ids() == [2, 3, 5, 7]
    keyed.open().optimize.compact_files(materialize_deletions_threshold=0)
    upsert(keyed, 4, (2, 3, 5, 7, 8), keyed.fragments(5))
    assert keyed.ids() == [2, 3, 5, 7, 8], "the compaction put them all into one fragment"
    keyed.open().validate()


def test_fragments_without_any_row_left_are_dropped(keyed):
    keyed.open().delete("id in (3, 4)")
    upsert(keyed, 3, (5, 8), keyed.fragments(5))
    assert keyed.ids() == [1, 2, 5, 8]


def test_lance_still_refuses_what_the_committer_refuses(keyed):
    """Once it takes fragments with deletion files, `_refuse_deletions` can go."""
    keyed.open().delete("id = 4")
    dataset = keyed.open()
    present = [fragment.metadata for fragment in dataset.get_fragments()]
    schema = with_metadata(dataset.lance_schema, dataset.schema.metadata)
    transaction = lance.Transaction(dataset.version, lance.LanceOperation.Overwrite(schema, present))
    with pytest.raises(OSError, match="carries deletion file"):
        lance.LanceDataset.commit(dataset, transaction, max_retries=0)


def test_stable_row_ids_stay_unique(tmp_path, make_table):
    """Of a dataset that somebody else made with them."""
    table = make_table()
    lance.LanceDataset.drop(table.location)
    lance.write_dataset(pa.Table.from_batches([table.rows(1, 2)]), table.location, enable_stable_row_ids=True)
    table.reload()
    upsert(table, 0, (3, 4))
    for epoch in range(1, 4):
        upsert(table, epoch, (3, 4, 10 + epoch), table.fragments(3))
    read = table.open().to_table(with_row_id=True)
    assert sorted(read["id"].to_pylist()) == [1, 2, 3, 4, 13]
    assert pc.count_distinct(read["_rowid"]).as_py() == 5
    taken = table.open()._take_rows(read["_rowid"].to_pylist())
    assert taken["id"].equals(read["id"])


def test_cleanup_and_compaction_of_others(keyed):
    for epoch in range(3, 9):
        upsert(keyed, epoch, (3, 4), keyed.fragments(3))
    files = len(keyed.data_files())
    keyed.open().cleanup_old_versions(older_than=timedelta(0))
    assert len(keyed.data_files()) == 3 < files, "files that no version needs any more"
    keyed.open().optimize.compact_files()
    assert keyed.ids() == [1, 2, 3, 4, 5]
    upsert(keyed, 9, (9,), keyed.fragments(1))
    assert keyed.ids() == [9]


def test_tags_config_and_metadata_stay(keyed):
    keyed.foreign("config")
    keyed.open().tags.create("then", keyed.open().version)
    upsert(keyed, 3, (3,), keyed.fragments(3))
    dataset = keyed.open()
    assert dataset.config()["a"] == "b"
    assert sorted(lance.dataset(keyed.location, version="then").to_table()["id"].to_pylist()) == [1, 2, 3, 4, 5]
    assert keyed.storage.catalog().load_table(keyed.path).table_uuid == keyed.info.table_uuid


def test_names_of_split_groups(make_table):
    """Many small fragments are read as one split; its names are all of theirs. A cut or filtered one has none."""
    table = make_table()
    for epoch in range(20):
        upsert(table, epoch, (epoch,))
    source = table.storage.source(table.info)
    [split] = source.plan(ScanRequest()).splits
    assert len(split.files) == 20
    [cut] = source.plan(ScanRequest(limit=3)).splits
    assert cut.files == ()
    upsert(table, 20, (7,), split.files)
    assert table.ids() == [7]


def test_an_error_names_the_fragment(keyed):
    with pytest.raises(NotBegun, match=r"999.*no live file"):
        upsert(keyed, 3, (3,), ("999",))
    assert keyed.ids() == [1, 2, 3, 4, 5]
