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
    RenameColumn,
    RowsChanged,
    ScanRequest,
    SchemaChange,
    WidenColumn,
)
from laketier.tiering import RoundOutcome
from laketier_conformance import foreign
from laketier_conformance.documents import Documents, text_of, words_of
from laketier_conformance.expect import expect, refused
from laketier_conformance.harness import Harness
from laketier_conformance.lake import SCHEMA, Lake, Table, ids_of, name_of, read_split, token
from laketier_conformance.search_bounds import foreign_commits

Unproven = Callable[[str, str], None]
MANY = 10
"""Commits: more than a format may look back for deletions that it keeps by keys."""
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
    for name in (foreign.CHANGED, name_of(updated[0])):
        ids = [i for i in whole if name_of(i) == name]
        expect(foreign.ids_named(table, name), ids, f"the rows where name = {name!r}")
    foreign.update(table, harness, updated, "name", foreign.CHANGED)
    names = {i: foreign.CHANGED if i in updated else name_of(i) for i in whole}
    foreign.has_names(table, names, "a table is read of which others updated rows")
    for name, ids in ((foreign.CHANGED, updated), (name_of(updated[0]), []), (name_of(whole[1]), [whole[1]])):
        told = f"the rows where name = {name!r}, of a table of which others updated rows"
        expect(foreign.ids_named(table, name), ids, told)
    if table.lake.declares(Feature.TIME_TRAVEL):
        rows = table.read(snapshot_id=before).to_pylist()
        found = {row["id"]: row["name"] for row in rows}
        expect(found, {i: name_of(i) for i in whole}, "the snapshot of before others updated rows is read")
    expect(table.append(0).outcome, RoundOutcome.ALREADY_THERE, "an epoch is replayed after others updated rows of it")
    table.append(1)
    names |= {i: name_of(i) for i in ids_of(1)}
    foreign.has_names(table, names, "an epoch is appended after others updated rows")
    if table.lake.declares(Feature.INCREMENTAL_READ):
        with refused(RowsChanged, "a range is planned in which others updated rows"):
            table.changes.plan(table.changes.versions().earliest, table.latest)


def test_rows_that_others_updated_stay_so(table: Table, harness: Harness, unproven: Unproven) -> None:
    """Whatever comes then: another update of the same rows, many commits, a compaction of what they were with what they
    are, rounds, an expiry, the end of orphans. What takes their former state away must not take the later one."""
    if harness.update_rows is None:
        unproven("rows that others update, and what comes then", "the format's harness has no update_rows")
        return
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    whole = ids_of(0, 0) + ids_of(0, 1)
    names, start, epoch = {i: name_of(i) for i in whole}, table.info.snapshot_id, 0

    def update(ids: Sequence[int], told: str) -> None:
        foreign.update(table, harness, ids, "name", told)
        names.update(dict.fromkeys(ids, told))
        foreign.has_names(table, names, f"a table of which others updated rows: {told}")

    def then(told: str, work: Callable[[], object] | None) -> None:
        """What comes, where there is such work, and an append after it."""
        nonlocal epoch
        if work is None:
            return
        work()
        foreign.has_names(table, names, f"a table of which others updated rows, after {told}")
        epoch += 1
        table.append(epoch)
        names.update({i: name_of(i) for i in ids_of(epoch)})
        foreign.has_names(table, names, f"a table of which others updated rows, after {told} and an append")

    def by_others(hook: Callable[..., None] | None) -> Callable[[], object] | None:
        return None if hook is None else lambda: hook(table.lake.storage, table.info)

    update([whole[0], whole[6]], "for the first time")
    then("a second update", lambda: update([whole[0], whole[1]], "one of them again"))
    then(f"{MANY} commits of others", lambda: foreign_commits(table, range(MANY)))
    then("a compaction", by_others(harness.compact))
    update([whole[1], whole[6], ids_of(epoch)[0]], "for the third time")
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        then("a collection of orphans", lambda: foreign.collect(table))
    then("a second compaction", by_others(harness.compact))
    if table.lake.declares(Feature.TIME_TRAVEL):
        found = {row["id"]: row["name"] for row in table.read(snapshot_id=start).to_pylist()}
        told = "the snapshot of before others updated rows, three times, is read"
        expect(found, {i: name_of(i) for i in whole}, told)
    update([whole[0], whole[6], ids_of(epoch)[0]], "for the fourth time")
    then("an expiry", by_others(harness.expire))
    for split in table.source.plan(ScanRequest(columns=())).splits:
        count = sum(rows.num_rows for rows in read_split(table.source, split, pa.schema([])))
        assert split.rows in (None, count), f"a split has {count} rows, and tells {split.rows}: others updated some"


def test_rows_that_others_deleted_before_their_column_changed(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """A deletion may be kept as values of a column. Under another type and another name it is the same column, and one
    that comes with its former name is another."""
    table = lake.create(SCHEMA.set(0, pa.field("id", pa.int32(), nullable=False)))
    names = {i: f"row {i}" for i in range(12)}
    table.publish_arrow([foreign.rows_named(list(names), list(names.values()), table.info.schema)], token(0))
    if harness.delete_rows is None:
        unproven("deletions whose column changes", "the format's harness has no delete_rows")
        return
    older = table.info.snapshot_id
    foreign.delete(table, harness, [0, 7])
    left = {i: name for i, name in names.items() if i not in (0, 7)}
    if harness.update_rows is not None:
        foreign.update(table, harness, [3, 11], "name", foreign.CHANGED)
        left |= {3: foreign.CHANGED, 11: foreign.CHANGED}
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
        table.publish_arrow([foreign.rows_named([0], [f"again {number}"], table.info.schema)], token(number))
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
