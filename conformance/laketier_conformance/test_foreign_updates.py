"""Rows that other tools change: readers, filters, logs and indexes have what they are now, no more what they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laketier.spi import Feature, IndexMode, Leaf, Match, Op, RowsChanged
from laketier.tiering import RoundOutcome
from laketier_conformance import foreign
from laketier_conformance.documents import Documents, text_of, words_of
from laketier_conformance.expect import expect, refused
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, ids_of, name_of

Unproven = Callable[[str, str], None]
CHANGED = "changed by others"
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
