"""Tables that live long: others delete rows and put files together between rounds, and what was deleted comes again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from laketier.spi import Feature, LaketierError, Leaf, Op, ScanRequest, WriteMode
from laketier.tiering import RoundOutcome
from laketier_conformance import apart, foreign
from laketier_conformance.expect import expect
from laketier_conformance.expect import told as told_of
from laketier_conformance.harness import Harness
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import Lake, Table, ids_of, read_plan, read_split, token
from laketier_conformance.outside import contents, local_folder, restore

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
        try:
            read = [pa.Table.from_batches(read_split(source, split, plan.schema), plan.schema) for split in plan.splits]
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(f"a table is read after {told}: found {told_of(error)}")
        parts = [rows["id"].to_pylist() for rows in read]
        expect(sorted(itertools.chain(*parts)), sorted(self.ids), f"the rows of a table after {told}")
        for split, ids in zip(plan.splits, parts, strict=True):
            assert split.rows in (None, len(ids)), f"a split has {len(ids)} rows, and tells {split.rows}, after {told}"
        self.past.append((plan.snapshot_id, sorted(self.ids), told))

    def is_found(self, ids: Sequence[int], told: str) -> None:
        """Each of these by its id, where bounds of files and limits may hide it."""
        for each in ids:
            found = self.table.read(columns=("id",), filters=(Leaf("id", Op.EQ, each),))["id"].to_pylist()
            expect(found, [i for i in self.ids if i == each], f"the rows with the id {each} after {told}")
        limit = len(self.ids) - 1
        rows = self.table.read(limit=limit).num_rows
        expect(rows, limit, f"rows of a scan with a limit of {limit}, of {len(self.ids)}, after {told}")

    def is_told(self, told: str) -> None:
        """A log has what each append appended."""
        for start, end, ids in self.appends:
            plan = self.table.changes.plan(start, end)
            found = sorted(read_plan(self.table.source, plan)["id"].to_pylist())
            expect(found, ids, f"the rows that versions {start} to {end} appended, where {told}")


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
    life.is_told("others since deleted, compacted and replaced rows")
    if table.lake.declares(Feature.TIME_TRAVEL):
        for snapshot, ids, told in life.past[::4]:
            found = sorted(table.read(columns=("id",), snapshot_id=snapshot)["id"].to_pylist())
            expect(found, ids, f"an older snapshot is read, of the table after {told}")
    if harness.delete_rows is None or harness.compact is None:
        unproven("rows that come again", "the format's harness has no delete_rows, or no compact")


def test_deletions_outlive_what_is_cleaned_up(table: Table, harness: Harness, unproven: Unproven) -> None:
    """Of rows that were put together and of later ones. They are as old as snapshots that end, and as files that nobody
    needs; but the newest snapshot needs them."""
    if harness.delete_rows is None:
        unproven("deletions that outlive a clean-up", "the format's harness has no delete_rows")
        return
    life = _Life(table, harness)
    first, second, more = ids_of(0, 0), ids_of(0, 1), ids_of(1)
    life.append("an append", first, second)
    life.compact("a compaction")
    life.append("an append to compacted rows", more)
    life.delete("others deleted compacted rows and later ones", first[0], second[0], more[0])
    life.append("another append", ids_of(2))
    life.is_told("others deleted some of them")
    for told in ("others deleted rows", "snapshots ended that came before others deleted rows"):
        if table.lake.declares(Feature.ORPHAN_COLLECTION):
            foreign.collect(table)
            life.is_right(f"orphans were collected, where {told}")
        if told.startswith("others") and harness.expire is not None:
            harness.expire(table.lake.storage, table.info)
            life.is_right("snapshots ended that came before others deleted rows")
    life.again("rows came again whose deletion outlived a clean-up", first[0])


def test_a_file_of_a_deletion_is_damaged(table: Table, harness: Harness, unproven: Unproven) -> None:
    """Each that came with it, in turn. Without it the deleted rows would be back, so the table is not read, or as it
    was before the deletion, snapshot and all."""
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    if harness.delete_rows is None:
        unproven("damaged deletions", "the format's harness has no delete_rows")
        return
    root = local_folder(table.info.location)
    if root is None:
        unproven("damaged deletions", "the table is in no local folder")
        return
    older, before, whole = table.info.snapshot_id, contents(root), table.ids
    harness.delete_rows(table.lake.storage, table.info, [whole[0], whole[6]])
    newer, after = table.info.snapshot_id, contents(root)
    left = [i for i in whole if i not in (whole[0], whole[6])]
    for file in sorted(file for file, content in after.items() if before.get(file) != content):
        for harm, content in (("gone", None), ("empty", b""), ("cut", after[file][: len(after[file]) // 2])):
            if content is None:
                file.unlink()
            else:
                apart.write(file, content)
            try:
                source = table.source
                plan = source.plan(ScanRequest(columns=("id",)))
                found = plan.snapshot_id, sorted(read_plan(source, plan)["id"].to_pylist())
            except LaketierError:
                continue
            except Exception as error:  # noqa: BLE001 - reported
                pytest.fail(f"{file.name}, which came with a deletion, is {harm}, and a read ends in {told_of(error)}")
            finally:
                restore(root, after)
            assert found in ((newer, left), (older, whole)), (
                f"{file.name}, which came with a deletion, is {harm}: expected a refusal, the {len(left)} rows that "
                f"are left, or all {len(whole)} in snapshot {older}; found {len(found[1])} rows in snapshot {found[0]}"
            )
    expect(table.ids, left, "the files of a deletion are back as they were, and the rows are gone")


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
