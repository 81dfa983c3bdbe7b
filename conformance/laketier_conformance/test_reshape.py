"""Columns that get a wider type or another name."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Conflict,
    Feature,
    FeatureNotSupported,
    IncompatibleTable,
    LaketierError,
    Leaf,
    Op,
    PartitionField,
    RenameColumn,
    SchemaChange,
    TableChanged,
    TableInfo,
    TableNotFound,
    TablePath,
    UnknownOutcome,
    UnsupportedType,
    WidenColumn,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.altered import LARGE, NARROW, RENAME, SMALL, WIDE, WIDEN
from laketier_conformance.expect import ends_for_good, expect, refused, told
from laketier_conformance.lake import SCHEMA, Lake, Table, ids_of, token
from laketier_conformance.oracle import compare

WIDER = (
    (pa.decimal128(38, 2), pa.decimal256(60, 2)),
    (pa.decimal128(9, 2), pa.decimal128(38, 2)),
    (pa.uint32(), pa.uint64()),
    (pa.float16(), pa.float32()),
    (pa.int8(), pa.int16()),
)
"""Pairs of types, of which some formats hold only the first."""
ODD = (pa.decimal256(60, 4), pa.duration("us"), pa.null(), pa.dictionary(pa.int32(), pa.string()), pa.float16())
"""Types that some formats do not hold."""


@pytest.fixture
def numbers(lake: Lake) -> Table:
    """Narrow columns, and an epoch of rows."""
    table = lake.create(NARROW, "db.numbers")
    table.publish_arrow([pa.RecordBatch.from_pydict(SMALL, NARROW)], token(0))
    return table


def _alter(table: Table, changes: list[SchemaChange]) -> TableInfo:
    with ends_for_good("columns are changed, and nobody else is there"):
        return table.lake.storage.catalog().alter_table(table.path, changes)


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_a_column_that_came_later_is_read_alone(table: Table) -> None:
    """Files from before it have nothing to read, and their rows are there."""
    table.append(0)
    _alter(table, [AddColumn(pa.field("more", pa.int64()))])
    expect(table.read(columns=("more",))["more"].to_pylist(), [None] * 5, "the only column, which came after all rows")
    rows = pa.record_batch([pa.array([70, 71]), pa.array([7, None])], names=["id", "more"])
    table.publish_arrow([rows], token(1))
    found = sorted(table.read(columns=("more",))["more"].to_pylist(), key=repr)
    expect(found, [7, *[None] * 6], "the only column, which came after some rows")
    missing = table.read(columns=("more",), filters=(Leaf("more", Op.IS_NULL),))
    expect(missing.num_rows, 6, "the number of rows of the only column, which are null or came before it")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_no_column_is_added_of_a_type_that_a_new_table_may_not_have(table: Table) -> None:
    """Whoever could add it would have a table that nobody can write."""
    _alter(table, [AddColumn(pa.field("fine", pa.int64()))])  # a format without it refuses here
    for number, kind in enumerate(ODD):
        try:
            table.lake.create(pa.schema([("id", pa.int64()), ("v", kind)]), f"db.odd{number}")
        except (UnsupportedType, FeatureNotSupported):
            doing = f"a column of {kind} is added, which a new table may not have"
            with refused((UnsupportedType, IncompatibleTable, FeatureNotSupported), doing):
                _alter(table, [AddColumn(pa.field("v", kind))])
            expect(table.info.schema.names, [*SCHEMA.names, "fine"], f"the columns after {doing}, and refused")


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_wider_types(numbers: Table) -> None:
    altered = _alter(numbers, list(WIDEN))
    expect({name: altered.schema.field(name).type for name in WIDE}, WIDE, "the types after columns were widened")
    expect(altered.schema.names, NARROW.names, "the columns after some were widened")
    expect(numbers.read().sort_by("id").to_pydict(), SMALL, "values from before columns were widened")
    numbers.publish_arrow([pa.RecordBatch.from_pydict(LARGE, pa.schema(list(numbers.info.schema)))], token(1))
    read = numbers.read().sort_by("id")
    expect(
        {name: read.schema.field(name).type for name in WIDE},
        WIDE,
        "the types that are read after columns were widened",
    )
    expect(
        read.to_pydict(),
        {name: SMALL[name] + LARGE[name] for name in SMALL},
        "values from before and after columns were widened",
    )


@pytest.mark.needs(Feature.WIDEN_TYPE)
@pytest.mark.parametrize(
    ("filter", "ids"),
    [
        (Leaf("count", Op.GT, 2**31), [4]),
        (Leaf("count", Op.LE, 7), [1, 3, 5]),
        (Leaf("count", Op.EQ, 7), [1]),
        (Leaf("ratio", Op.EQ, 0.25), [2]),
        (Leaf("ratio", Op.EQ, 0.1), [4]),
        (Leaf("price", Op.LT, Decimal("1.25")), [3]),
        (Leaf("count", Op.IS_NULL), [2]),
    ],
    ids=str,
)
def test_filters_see_values_of_old_and_new_files(numbers: Table, filter: Leaf, ids: list[int]) -> None:
    _alter(numbers, list(WIDEN))
    numbers.publish_arrow([pa.RecordBatch.from_pydict(LARGE, pa.schema(list(numbers.info.schema)))], token(1))
    expect(
        sorted(numbers.read(filters=(filter,))["id"].to_pylist()),
        ids,
        f"rows of {filter} in files from before and after columns were widened",
    )


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_widening_twice_is_the_same_as_once(numbers: Table) -> None:
    first, second = _alter(numbers, list(WIDEN)), _alter(numbers, list(WIDEN))
    expect(first.schema_fingerprint, second.schema_fingerprint, "the fingerprint after columns were widened twice")
    expect(
        first.snapshot_id, second.snapshot_id, "the snapshot after columns were widened twice: there was nothing to do"
    )


@pytest.mark.needs(Feature.WIDEN_TYPE)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(WidenColumn("id", pa.int32()), id="narrower"),
        pytest.param(WidenColumn("count", pa.string()), id="another-kind"),
        pytest.param(WidenColumn("price", pa.decimal128(18, 4)), id="another-scale"),
        pytest.param(WidenColumn("missing", pa.int64()), id="not-there"),
    ],
)
def test_a_type_that_is_not_wider_is_refused(numbers: Table, change: WidenColumn) -> None:
    with refused(IncompatibleTable, "a column gets a type that is not wider"):
        _alter(numbers, [WidenColumn("ratio", pa.float64()), change])
    expect(
        numbers.info.schema.field("ratio").type,
        pa.float32(),
        "the type of another column after a change was refused: all changes are made, or none",
    )


@pytest.mark.needs(Feature.WIDEN_TYPE, Feature.PARTITIONING)
def test_a_column_that_rows_are_laid_out_by_stays(lake: Lake) -> None:
    table = lake.create(NARROW, "db.laid_out", partition_by=(PartitionField("count"),))
    with refused(IncompatibleTable, "a column is widened that the table is partitioned by", match="partition"):
        _alter(table, [WidenColumn("count", pa.int64())])


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_files_staged_before_a_wider_type_are_refused(numbers: Table) -> None:
    """Some libraries take such files, and read their values as nulls."""
    staged = numbers.stage_arrow([pa.RecordBatch.from_pydict(SMALL, NARROW)])
    _alter(numbers, list(WIDEN))
    with refused(TableChanged, "files are committed that were staged before columns were widened", match="schema"):
        numbers.commit([staged], token(1))
    expect(numbers.read().sort_by("id").to_pydict(), SMALL, "values after files of a narrower type were refused")
    numbers.publish_arrow([pa.RecordBatch.from_pydict(SMALL, NARROW)], token(1))
    expect(
        numbers.read()["count"].to_pylist(),
        SMALL["count"] * 2,
        "values after rows of a narrower type were staged again",
    )


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_no_column_gets_a_type_that_a_new_table_may_not_have(numbers: Table) -> None:
    """Its rows could be neither written nor read. One that a new table may have is given, or refused, too."""
    _alter(numbers, [WIDEN[0]])  # a format without it refuses here
    for number, (narrow, wide) in enumerate(WIDER):
        made = _made_of(numbers.lake, f"db.narrow{number}", narrow)
        if made is None:
            continue
        may = _made_of(numbers.lake, f"db.wide{number}", wide) is not None
        doing = f"a column of {narrow} gets the type {wide}, which a new table {'may' if may else 'may not'} have"
        try:
            _alter(made, [WidenColumn("v", wide)])
        except (Conflict, UnknownOutcome) as error:
            pytest.fail(f"{doing}: {told(error)}, which tells of a race")
        except LaketierError:
            expect(made.info.schema.field("v").type, narrow, f"the type of a column after a change: {doing}")
        else:
            assert may, f"{doing}: expected a refusal, and it was done"


def _made_of(lake: Lake, name: str, kind: pa.DataType) -> Table | None:
    """A table with a column of a type. None where the format does not hold it as it is."""
    try:
        made = lake.create(pa.schema([("id", pa.int64()), ("v", kind)]), name)
    except UnsupportedType:
        return None
    return made if made.info.schema.field("v").type == kind else None


@pytest.mark.needs(Feature.RENAME_COLUMN)
def test_rename(table: Table) -> None:
    table.append(0)
    before = table.read().sort_by("id")
    altered = _alter(table, list(RENAME))
    expect(altered.schema.names, ["id", "title", "value"], "the columns after one was renamed")
    expect(
        table.read().sort_by("id"), before.rename_columns(["id", "title", "value"]), "rows after a column was renamed"
    )
    rows = pa.record_batch({"id": pa.array([90], pa.int64()), "title": ["new"], "value": [1.0]})
    table.publish_arrow([rows], token(1))
    read = table.read().sort_by("id")
    expect(
        read["title"].to_pylist(),
        [*before["name"].to_pylist(), "new"],
        "values of a renamed column from before and after it",
    )
    for name, found in (("new", [90]), ("row 1", [1])):
        expect(
            table.read(filters=(Leaf("title", Op.EQ, name),))["id"].to_pylist(),
            found,
            f"rows of a filter on a renamed column, by the value {name!r}",
        )


@pytest.mark.needs(Feature.RENAME_COLUMN)
def test_a_column_gets_its_first_name_back(table: Table) -> None:
    """Files have the column by either name then, and each row has its value."""
    table.append(0)
    values = table.read().sort_by("id")["name"].to_pylist()
    names = ("name", "title", "name", "label", "name")
    for epoch, (old, new) in enumerate(pairwise(names), start=1):
        _alter(table, [RenameColumn(old, new)])
        rows = {"id": pa.array([epoch * 100_000], pa.int64()), new: [f"of {epoch}"], "value": [1.0]}
        table.publish_arrow([pa.record_batch(rows)], token(epoch))
        values.append(f"of {epoch}")
        been = f"a column that was {', then '.join(names[: epoch + 1])}"
        expect(table.read().sort_by("id")[new].to_pylist(), values, f"values of {been}")
        for value, ids in (("row 1", [1]), ("of 1", [100_000])):
            kept = table.read(filters=(Leaf(new, Op.EQ, value),))["id"].to_pylist()
            expect(kept, ids, f"rows of {new} = {value!r}, of {been}")


@pytest.mark.needs(Feature.RENAME_COLUMN)
def test_renaming_twice_is_the_same_as_once(table: Table) -> None:
    first, second = _alter(table, list(RENAME)), _alter(table, list(RENAME))
    expect(first.schema_fingerprint, second.schema_fingerprint, "the fingerprint after a column was renamed twice")
    expect(
        first.snapshot_id, second.snapshot_id, "the snapshot after a column was renamed twice: there was nothing to do"
    )


@pytest.mark.needs(Feature.RENAME_COLUMN)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(RenameColumn("value", "id"), id="taken"),
        pytest.param(RenameColumn("value", "ID"), id="taken-but-for-case"),
        pytest.param(RenameColumn("missing", "other"), id="not-there"),
    ],
)
def test_a_name_that_does_not_fit_is_refused(table: Table, change: RenameColumn) -> None:
    with refused(IncompatibleTable, "a column gets a name that does not fit"):
        _alter(table, [*RENAME, change])
    expect(
        table.info.schema.names, SCHEMA.names, "the columns after a change was refused: all changes are made, or none"
    )


@pytest.mark.needs(Feature.RENAME_COLUMN)
def test_files_staged_before_a_rename_are_refused(table: Table) -> None:
    staged = table.staged(ids_of(0))
    _alter(table, list(RENAME))
    with refused(TableChanged, "files are committed that were staged before a column was renamed", match="schema"):
        table.commit([staged], token(0))
    expect(table.ids, [], "rows after files with an old name were refused")


@pytest.mark.needs(Feature.RENAME_COLUMN, Feature.ADD_COLUMN)
def test_the_old_name_may_be_used_again(table: Table) -> None:
    table.append(0)
    _alter(table, list(RENAME))
    _alter(table, [AddColumn(pa.field("name", pa.int64()))])
    rows = pa.record_batch({"id": pa.array([90], pa.int64()), "title": ["new"], "name": pa.array([5], pa.int64())})
    table.publish_arrow([rows], token(1))
    read = table.read().sort_by("id")
    expect(read["name"].to_pylist(), [None] * 5 + [5], "values of a new column with the old name of a renamed one")
    expect(
        read["title"].to_pylist()[-2:],
        ["row 4", "new"],
        "values of a renamed column beside a new one with its old name",
    )


@pytest.mark.needs(Feature.RENAME_COLUMN, Feature.ADD_COLUMN)
def test_filters_after_the_old_name_is_used_again(lake: Lake) -> None:
    """What a file knows of a column is of the renamed one, and says nothing of the new one that has its former name.
    Nor does it where that is a column of its own, under the name of another one."""
    table = lake.create(pa.schema([("id", pa.int64()), ("name", pa.string())]), "db.renamed")
    table.publish_arrow([pa.record_batch({"id": pa.array([1, 2]), "name": ["a", "c"]})], token(0))
    _alter(table, list(RENAME))
    _alter(table, [AddColumn(pa.field("name", pa.string()))])
    rows = {"id": pa.array([3, 4]), "title": ["b", None], "name": ["x", "a"]}
    table.publish_arrow([pa.record_batch(rows)], token(1))
    everything = pa.table({"id": [1, 2, 3, 4], "title": ["a", "c", "b", None], "name": [None, None, "x", "a"]})
    leaves = [Leaf(name, op, value) for name in ("name", "title") for value in "abx" for op in (Op.EQ, Op.NE, Op.LE)]
    leaves += [Leaf(name, op) for name in ("name", "title") for op in (Op.IS_NULL, Op.NOT_NULL)]
    compare(table, everything, leaves)
    # Two columns of these files change their names, one of texts and one of numbers: each has what the other one had.
    first = pa.table({"id": [1, 2], "word": ["a", "c"], "text": ["x", "z"], "count": [1, 3], "sum": [24, 26]})
    table = lake.create(first.schema, "db.swapped")
    table.publish_arrow(first.to_batches(), token(0))
    before = table.info.snapshot_id
    for old, new in ((0, 2), (1, 0), (2, 1)):
        names = ("word", "text", "words"), ("count", "sum", "counts")
        _alter(table, [RenameColumn(each[old], each[new]) for each in names])
    swapped = first.rename_columns(["id", "text", "word", "sum", "count"])
    values = {"word": "x", "text": "c", "count": 24, "sum": 3}
    compare(table, swapped, [Leaf(name, Op.EQ, value) for name, value in values.items()])
    if table.lake.declares(Feature.TIME_TRAVEL):
        table.publish_arrow([], token(1))  # of some formats a change of columns is no snapshot
        values = {"word": "c", "text": "x", "count": 3, "sum": 24}
        compare(table, first, [Leaf(name, Op.EQ, each) for name, each in values.items()], snapshot_id=before)


@pytest.mark.needs(Feature.RENAME_COLUMN, Feature.WIDEN_TYPE)
@pytest.mark.parametrize("order", [(0, 1), (2, 0)], ids=["new-name-first", "new-type-first"])
def test_rename_and_widen_in_one_step(numbers: Table, order: tuple[int, int]) -> None:
    wide = pa.int64()
    every: list[SchemaChange] = [RenameColumn("count", "total"), WidenColumn("total", wide), WidenColumn("count", wide)]
    changes = [every[index] for index in order]
    altered = _alter(numbers, changes)
    expect(
        _alter(numbers, changes).snapshot_id,
        altered.snapshot_id,
        "the snapshot after the same changes were made twice: there was nothing to do",
    )
    expect(
        (altered.schema.names[1], altered.schema.field(1).type),
        ("total", pa.int64()),
        "name and type of a column that was renamed and widened in one step",
    )
    expect(
        numbers.read().sort_by("id")["total"].to_pylist(),
        SMALL["count"],
        "values of a column that was renamed and widened in one step",
    )


@pytest.mark.needs(Feature.RENAME_COLUMN, Feature.TIME_TRAVEL)
def test_an_older_snapshot_has_the_old_name(table: Table) -> None:
    before = table.append(0).snapshot_id
    _alter(table, list(RENAME))
    table.publish_arrow([], token(1))
    expect(
        table.read(snapshot_id=before).schema.names,
        SCHEMA.names,
        "the columns of a snapshot from before one was renamed",
    )


@pytest.mark.needs(Feature.RENAME_COLUMN)
def test_watermarks_survive_a_rename(table: Table) -> None:
    table.append(0)
    _alter(table, [RenameColumn("value", "weight")])
    assert table.watermark() is not None, "a pipeline has a watermark after a column was renamed"
    again = table.round(token(0), [])
    expect(
        again.outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an epoch that is run again after a column was renamed",
    )


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_watermarks_survive_a_wider_type(numbers: Table) -> None:
    _alter(numbers, list(WIDEN))
    expect(
        numbers.round(token(0), []).outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an epoch that is run again after columns were widened",
    )
    numbers.publish_arrow([pa.RecordBatch.from_pydict(LARGE, pa.schema(list(numbers.info.schema)))], token(1))
    expect(
        numbers.round(token(1), []).outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of the next epoch that is run again after columns were widened",
    )


@pytest.mark.needs(Feature.WIDEN_TYPE)
def test_widening_what_is_not_there(numbers: Table) -> None:
    with refused(TableNotFound, "a column of a table that is not there is widened"):
        numbers.lake.storage.catalog().alter_table(TablePath("db", "missing"), [WIDEN[0]])
    _alter(numbers, [WIDEN[0]])
