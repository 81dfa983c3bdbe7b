"""Tables of one warehouse: what is done to one of them is done to no other. A database, a catalog or a log has all of
them, and a statement that forgets which one it means changes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from laketier.maintenance.orphans import list_orphans
from laketier.spi import (
    AddColumn,
    Feature,
    FeatureNotSupported,
    LaketierError,
    RenameColumn,
    SchemaChange,
    SetProperty,
    WidenColumn,
    WriteMode,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.expect import expect, told
from laketier_conformance.lake import Lake, Table, ids_of, token

NAMES = ("db.one", "db.two", "other.one")
"""The first one is changed. The second has more commits than it, and the third has its name, elsewhere."""
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("count", pa.int32()), ("ratio", pa.float64())])
CHANGES: tuple[tuple[Feature, SchemaChange], ...] = (
    (Feature.ADD_COLUMN, AddColumn(pa.field("extra", pa.string()))),
    (Feature.WIDEN_TYPE, WidenColumn("count", pa.int64())),
    (Feature.SET_PROPERTY, SetProperty("acme.note", "changed", "first")),
    (Feature.RENAME_COLUMN, RenameColumn("ratio", "part")),
)


def _rows(number: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array([number], pa.int64()), pa.array([number], pa.int32()), [0.5]], schema=COLUMNS)


def _described(table: Table) -> Mapping[str, Any]:
    """What a reader finds of a table. Not the number of its snapshot: a catalog may count those of all tables."""
    info = table.info
    return {
        "columns": [(field.name, str(field.type), field.nullable) for field in info.schema],
        "identity": info.table_uuid,
        "note": info.descriptor.properties.get("acme.note"),
        "comment": info.descriptor.comment,
        "rows": table.read().sort_by("id").to_pydict(),
    }


def test_a_changed_table_is_changed_alone(lake: Lake) -> None:
    """And a round that staged its rows before goes on in each of the others."""
    tables = [lake.create(COLUMNS, name, properties={"acme.note": "first"}) for name in NAMES]
    for number, each in enumerate(tables):
        each.publish_arrow([_rows(number)], token(0))
    before = [_described(each) for each in tables[1:]]
    staged = [each.stage_arrow([_rows(10 + number)]) for number, each in enumerate(tables[1:])]
    for feature, change in CHANGES:
        if lake.declares(feature):
            lake.storage.catalog().alter_table(tables[0].path, [change])
            for each, known in zip(tables[1:], before, strict=True):
                expect(_described(each), known, f"{feature.value} of {NAMES[0]}, and what {each.path} is")
    for number, (each, result) in enumerate(zip(tables[1:], staged, strict=True)):
        try:
            each.commit([result], token(1))
        except LaketierError as error:
            pytest.fail(f"rows of {each.path} that were staged before {NAMES[0]} changed are published: {told(error)}")
        expect(each.ids, [1 + number, 10 + number], f"rows of {each.path} after a round that began before the change")


def test_tables_take_turns(lake: Lake) -> None:
    """Each counts its own commits, also one that is made when others have many: a count that is that of another table
    goes back."""
    tables: dict[int, Table] = {}
    epochs = [0, 0, 0]
    kept: list[list[int]] = [[], [], []]
    for turn, which in enumerate((1, 1, 1, 0, 1, 0, 2, 1, 2)):
        if which not in tables:
            tables[which] = lake.create(name=NAMES[which])
        outcome = tables[which].append(epochs[which], ids_of(turn)).outcome
        expect(outcome, RoundOutcome.PUBLISHED, f"epoch {epochs[which]} in {NAMES[which]}, one of three tables")
        epochs[which] += 1
        kept[which] += ids_of(turn)
        what = f"rows of {NAMES[which]} after {turn + 1} commits to three tables in turn"
        expect(tables[which].ids, kept[which], what)
    if lake.declares(Feature.OVERWRITE):
        tables[0].round(token(epochs[0]), [ids_of(90)], WriteMode.OVERWRITE)
        kept[0] = ids_of(90)
        for number, each in tables.items():
            expect(each.ids, kept[number], f"rows of {NAMES[number]} after {NAMES[0]} was overwritten")
    for number in (1, 2):
        outcome = tables[number].append(epochs[number] - 1).outcome
        expect(outcome, RoundOutcome.ALREADY_THERE, f"the newest epoch of {NAMES[number]} is run again")


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_orphans_of_a_table_are_no_other_tables(lake: Lake) -> None:
    """What a task has staged for one table is no orphan of another, whose horizon says nothing of it."""
    one, two = (lake.create(name=name) for name in NAMES[:2])
    one.append(0)
    two.append(0)
    staged = two.staged(ids_of(1))
    lake.let_age()
    listed = [file.path for file in list_orphans(lake.storage, one.info, grace=timedelta(0)).orphans]
    names = {file.path.rpartition("/")[2] for file in staged.files}
    found = [path for path in listed if path.rpartition("/")[2] in names]
    expect(found, [], f"orphans of {one.path} that a task of {two.path} staged")
    two.commit([staged], token(1))
    expect(two.ids, ids_of(0) + ids_of(1), "rows of a table after the orphans of the one beside it were listed")


@pytest.mark.needs(Feature.ORPHAN_COLLECTION, Feature.OVERWRITE, Feature.TIME_TRAVEL, Feature.HISTORY)
def test_an_expiry_ends_no_snapshot_of_another_table(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    one, two = (lake.create(name=name) for name in NAMES[:2])
    for table in (one, two):
        table.append(0)
        table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE)
    ids = [line.snapshot_id for line in two.history.snapshots(10)]
    before = {each: two.read(snapshot_id=each).sort_by("id") for each in ids}
    lake.let_age()
    try:
        lake.storage.maintenance(one.info).expire(retention=0, keep=1, delete=True)
    except FeatureNotSupported:
        unproven("expiry beside another table", "the format ends no snapshots itself")
        return
    expect([line.snapshot_id for line in two.history.snapshots(10)], ids, "snapshots of a table beside an expired one")
    for each, rows in before.items():
        expect(two.read(snapshot_id=each).sort_by("id"), rows, f"rows of snapshot {each} beside an expired table")
