"""Tables that live long: others delete rows and put files together between rounds, and what was deleted comes again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from laketier.spi import Feature, Leaf, Op, ScanRequest, WriteMode
from laketier.tiering import RoundOutcome
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import Lake, Table, ids_of, read_plan, token

Unproven = Callable[[str, str], None]


@dataclass
class _Life:
    """A table, and the rows that it has to have."""

    table: Table
    harness: Harness
    ids: list[int] = field(default_factory=list)
    past: list[tuple[int | None, list[int], str]] = field(default_factory=list)
    appends: list[tuple[int, int, list[int]]] = field(default_factory=list)
    epochs: int = 0

    def append(self, told: str, *tasks: Sequence[int]) -> None:
        follows = self.table.lake.declares(Feature.INCREMENTAL_READ)
        start = self.table.latest if follows else 0
        self.table.append(self.epochs, *tasks)
        self.epochs += 1
        came = [i for task in tasks for i in task]
        if follows:
            self.appends.append((start, self.table.latest, sorted(came)))
        self.ids += came
        self.is_right(told)

    def delete(self, told: str, *ids: int) -> None:
        if self.harness.delete_rows is None:
            return
        self.harness.delete_rows(self.table.lake.storage, self.table.info, sorted(ids))
        self.ids = [i for i in self.ids if i not in ids]
        self.is_right(told)

    def again(self, told: str, *ids: int) -> None:
        """Rows with the ids of those that others deleted; a key is not there twice."""
        gone = [i for i in ids if i not in self.ids]
        if gone:
            self.append(told, gone)

    def compact(self, told: str) -> None:
        if self.harness.compact is None:
            return
        self.harness.compact(self.table.lake.storage, self.table.info)
        self.is_right(told)

    def is_right(self, told: str) -> None:
        """Its rows now, and that each split tells as many as it has."""
        source = self.table.source
        plan = source.plan(ScanRequest(columns=("id",)))
        found = []
        for split in plan.splits:
            rows = [i for batch in source.read(split, plan.schema) for i in batch["id"].to_pylist()]
            assert split.rows in (None, len(rows)), (
                f"a split has {len(rows)} rows, and tells {split.rows}, after {told}"
            )
            found += rows
        expect(sorted(found), sorted(self.ids), f"the rows of a table after {told}")
        self.past.append((plan.snapshot_id, sorted(self.ids), told))

    def is_found(self, ids: Sequence[int], told: str) -> None:
        """Each of these by its id, where bounds of files and limits may hide it."""
        for each in ids:
            found = self.table.read(columns=("id",), filters=(Leaf("id", Op.EQ, each),))["id"].to_pylist()
            expect(found, [i for i in self.ids if i == each], f"the rows with the id {each} after {told}")
        limit = len(self.ids) - 1
        rows = self.table.read(limit=limit).num_rows
        expect(rows, limit, f"rows of a scan with a limit of {limit}, of {len(self.ids)}, after {told}")


def test_rows_come_again_after_others_deleted_them(table: Table, harness: Harness, unproven: Unproven) -> None:
    """A deletion is of the rows that were there. Of those that come later it is none, whatever they are put together
    with, and in whichever order that is done. A log tells of each what was appended."""
    life = _Life(table, harness)
    first, second, more = ids_of(0, 0), ids_of(0, 1), ids_of(1)
    life.append("an append", first, second)
    life.compact("a compaction")
    life.append("an append to compacted rows", more)
    life.is_found([first[0], more[0]], "an append to compacted rows")
    life.delete("others deleted compacted rows and later ones", first[0], second[0], more[0])
    life.again("rows came again that others had deleted", first[0], second[0], more[0])
    life.is_found([more[0]], "rows came again that others had deleted")
    # Of these three, one was never deleted, one was and came again, and one is not there any more.
    life.delete("others deleted a row that had come again", first[0])
    life.delete("others deleted rows, one of which was gone already", first[0], first[1], second[0])
    life.again("one of them came again", second[0])
    life.compact("a compaction of rows that others had deleted, and that came again")
    life.again("a row came again after its deletion was compacted", first[0])
    life.delete("others deleted once more", first[0], more[1])
    life.compact("the last compaction")
    if table.lake.declares(Feature.OVERWRITE):
        life.append("an append to what was compacted last", ids_of(2))
        table.round(token(life.epochs), [more], WriteMode.OVERWRITE)
        life.ids, life.epochs = list(more), life.epochs + 1
        life.is_right("an overwrite of rows that were compacted, and of later ones")
        life.append("an append after the overwrite", first)
    for start, end, ids in life.appends:
        plan = table.changes.plan(start, end)
        found = sorted(read_plan(table.source, plan)["id"].to_pylist())
        expect(found, ids, f"versions {start} to {end} are read, of which others since deleted or compacted rows")
    if table.lake.declares(Feature.TIME_TRAVEL):
        for snapshot, ids, told in life.past[::4]:
            found = sorted(table.read(columns=("id",), snapshot_id=snapshot)["id"].to_pylist())
            expect(found, ids, f"an older snapshot is read, of the table after {told}")
    if harness.delete_rows is None or harness.compact is None:
        unproven("rows that come again", "the format's harness has no delete_rows, or no compact")


@pytest.mark.needs(Feature.UPSERT)
def test_keys_come_again_after_others_deleted_them(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """Upserts of rows that were put together, and of rows that came to them since: no key is there twice, and none is
    lost."""
    keyed = Keyed.of(lake.create(primary_key=("id",)))
    rows: dict[int, str] = {}
    epochs = itertools.count()

    def upsert(told: str, **named: str) -> None:
        """Of each key that is there, its files are merged again; the others come."""
        new = {int(key.removeprefix("k")): name for key, name in named.items()}
        there = [(split.files, keys) for split, keys in keyed.splits() if keys & new.keys()]
        merged = {key: rows[key] for _, keys in there for key in keys} | new
        outcome = keyed.round(next(epochs), keyed.staged(merged, [file for files, _ in there for file in files]))
        expect(outcome, RoundOutcome.PUBLISHED, told)
        rows.update(new)
        is_right(told)

    def is_right(told: str) -> None:
        expect(dict(keyed.rows), dict(sorted(rows.items())), f"the rows of a table with a key after {told}")

    def compact(told: str) -> None:
        if harness.compact is not None:
            harness.compact(lake.storage, keyed.table.info)
            is_right(told)

    def delete(told: str, *keys: int) -> None:
        if harness.delete_rows is not None:
            harness.delete_rows(lake.storage, keyed.table.info, list(keys))
            for key in keys:
                rows.pop(key, None)
            is_right(told)

    upsert("keys came", k1="a", k2="b")
    upsert("another key came", k3="c")
    compact("a compaction")
    upsert("a key came to compacted rows", k4="d")
    upsert("a compacted row and a later one were replaced", k1="A", k4="D")
    compact("a compaction of replaced rows")
    upsert("a key came to them", k5="e")
    delete("others deleted a compacted row and a later one", 2, 5)
    upsert("one of them came again", k2="again")
    upsert("it and another one were replaced", k2="and again", k3="C")
    compact("a compaction of what came again")
    delete("others deleted it again", 2)
    upsert("it came once more, and a key of its file was replaced", k1="AA", k2="last")
    if harness.delete_rows is None or harness.compact is None:
        unproven("keys that come again", "the format's harness has no delete_rows, or no compact")
