"""Overwriting a partitioned table: all of its partitions, whichever the new rows lie in."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from laketier.spi import Conflict, Feature, Leaf, Op, PartitionField, Token, Watermark, WriteMode, WriteResult
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import QUICK, Lake, Table, token

pytestmark = pytest.mark.needs(Feature.OVERWRITE, Feature.PARTITIONING)
SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.string())])
OVERWRITE = WriteMode.OVERWRITE
Rows = Mapping[int, str | None]


def _parted(lake: Lake) -> Table:
    """Rows in three partitions, of two pipelines."""
    table = lake.create(SCHEMA, "db.parted", partition_by=(PartitionField("key"),))
    _round(table, token(0), {1: "a", 2: "b", 3: None})
    _round(table, token(0, "other"), {4: "a", 5: "c"})
    return table


def _staged(table: Table, rows: Rows, mode: WriteMode = WriteMode.APPEND) -> list[WriteResult]:
    columns = [pa.array(rows.keys(), pa.int64()), pa.array(rows.values(), pa.string())]
    return [table.stage_arrow([pa.record_batch(columns, schema=SCHEMA)], mode=mode)] if rows else []


def _round(table: Table, mark: Token | None, rows: Rows, mode: WriteMode = WriteMode.APPEND) -> RoundOutcome:
    tiering = TieringRound(table.factory, token=mark, mode=mode, policy=QUICK)
    tiering.begin()
    return tiering.commit(_staged(table, rows, mode)).outcome


def _rows(table: Table) -> Rows:
    read = table.read(columns=("id", "key")).sort_by("id").to_pydict()
    return dict(zip(read["id"], read["key"], strict=True))


@pytest.mark.parametrize("rows", [{9: "b"}, {9: "new"}, {9: None}, {}], ids=["one", "new", "null", "nothing"])
def test_partitions_without_new_rows_are_emptied_too(lake: Lake, rows: Rows) -> None:
    parted = _parted(lake)
    _round(parted, token(1), rows, OVERWRITE)
    expect(_rows(parted), rows, f"the table is overwritten with {rows}, and holds nothing else")
    for key in ("a", "b", "c"):
        found = parted.read(filters=(Leaf("key", Op.EQ, key),))["id"].to_pylist()
        expect(found, [i for i, each in rows.items() if each == key], f"partition {key!r} after the overwrite")


def test_a_replay_of_an_overwrite_takes_no_partition_of_others(lake: Lake) -> None:
    parted = _parted(lake)
    _round(parted, token(1), {9: "b"}, OVERWRITE)
    outcome = _round(parted, token(0, "other"), {4: "a", 5: "c"})
    expect(outcome, RoundOutcome.ALREADY_THERE, "the rows of another pipeline are overwritten, and its epoch is known")
    expect(_round(parted, token(1, "other"), {6: "b", 7: "a"}), RoundOutcome.PUBLISHED, "its next epoch is new")
    outcome = _round(parted, token(1), {9: "b"}, OVERWRITE)
    expect(outcome, RoundOutcome.ALREADY_THERE, "an overwrite is replayed after others appended")
    expect(_rows(parted), {6: "b", 7: "a", 9: "b"}, "the replay of an overwrite takes no rows that came after it")


def test_an_append_to_another_partition_meanwhile(lake: Lake) -> None:
    """An overwrite replaces no rows that it did not see, in whichever partition they are."""
    parted = _parted(lake)
    committer = parted.committer(mode=OVERWRITE)
    stale = committer.open()
    staged = _staged(parted, {9: "b"}, OVERWRITE)
    _round(parted, token(1, "other"), {6: "elsewhere"})
    with refused(Conflict, "an overwrite is published after an append to another partition"):
        committer.publish(stale, staged, Watermark(token(1), "c"))
    committer.close()
    before = {1: "a", 2: "b", 3: None, 4: "a", 5: "c", 6: "elsewhere"}
    expect(_rows(parted), before, "an overwrite that lost its attempt changed nothing")
    outcome = _round(parted, token(1), {9: "b"}, OVERWRITE)
    expect(outcome, RoundOutcome.PUBLISHED, "begun anew, the overwrite is published")
    expect(_rows(parted), {9: "b"}, "begun anew, the overwrite replaces all rows that it saw")
