"""Rows that other tools change: readers, filters, logs and indexes have what they are now, no more what they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Feature,
    IndexMode,
    Leaf,
    Match,
    Op,
    PartitionField,
    RenameColumn,
    RowsChanged,
    ScanRequest,
    SchemaChange,
    WidenColumn,
)
from laketier.tiering import RoundOutcome
from laketier_conformance import foreign
from laketier_conformance.documents import Documents, text_of, words_of
from laketier_conformance.expect import HarnessFailed, expect, refused
from laketier_conformance.harness import Harness
from laketier_conformance.lake import SCHEMA, Lake, Table, ids_of, name_of, token

Unproven = Callable[[str, str], None]
CHANGED = "changed by others"
_HIDDEN = pytest.mark.needs(Feature.PARTITIONING, Feature.PARTITION_TRANSFORMS)
NEW_WORD = "zyzzyva"
"""It is in no other text."""


def test_rows_that_others_updated_are_the_new_ones(table: Table, harness: Harness, unproven: Unproven) -> None:
    """In scans and filters; older snapshots have the old ones. Rounds go on, and a log of what was appended refuses."""
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    if harness.update_rows is None:
        unproven("rows that others update", "the format's harness has no update_rows")
        return
    before, whole = table.info.snapshot_id, ids_of(0, 0) + ids_of(0, 1)
    updated = [whole[0], whole[6]]  # of each file one
    for name in (CHANGED, name_of(updated[0])):
        expect(_named(table, name), [i for i in whole if name_of(i) == name], f"the rows where name = {name!r}")
    foreign.update(table, harness, updated, "name", CHANGED)
    names = {i: CHANGED if i in updated else name_of(i) for i in whole}
    expect(_names(table), names, "a table is read of which others updated rows")
    for name, ids in ((CHANGED, updated), (name_of(updated[0]), []), (name_of(whole[1]), [whole[1]])):
        told = f"the rows where name = {name!r}, of a table of which others updated rows"
        expect(_named(table, name), ids, told)
    if table.lake.declares(Feature.TIME_TRAVEL):
        rows = table.read(snapshot_id=before).to_pylist()
        found = {row["id"]: row["name"] for row in rows}
        expect(found, {i: name_of(i) for i in whole}, "the snapshot of before others updated rows is read")
    expect(table.append(0).outcome, RoundOutcome.ALREADY_THERE, "an epoch is replayed after others updated rows of it")
    table.append(1)
    names |= {i: name_of(i) for i in ids_of(1)}
    expect(_names(table), names, "an epoch is appended after others updated rows")
    if table.lake.declares(Feature.INCREMENTAL_READ):
        with refused(RowsChanged, "a range is planned in which others updated rows"):
            table.changes.plan(table.changes.versions().earliest, table.latest)


def _named(table: Table, name: str | None) -> list[int]:
    found = table.read(columns=("id", "name"), filters=(Leaf("name", Op.EQ, name),))
    return sorted(found["id"].to_pylist())


def _names(table: Table) -> dict[int, str | None]:
    rows = table.read(columns=("id", "name")).to_pylist()
    expect(len(rows), len({row["id"] for row in rows}), "the number of rows of a table of which others updated some")
    return {row["id"]: row["name"] for row in rows}


@pytest.mark.parametrize(
    "by",
    [
        pytest.param("name", marks=pytest.mark.needs(Feature.PARTITIONING)),
        pytest.param("truncate(5, name)", marks=_HIDDEN),
        pytest.param("bucket(4, name)", marks=_HIDDEN),
    ],
)
def test_rows_that_others_put_into_another_partition(lake: Lake, harness: Harness, unproven: Unproven, by: str) -> None:
    """By changing the column that it is made of: each row is there once, and its split tells the partition that a round
    puts such a row into. An upsert that skips splits by it would else leave the row, and write its key again."""
    field = PartitionField.parse(by)
    table = lake.create(partition_by=(field,))
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    whole = ids_of(0, 0) + ids_of(0, 1)
    updated = [whole[0], whole[1], whole[6]]
    if harness.update_rows is None:
        unproven("rows that others put into another partition", "the format's harness has no update_rows")
        return
    try:
        foreign.update(table, harness, updated, "name", CHANGED)
    except HarnessFailed as error:
        if not isinstance(error.__cause__, NotImplementedError):
            raise
        unproven("rows that others put into another partition", "the harness's update_rows takes no partitions")
        return
    names = {i: CHANGED if i in updated else name_of(i) for i in whole}
    expect(_names(table), names, f"a table by {by} is read of which others updated rows")
    for name, ids in ((CHANGED, updated), (name_of(updated[0]), [])):
        expect(_named(table, name), ids, f"the rows where name = {name!r}, of a table by {by}, after the update")
    came = {90: CHANGED, 91: name_of(updated[0]), 92: name_of(whole[2])}
    table.publish_arrow([_rows(list(came), list(came.values()))], token(1))
    for name, told in _partitions(table, field.name).items():
        expect(
            len(told),
            1,
            f"the partitions {sorted(map(str, told))} that splits tell of rows with the name {name!r}, in a table by "
            f"{by}: others updated some of them, and a round brought one",
        )
    expect(_names(table), names | came, f"a table by {by} is read after the round that followed the update")


def _partitions(table: Table, field: str) -> dict[str | None, set[str | None]]:
    """For each name, the values of a partition field that its rows are told to have."""
    source = table.source
    plan = source.plan(ScanRequest(columns=("name",)))
    found: dict[str | None, set[str | None]] = {}
    for split in plan.splits:
        told = dict(split.partition)
        if field in told:
            for rows in source.read(split, plan.schema):
                for name in rows["name"].to_pylist():
                    found.setdefault(name, set()).add(told[field])
    return found


def _rows(ids: Sequence[int], names: Sequence[str | None], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """Rows of a schema that begins with an id and a name; nulls in its other columns."""
    more = [pa.nulls(len(ids), each.type) for each in list(schema)[2:]]
    columns = [pa.array(ids, schema.field(0).type), pa.array(names, pa.string()), *more]
    return pa.record_batch(columns, schema=schema)


def test_rows_that_others_updated_stay_so(table: Table, harness: Harness, unproven: Unproven) -> None:
    """Whatever comes then: another update of the same rows, a compaction of what they were with what they are, rounds,
    an expiry, the end of orphans. What takes their former state away must not take the later one."""
    if harness.update_rows is None:
        unproven("rows that others update, and what comes then", "the format's harness has no update_rows")
        return
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    whole = ids_of(0, 0) + ids_of(0, 1)
    names, start, epoch = {i: name_of(i) for i in whole}, table.info.snapshot_id, 0

    def update(ids: Sequence[int], told: str) -> None:
        foreign.update(table, harness, ids, "name", told)
        names.update(dict.fromkeys(ids, told))
        expect(_names(table), names, f"a table of which others updated rows: {told}")

    def then(told: str, hook: Callable[..., None] | None) -> None:
        nonlocal epoch
        if hook is not None:
            hook(table.lake.storage, table.info)
            expect(_names(table), names, f"a table of which others updated rows, after {told}")
        epoch += 1
        table.append(epoch)
        names.update({i: name_of(i) for i in ids_of(epoch)})
        expect(_names(table), names, f"a table of which others updated rows, after {told} and an append")

    update([whole[0], whole[6]], "for the first time")
    update([whole[0], whole[1]], "one of them again")
    then("two updates", None)
    then("a compaction", harness.compact)
    update([whole[1], whole[6], ids_of(1)[0]], "after a compaction")
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        foreign.collect(table)
    then("orphans were collected", None)
    then("a second compaction", harness.compact)
    if table.lake.declares(Feature.TIME_TRAVEL):
        found = {row["id"]: row["name"] for row in table.read(snapshot_id=start).to_pylist()}
        expect(
            found, {i: name_of(i) for i in whole}, "the snapshot of before others updated rows, three times, is read"
        )
    update([whole[0], whole[6], ids_of(2)[0]], "before an expiry")
    then("an expiry", harness.expire)
    for split in table.source.plan(ScanRequest(columns=())).splits:
        count = sum(rows.num_rows for rows in table.source.read(split, pa.schema([])))
        assert split.rows in (None, count), f"a split has {count} rows, and tells {split.rows}: others updated some"


@pytest.mark.needs(Feature.PARTITIONING)
def test_partitions_that_others_put_together(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """Each by itself: a row of one that is left as it is stays deleted, and no file is told to be of another one."""
    if harness.compact is None or harness.delete_rows is None:
        unproven("partitions that others put together", "the format's harness has no compact, or no delete_rows")
        return
    table = lake.create(partition_by=(PartitionField("name"),))
    names = {0: "many", 1: "many", 2: "one", 3: "one", 4: None, 5: None, 6: "whole"}
    for epoch, ids in enumerate(([0, 2, 3, 4, 5, 6], [1])):
        table.publish_arrow([_rows(ids, [names[i] for i in ids])], token(epoch))
    try:
        foreign.delete(table, harness, [2, 4])
        left = {i: name for i, name in names.items() if i not in (2, 4)}
        harness.compact(table.lake.storage, table.info)
    except HarnessFailed as error:
        if not isinstance(error.__cause__, NotImplementedError):
            raise
        unproven("partitions that others put together", "the harness's compact, or delete_rows, takes no partitions")
        return
    expect(_names(table), left, "a table by name is read after a compaction of one of its partitions")
    for name, told in _partitions(table, "name").items():
        expect(told, {name}, f"the partitions that splits of rows with the name {name!r} tell after a compaction")
    for name in ("many", "one", "whole"):
        expect(
            _named(table, name), [i for i in left if left[i] == name], f"rows by the filter name = {name!r}, after it"
        )
    table.publish_arrow([_rows([2], ["one"])], token(2))
    expect(_names(table), left | {2: "one"}, "a table by name after a compaction, to which a deleted row came again")


def test_rows_that_others_deleted_before_their_column_changed(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """A deletion may be kept as values of a column. Under another type and another name it is the same column, and one
    that comes with its former name is another."""
    table = lake.create(SCHEMA.set(0, pa.field("id", pa.int32(), nullable=False)))
    names = {i: f"row {i}" for i in range(12)}
    table.publish_arrow([_rows(list(names), list(names.values()), table.info.schema)], token(0))
    if harness.delete_rows is None:
        unproven("deletions whose column changes", "the format's harness has no delete_rows")
        return
    older = table.info.snapshot_id
    foreign.delete(table, harness, [0, 7])
    left = {i: name for i, name in names.items() if i not in (0, 7)}
    if harness.update_rows is not None:
        foreign.update(table, harness, [3, 11], "name", CHANGED)
        left |= {3: CHANGED, 11: CHANGED}
    told, key = "others deleted rows", "id"
    changes: tuple[tuple[str, SchemaChange, tuple[Feature, ...]], ...] = (
        ("column id was widened", WidenColumn("id", pa.int64()), (Feature.WIDEN_TYPE,)),
        ("column id was renamed", RenameColumn("id", "key"), (Feature.RENAME_COLUMN,)),
        ("another column id came", AddColumn(pa.field("id", pa.int64())), (Feature.RENAME_COLUMN, Feature.ADD_COLUMN)),
    )
    for number, (what, change, needed) in enumerate(changes, start=1):
        if not all(map(lake.declares, needed)):
            continue
        table.lake.storage.catalog().alter_table(table.path, [change])
        told, key = f"{told}, and {what}", change.new if isinstance(change, RenameColumn) else key
        _has(table, key, left, told)
        if isinstance(change, WidenColumn):  # the file's values are narrower than those that it is asked for
            foreign.delete(table, harness, [5])
            left.pop(5)
            if harness.update_rows is not None:
                foreign.update(table, harness, [9], "name", "changed again")
                left[9] = "changed again"
            told = f"{told}, and others changed more of them"
            _has(table, key, left, told)
        # The ids that were deleted come again, and are no more deleted.
        table.publish_arrow([_rows([0], [f"again {number}"], table.info.schema)], token(number))
        _has(table, key, left, f"{told}, and an id came again", again=number)
        rows = table.read(columns=("name",), filters=(Leaf("name", Op.EQ, "row 7"),)).num_rows
        expect(rows, 0, f"rows where name = 'row 7', which were deleted, after {told}")
    if harness.compact is not None:
        harness.compact(table.lake.storage, table.info)
        told = f"{told}, which was compacted then"
        _has(table, key, left, told)
        if key != "id" and "id" in table.info.schema.names:
            expect(table.read(columns=("id",))["id"].drop_null().to_pylist(), [], f"values of the new id where {told}")
    if table.lake.declares(Feature.TIME_TRAVEL):
        found = table.read(columns=("name",), snapshot_id=older)["name"].to_pylist()
        expect(sorted(found), sorted(names.values()), f"the names in the snapshot of before {told}")


def _has(table: Table, key: str, left: dict[int, str], told: str, again: int | None = None) -> None:
    """These rows, by each column alone and by both; others that came ``again`` are left out."""
    both = table.read(columns=(key, "name")).to_pylist()
    found = sorted((row[key], row["name"]) for row in both if not row["name"].startswith("again"))
    expect(found, sorted(left.items()), f"rows of a table in which {told}")
    alone = table.read(columns=("name",))["name"].to_pylist()
    expect(sorted(alone), sorted(row["name"] for row in both), f"the column name of a table in which {told}")
    if again is not None:
        expect(alone.count(f"again {again}"), 1, f"rows that came last to a table in which {told}")


@pytest.mark.needs(Feature.SEARCH, Feature.INDEXING)
def test_an_index_of_rows_that_others_updated(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """Its words of before are found in such a row no more, and its new ones are, also after an append to the index."""
    texts = Documents.of(lake, harness)
    if lake.declares(Feature.INDEXING):
        texts.filled()
    texts.index(2)
    if harness.update_rows is None:
        unproven("indexes of rows that others update", "the format's harness has no update_rows")
        return
    updated = [1, 2, 130]
    foreign.update(texts.table, harness, updated, "doc", f"{NEW_WORD} alone")
    old = words_of(text_of(updated[0]))[0]

    def finds(told: str) -> None:
        expect(sorted(texts.found(NEW_WORD)), updated, f"{told}: the rows that their new word finds")
        others = [i for i in texts.expected(Match(old)) if i not in updated]
        expect(sorted(texts.found(old)), others, f"{told}: the rows that a word finds which one of them had")

    finds("an index of rows of which others updated some")
    texts.index(1, mode=IndexMode.APPEND)
    finds("an index that was appended to after others updated rows")
