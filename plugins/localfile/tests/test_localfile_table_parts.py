"""What a table's own parts say of files, values and folders, value by value."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.kit.manifests import FileEntry, Growth, growth_text
from laketier.kit.manifests.growth import GROWTH
from laketier.kit.manifests.table_file import TableFile
from laketier.spi import (
    COLLECTOR,
    And,
    BucketSpec,
    ConfigError,
    CorruptTable,
    IncompatibleData,
    IncompatibleTable,
    Leaf,
    Not,
    Op,
    Or,
    Overtaken,
    PartitionField,
    StagedFile,
    StagedFileLost,
    StorageError,
    TableDescriptor,
    TableNotFound,
    Transform,
    UnsupportedType,
    WriteResult,
)
from laketier_localfile import (
    entries,
    growing,
    looking,
    lying,
    lying_on_disk,
    naming,
    pruning,
    rebuilding,
    results,
    staging,
)
from laketier_localfile.file_formats.known import KNOWN
from laketier_localfile.layout import LAYOUT, base_name, staged_path
from laketier_localfile.lying import LyingFiles
from laketier_localfile.lying_on_disk import DiskPlace
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.partitioning import Partitioning, check_partitioning
from laketier_localfile.pruning import ANY, Range, outcomes, ranges_of
from laketier_localfile.results import odd_claim
from laketier_localfile.time_pattern import TimePattern, is_below_time

ATTEMPT = "a" * 32
PART = base_name(0, None, ATTEMPT, 0, ".json")
MOMENT = datetime(2026, 1, 2, 3, 4, 5)
LONG = pa.int64()


# -- what a manifest knows of a file -----------------------------------------------------------------------------------


def known_of(stats: tuple[Any, Any, int], kind: pa.DataType = LONG, rows: int = 5) -> Range:
    entry = FileEntry("p", rows, 1, 0, details={"stats": {"a": stats}})
    return ranges_of(entry, pa.schema([("a", kind)]), ["a"], {"a"})["a"]


@pytest.mark.parametrize(
    ("stats", "known"),
    [
        (("1", "5", 0), Range(1, 5, nulls=False, values=True)),
        (("1", "5", 1), Range(1, 5, nulls=True, values=True)),
        (("1", "1", 4), Range(1, 1, nulls=True, values=True)),
        ((None, None, 5), Range(None, None, nulls=True, values=False)),
        ((None, None, 4), Range(None, None, nulls=True, values=True)),
        (("1", None, 0), Range(None, None, nulls=False, values=True)),
        ((None, "1", 0), Range(None, None, nulls=False, values=True)),
    ],
)
def test_the_range_that_statistics_tell(stats: tuple[Any, Any, int], known: Range) -> None:
    assert known_of(stats) == known


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.bool_(), "true", True), (pa.bool_(), "false", False), (pa.uint8(), "7", 7),
        (pa.date32(), "2026-01-02", date(2026, 1, 2)), (pa.timestamp("us"), "2026-01-02 03:04:05", MOMENT),
        (pa.timestamp("us", "Europe/Berlin"), "2026-01-02 03:04:05", MOMENT.replace(tzinfo=UTC)),
        (pa.decimal128(9, 2), "1.50", Decimal("1.50")), (pa.string(), "x", "x"), (pa.string(), None, None),
    ],
    ids=str,
)  # fmt: skip
def test_the_value_of_a_partition(kind: pa.DataType, text: str | None, value: Any) -> None:
    entry = FileEntry("p", 5, 1, 0, partition=(("a", text),), details={"stats": {"a": ("9", "9", 0)}})
    found = ranges_of(entry, pa.schema([("a", kind)]), ["a"], {"a"})["a"]
    assert found == Range(value, value, nulls=text is None, values=text is not None)
    added = ranges_of(entry, pa.schema([("a", kind)]), ["a"], set())["a"]
    assert added == Range(None, None, nulls=True, values=False), "the file is older than the column"


@pytest.mark.parametrize(
    ("kind", "unit", "text", "low", "high"),
    [
        (pa.date32(), Transform.DAY, "2026-01-02", date(2026, 1, 2), date(2026, 1, 3)),
        (pa.date32(), Transform.YEAR, "2026", date(2026, 1, 1), date(2027, 1, 1)),
        (pa.timestamp("us"), Transform.HOUR, "2026-01-02-03", datetime(2026, 1, 2, 3), datetime(2026, 1, 2, 4)),
        (pa.timestamp("us", "UTC"), Transform.MONTH, "2026-01", datetime(2026, 1, 1, tzinfo=UTC),
         datetime(2026, 2, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_a_partition_by_time_tells_of_its_column(
    kind: pa.DataType, unit: Transform, text: str, low: Any, high: Any
) -> None:
    field = PartitionField("a", unit)
    schema = pa.schema([("a", kind)])

    def found(value: str | None, stats: dict[str, Any]) -> Range:
        entry = FileEntry("p", 5, 1, 0, partition=((field.name, value),), details={"stats": stats})
        return ranges_of(entry, schema, ["a"], {"a"}, [field])["a"]

    assert found(text, {}) == Range(low, high, nulls=False, values=True, open=True)
    assert found(text, {"a": (None, None, 0)}) == Range(low, high, nulls=False, values=True, open=True)
    assert found(None, {}) == Range(None, None, nulls=True, values=False)
    inside = str(low).removesuffix("+00:00")
    assert found(text, {"a": (inside, inside, 0)}) == Range(low, low, nulls=False, values=True), "statistics tell more"


def judged(op: Op, value: Any, low: Any, high: Any, *, is_open: bool = False) -> set[bool | None]:
    return set(outcomes(Leaf("a", op, value), {"a": Range(low, high, nulls=False, values=True, open=is_open)}))


@pytest.mark.parametrize("op", [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_comparison_is_judged_as_its_rows_are(op: Op, is_open: bool) -> None:
    """Of whole numbers, of which an open range has none at its end."""
    compare: dict[Op, Callable[[int, int], bool]] = {
        Op.EQ: lambda a, b: a == b, Op.NE: lambda a, b: a != b, Op.LT: lambda a, b: a < b,
        Op.LE: lambda a, b: a <= b, Op.GT: lambda a, b: a > b, Op.GE: lambda a, b: a >= b,
    }  # fmt: skip
    for low, high in ((2, 2), (2, 3), (2, 5)):
        if is_open and low == high:
            continue
        held = range(low, high if is_open else high + 1)
        for value in range(7):
            possible = {compare[op](each, value) for each in held}
            found = judged(op, value, low, high, is_open=is_open)
            assert possible <= found, (low, high, value)
            if not is_open or value in (0, 6):
                assert found == possible, (low, high, value)


def test_what_is_not_compared() -> None:
    assert judged(Op.EQ, 1, "a", "b") == ANY
    assert judged(Op.EQ, True, 1, 2) == ANY
    assert judged(Op.EQ, MOMENT, MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=UTC)) == ANY
    assert judged(Op.EQ, date(2026, 1, 2), MOMENT, MOMENT) == ANY
    assert judged(Op.EQ, MOMENT, MOMENT, MOMENT) == {True}
    assert judged(Op.IN, (), 1, 2) == {False}
    assert judged(Op.IN, (1, 9), 1, 1) == {True}
    assert judged(Op.IN, (8, 9), 1, 2) == {False}
    assert judged(Op.IN, (1, "x"), 1, 1) == {True}
    assert judged(Op.IN, ("x", "y"), 1, 1) >= {True, False}
    assert outcomes(Leaf("b", Op.EQ, 1), {}) == ANY
    for op, told in ((Op.IS_NULL, True), (Op.NOT_NULL, False)):
        assert outcomes(Leaf("a", op), {"a": Range(None, None, nulls=True, values=False)}) == {told}
        assert outcomes(Leaf("a", op), {"a": Range(1, 1, nulls=False, values=True)}) == {not told}
        assert outcomes(Leaf("a", op), {"a": Range(1, 1, nulls=True, values=True)}) == {True, False}
    with pytest.raises(TypeError, match="not a predicate"):
        outcomes("x", {})  # type: ignore[arg-type]


# -- what a result claims ----------------------------------------------------------------------------------------------

TABLE = TableDescriptor(pa.schema([("a", pa.int64()), ("t", pa.string())]))


@pytest.mark.parametrize(
    ("stats", "told"),
    [
        ('{"a":["1","2",3]}', None),
        ('{"a":[null,null,5]}', None),
        ('{"a":["1","2",6]}', "its bounds '1' and '2' with 6 nulls are none of column 'a'"),
        ('{"a":["1","2",-1]}', "with -1 nulls"),
        ('{"a":["01","2",0]}', "its bounds '01'"),
        ('{"a":["1","02",0]}', "and '02'"),
        ('{"a":["x","2",0]}', "its bounds 'x'"),
        ('{"a":[1,"2",0]}', "its bounds 1"),
        ('{"b":["1","2",0]}', "its statistics can't be read"),
        ('{"a":["1","2"]}', "its statistics can't be read"),
        ('{"a":5}', "its statistics can't be read"),
        ('{"a":["1","2","x"]}', "its statistics can't be read"),
        ("[]", "its statistics can't be read"),
        ("{", "its statistics can't be read"),
    ],
)
def test_claims_about_a_files_values(stats: str, told: str | None) -> None:
    found = odd_claim(StagedFile("p", 5, 1, payload={"stats": stats}), TABLE)
    assert found == told if told is None else told in str(found)


def test_a_file_without_claims() -> None:
    assert "its statistics can't be read" in str(odd_claim(StagedFile("p", 5, 1), TABLE))


# -- partitions --------------------------------------------------------------------------------------------------------


def partitioned(*fields: str, kind: pa.DataType = LONG, **more: Any) -> TableDescriptor:
    schema = pa.schema([("a", kind), ("t", pa.timestamp("us")), ("s", pa.string())])
    return TableDescriptor(schema, tuple(map(PartitionField.parse, fields)), **more)


@pytest.mark.parametrize(
    ("field", "text", "is_one"),
    [
        ("a", "5", True), ("a", "05", False), ("a", None, True), ("a", "x", False),
        ("bucket(4, a)", "3", True), ("bucket(4, a)", "4", False), ("bucket(4, a)", "-1", False),
        ("bucket(4, a)", "03", False), ("bucket(4, a)", "x", False), ("bucket(4, a)", "0", True),
        ("hour(t)", "2026-01-02-03", True), ("hour(t)", "2026-01-02-3", False), ("hour(t)", "2026-01-02", False),
        ("truncate(2, s)", "ab", True), ("truncate(10, a)", "20", True), ("truncate(10, a)", "x", False),
    ],
)  # fmt: skip
def test_values_of_partitions(field: str, text: str | None, is_one: bool) -> None:
    table = partitioned(field)
    [name] = [each.name for each in table.partition_by]
    assert (Partitioning.of(table).odd_text(((name, text),)) is None) is is_one
    assert "its partition names the columns" in str(Partitioning.of(table).odd_text((("x", text),)))
    assert "its partition names the columns" in str(Partitioning.of(table).odd_text(()))


def test_the_values_of_rows() -> None:
    table = partitioned("a", "truncate(10, a)", "truncate(2, s)", "day(t)", "bucket(4, a)")
    rows = pa.table({"a": [-1, 25, None], "t": [MOMENT, None, MOMENT], "s": ["äbc", "a", None]}, schema=table.schema)
    of = Partitioning.of(table)
    keys = [each.to_pylist() for each in of.keys(rows)]
    texts = [[value for _, value in of.texts(row)] for row in zip(*keys, strict=True)]
    assert [row[:4] for row in texts] == [
        ["-1", "-10", "äb", "2026-01-02"],
        ["25", "20", "a", None],
        [None, None, None, "2026-01-02"],
    ]
    assert all(row[4] is None or 0 <= int(row[4]) < 4 for row in texts)
    assert texts[2][4] is None
    assert of.texts_of(table.partition_by[1], pa.array([39, -30])) == ["30", "-30"]
    assert of.is_more
    assert not Partitioning.of(partitioned("a")).is_more
    empty = of.keys(rows.slice(0, 0))
    assert [len(each) for each in empty] == [0] * 5


@pytest.mark.parametrize(
    ("table", "error", "told"),
    [
        (partitioned("a", kind=pa.float64()), UnsupportedType, "can't be a partition column"),
        (partitioned("truncate(2, a)", kind=pa.float64()), UnsupportedType, "truncate does not take column 'a'"),
        (partitioned("truncate(2, a)", kind=pa.uint8()), UnsupportedType, "a signed integer or a string"),
        (partitioned("day(a)"), UnsupportedType, "day does not take column 'a'"),
        (partitioned("hour(a)", kind=pa.date32()), UnsupportedType, "hour does not take"),
        (partitioned("a", properties={"partition.time-pattern": "%Y"}), ConfigError,
         "no partition of the table is one"),
        (partitioned("year(t)", "a", properties={"partition.time-pattern": "%Y"}), ConfigError, "and the last"),
        (partitioned("a", "year(t)", "month(t)", properties={"partition.time-pattern": "%Y/%m"}), ConfigError,
         "is the only one"),
        (partitioned("year(t)", properties={"partition.time-pattern": "a=%Y"}), ConfigError,
         "has the name of the folders"),
        (partitioned("a", "year(t)", properties={"partition.time-pattern": "A=%Y"}), ConfigError, "two folders|'A'"),
        (replace(partitioned("day(t)"), schema=pa.schema([("t", pa.timestamp("us")), ("T_Day", pa.int8())])),
         ConfigError, "has the name of the folders"),
    ],
)  # fmt: skip
def test_partitions_that_folders_can_not_be_made_of(table: TableDescriptor, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        check_partitioning(table)


def test_partitions_that_folders_are_made_of() -> None:
    for fields in (("a", "s"), ("truncate(2, s)", "bucket(3, a)", "minute(t)"), ("year(t)",)):
        check_partitioning(partitioned(*fields))
    check_partitioning(partitioned("a", "day(t)", properties={"partition.time-pattern": "dt=%Y-%m-%d"}))
    check_partitioning(partitioned("day(a)", kind=pa.date32()))
    pattern = TimePattern("dt=%Y-%m-%d", Transform.DAY)
    assert (pattern.folders("2026-01-02"), pattern.folders(None)) == (
        ["dt=2026-01-02"],
        ["dt=__HIVE_DEFAULT_PARTITION__"],
    )
    of = Partitioning.of(partitioned("a", "day(t)", properties={"partition.time-pattern": "%Y/%m/%d"}))
    assert of.folders((("a", "1"), ("t_day", "2026-01-02"))) == ["a=1", "2026", "01", "02"]
    assert of.folders((("a", None), ("t_day", None))) == ["a=__HIVE_DEFAULT_PARTITION__", "null", "null", "null"]


@pytest.mark.parametrize(
    ("text", "kind", "canonical"),
    [
        ("01", pa.int64(), "1"), ("True", pa.bool_(), "true"), ("1.50", pa.decimal128(9, 2), "1.50"),
        ("1.5", pa.decimal128(9, 2), "1.50"), ("x", pa.string(), "x"), (None, pa.int8(), None),
        ("2026-01-02", pa.date32(), "2026-01-02"),
    ],
)  # fmt: skip
def test_texts_of_folders(text: str | None, kind: pa.DataType, canonical: str | None) -> None:
    assert entries.canonical_text(text, kind) == canonical


@pytest.mark.parametrize(
    ("text", "kind"),
    [("0x10", pa.int64()), ("1_000", pa.int64()), ("300", pa.int8()), ("x", pa.bool_()), ("2026-13-01", pa.date32()),
     ("x", pa.decimal128(9, 2)), ("x", pa.float64()), ("1.5", pa.int64())],
)  # fmt: skip
def test_texts_of_folders_that_are_no_values(text: str, kind: pa.DataType) -> None:
    with pytest.raises(IncompatibleData, match="the folder's value"):
        entries.canonical_text(text, kind)


def test_whether_a_file_has_exactly_the_columns() -> None:
    both = pa.schema([("a", pa.int8()), ("b", pa.int8())])
    assert entries._is_exact(both, pa.schema([both.field(1), both.field(0)]))
    for other in (both.remove(0), both.append(pa.field("c", pa.int8())), both.set(0, pa.field("a", pa.int16()))):
        assert not entries._is_exact(other, both)
    parquet, csv = KNOWN["parquet"], KNOWN["csv"]
    assert entries.properties_of(parquet, in_names=False) == {}
    assert set(entries.properties_of(parquet, in_names=True)) == {"laketier.partitions-in-names"}
    assert entries.properties_of(csv, in_names=True).keys() > entries.properties_of(csv, in_names=False).keys()


# -- files that stay open ----------------------------------------------------------------------------------------------


def copied(tmp_path: Path, data: bytes, size: int) -> bytes:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(data)
    target.write_bytes(b"")
    descriptor = os.open(source, os.O_RDONLY)
    try:
        growing.copy_bytes(descriptor, target, size)
    finally:
        os.close(descriptor)
    return target.read_bytes()


@pytest.mark.parametrize("way", ["kernel", "by hand", "in pieces", "none any more", "in part"])
def test_as_many_bytes_are_copied_as_were_recorded(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 8
    real = os.copy_file_range
    asked: list[int] = []

    def range_of(source: int, target: int, count: int, at: int, to: int) -> int:
        asked.append(count)
        if way == "by hand" or (way == "in part" and at):
            raise OSError(errno.EXDEV, "not here")
        if way == "none any more" and at:
            return 0
        return real(source, target, min(count, 700 if way != "kernel" else count), at, to)

    monkeypatch.setattr(os, "copy_file_range", range_of)
    for size in (0, 1, 1000, 2048):
        assert copied(tmp_path, data, size) == data[:size]
    if way == "kernel":
        assert asked == [1, 1000, 2048]
    with pytest.raises(CorruptTable, match="2,048 bytes, and 2,049 were recorded"):
        copied(tmp_path, data, 2049)


def test_a_copy_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(OSError, match="full"):
        copied(tmp_path, b"abc", 3)


class Seen:
    """A state with these open files."""

    def __init__(self, *open_files: FileEntry, schema: int = 0) -> None:
        self.head = self
        self.open_files = open_files
        self.metadata_at = schema


def grown(rows: int = 0, size: int = 0, upto: int = 10, **more: Any) -> Growth:
    return Growth(rows, size, upto, 0, "d", "p", **more)


def staged(growth: Growth | None, *, name: str = PART, **more: Any) -> StagedFile:
    payload = {} if growth is None else {GROWTH: growth_text(growth)}
    told = {"rows": 1, "bytes": 10 if growth is None else growth.upto - growth.bytes, "payload": payload, **more}
    return StagedFile(staged_path(name), **told)


def check(tmp_path: Path, state: Seen, *files: StagedFile, attempt: str = ATTEMPT, length: int = 10) -> None:
    folder = tmp_path / "__in_progress"
    folder.mkdir(exist_ok=True)
    if length:
        (folder / f"{PART}.inprogress").write_bytes(b"x" * length)
    result = WriteResult(table_uuid="u", schema_fingerprint="f", spec_id=0, attempt=attempt, files=files)
    growing.check_growing(tmp_path, state, [result])  # type: ignore[arg-type]


ENTRY = FileEntry(PART, 3, 6, 0, growth=grown())
AFTER = grown(3, 6, 10)


def test_files_that_go_on(tmp_path: Path) -> None:
    check(tmp_path, Seen(), staged(grown()))
    check(tmp_path, Seen(ENTRY), staged(AFTER))
    check(tmp_path, Seen(ENTRY), staged(None, name="part-00000-other.json"))
    check(tmp_path, Seen(ENTRY), staged(replace(AFTER, is_open=False), bytes=4))
    check(tmp_path, Seen(ENTRY), staged(AFTER), attempt="b" * 32)


@pytest.mark.parametrize(
    ("state", "files", "more", "error", "told"),
    [
        (Seen(), [staged(grown()), staged(grown())], {}, StagedFileLost, "two tasks name it"),
        (Seen(), [staged(AFTER)], {}, Overtaken, "it is not open any more"),
        (Seen(replace(ENTRY, bytes=7)), [staged(AFTER)], {}, Overtaken, "knows 7 bytes of it, and .* behind 6"),
        (Seen(replace(ENTRY, rows=4)), [staged(AFTER)], {}, Overtaken, "continued, a file that this round"),
        (Seen(ENTRY, schema=1), [staged(AFTER)], {}, Overtaken, "the table's columns changed"),
        (Seen(replace(ENTRY, bucket=1)), [staged(AFTER)], {}, StagedFileLost, "another partition or bucket"),
        (Seen(ENTRY), [staged(AFTER, partition=(("k", "v"),))], {}, StagedFileLost, "another partition or bucket"),
        (Seen(ENTRY), [staged(grown())], {}, StagedFileLost, "another attempt staged it"),
        (Seen(), [staged(grown())], {"attempt": "b" * 32}, StagedFileLost, "another attempt staged it"),
        (Seen(), [staged(grown())], {"length": 9}, StagedFileLost, "it has 9 bytes instead of 10"),
        (Seen(), [staged(grown())], {"length": 0}, StagedFileLost, "it is gone"),
        (Seen(ENTRY), [staged(replace(AFTER, is_open=False), bytes=5)], {}, StagedFileLost, "10 bytes instead of 11"),
    ],
)
def test_files_that_do_not_go_on(
    state: Seen, files: list[StagedFile], more: dict[str, Any], error: type[Exception], told: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as found:
        check(tmp_path, state, *files, **more)
    assert re.search(told, str(found.value))


def test_open_files_that_lost_what_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "__in_progress").mkdir()
    place = tmp_path / staged_path(PART)
    with pytest.raises(CorruptTable, match="an open data file with 3 rows is lost"):
        growing.check_open(tmp_path, [ENTRY])
    place.write_bytes(b"12345")
    with pytest.raises(CorruptTable, match="has 5 bytes, and 6 were recorded"):
        growing.check_open(tmp_path, [ENTRY])
    place.write_bytes(b"123456")
    growing.check_open(tmp_path, [ENTRY])
    place.write_bytes(b"1234567")
    growing.check_open(tmp_path, [ENTRY])


# -- files that lie there ----------------------------------------------------------------------------------------------


def test_which_of_the_files_are_a_tables() -> None:
    def found() -> LyingFiles:
        return LyingFiles({"a.csv": (1, 1, 1), "b.json": (1, 1, 1), "c.csv": (1, 1, 1)}, {})

    with pytest.raises(IncompatibleData, match="several formats") as told:
        found().only_of(None, "w")
    assert "2 of csv ('a.csv')" in str(told.value.why)
    assert "1 of json ('b.json')" in str(told.value.why)
    chosen = found()
    assert chosen.only_of(KNOWN["csv"], "w") is KNOWN["csv"]
    assert set(chosen.files) == {"a.csv", "c.csv"}
    assert chosen.left_out == {"b.json": "it is named as a file of json"}
    with pytest.raises(IncompatibleData, match="holds no file of arrow") as told:
        found().only_of(KNOWN["arrow"], "w")
    assert "it holds 3 other files" in str(told.value.why)
    assert found().only_of(KNOWN["arrow"], "w", may_be_empty=True) is KNOWN["arrow"]
    with pytest.raises(IncompatibleData, match="holds no data file") as told:
        LyingFiles({}, {}).only_of(None, "w")
    assert "it is empty" in str(told.value.why)
    one = LyingFiles({"a.csv": (1, 1, 1)}, {})
    assert one.only_of(None, "w") is KNOWN["csv"]


def test_files_that_changed_meanwhile() -> None:
    before = LyingFiles({"a.csv": (1, 1, 1), "b.csv": (1, 1, 1)}, {"c.json": "it is named as a file of json"})
    before.refuse_changed(LyingFiles({**before.files, "c.json": (2, 2, 2)}, {}), "w")
    for files in ({}, {"a.csv": (1, 1, 1)}, {**before.files, "a.csv": (1, 2, 1)}, {**before.files, "d.csv": (1, 1, 1)}):
        with pytest.raises(IncompatibleTable, match="files changed while the folder was looked at"):
            before.refuse_changed(LyingFiles(files, {}), "w")


def test_names_that_are_hidden() -> None:
    found = LyingFiles({}, {})
    for path in ("_a", "x/_b=1", ".c=1", "d=1"):
        found.tell_hidden(path)
    assert set(found.left_out) == {"x/_b=1"}


@pytest.mark.parametrize(
    ("mark", "kind"),
    [("_delta_log", "Delta Lake"), ("_delta_log/x", "Delta Lake"), ("metadata/v1.metadata.json", "Iceberg"),
     ("_versions", "Lance"), ("base_0001", "Hive's transactions"), ("delta_1", "Hive's transactions"),
     ("ducklake-x", "DuckLake"), ("whatever", "another format"), ("_laketier_manifests", "laketier")],
)  # fmt: skip
def test_whose_table_a_folder_is(mark: str, kind: str) -> None:
    assert lying.kind_of(mark) == kind


def test_what_is_left_of_a_table_on_a_disk(tmp_path: Path) -> None:
    def left(*names: str) -> str | None:
        place = DiskPlace(tmp_path / str(len(list(tmp_path.iterdir()))))
        place.location.mkdir()
        for name in names:
            path = place.location / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
        return place.left_of_table()

    home, own = f"_laketier_manifests/{'0' * 32}", base_name(0, None, ATTEMPT, 0)
    assert left() is None
    assert left("a.parquet", own) is None, "a folder of others, whatever their names"
    assert left("_laketier_manifests/x", "a.parquet") is None
    assert left(f"{home}.lost/a") == f"{home}.lost"
    assert left(f"{home}/head.json") is None
    assert left(f"{home}/head.json", f"{home}/{1:020}.json") == f"{home}/head.json"
    assert left(f"{home}/head.json", f"{home}/{0:020}.json") == f"{home}/head.json", "it can't be read"
    assert left(staged_path(own)) == staged_path(own)
    assert left("__in_progress/other") is None
    assert left("_laketier_manifests/x", f"k=1/{own}") == f"k=1/{own}"
    assert left("_laketier_manifests/x", f"k=1/{own}.inprogress") is None
    assert left("__superseded/x", "a.parquet") == "a.parquet", "the folder of manifests was deleted"
    assert left("__superseded/x", "a.txt") is None


@pytest.mark.parametrize("gone", ["b.parquet", "c"])
def test_what_goes_away_while_a_folder_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    """It is told as a writer that still writes there: who is told that there is no table makes one."""
    (tmp_path / "c").mkdir()
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).write_bytes(b"x")

    def looked_at(*_: Any) -> None:
        path = tmp_path / gone
        if path.exists():
            path.rmdir() if path.is_dir() else path.unlink()

    monkeypatch.setattr(lying_on_disk, "refuse_table", looked_at)
    with pytest.raises(IncompatibleTable, match="went away while the folder was listed") as told:
        DiskPlace(tmp_path).files()
    assert str(told.value.where) == str(tmp_path / gone)
    for missing in (tmp_path / "d", tmp_path / "a.parquet"):
        with pytest.raises(TableNotFound, match="there is no such folder"):
            DiskPlace(missing).files()


def test_manifests_are_moved_aside_under_a_free_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = DiskPlace(tmp_path)
    place.move_aside(["gone"])
    home = tmp_path / LAYOUT.folder
    for name in ("a", "a.lost", "a.1.lost"):
        (home / name).mkdir(parents=True)
    place.move_aside(["a", "gone"])
    assert sorted(each.name for each in home.iterdir()) == ["a.1.lost", "a.2.lost", "a.lost"]

    def refused(*_: Any) -> None:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(lying_on_disk.os, "rename", refused)
    with pytest.raises(PermissionError, match="not yours"):
        place.move_aside(["a.lost"])


# -- tables that are made again ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [2, 3])
def test_a_lost_table_file_is_told_by_the_rollups(make_table: Callable[..., Any], base: int) -> None:
    table = make_table(options=LocalFileOptions(manifests_per_rollup=base))
    for epoch in range(5):
        table.round(epoch)
    ids = table.read_ids()
    home = table.log.folder
    for odd in ("x-y.json", "1.json", "0-1-2.json", "notes", "7-7.json", "3-2.json"):
        (home / "rollups" / odd).write_bytes(b"")
    (home.parent / "table.json").unlink()
    table.storage.adoption().rebuild(table.path)
    assert TableFile.read(table.location, LAYOUT).manifests_per_rollup == base
    assert table.read_ids() == ids


def test_a_lost_table_file_without_rollups(make_table: Callable[..., Any]) -> None:
    table = make_table()
    assert rebuilding._rolled_up(table.log) is None


# -- staging -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "again", "fix"),
    [
        (errno.EACCES, True, "write access"),  # somebody changed the rights, and puts them right
        (errno.EPERM, True, "hard links"),
        (errno.EROFS, True, "Mount it for writing"),  # so the system leaves a disk that failed
        (errno.ENOTDIR, False, "must be a folder"),
        (errno.ENOTSUP, False, "hard links"),
    ],
)
def test_a_folder_that_nothing_may_be_staged_in_is_tried_again_where_that_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, again: bool, fix: str
) -> None:
    here = staging.LocalStaging(tmp_path)
    (tmp_path / "__in_progress").mkdir()

    def refused(*_: Any, **__: Any) -> int:
        raise OSError(number, "refused")

    monkeypatch.setattr(staging.os, "open", refused)
    with pytest.raises(StorageError if again else ConfigError, match="staging a file was refused.*" + fix):
        here.create(staged_path(PART))


def test_a_staged_file_has_a_name_that_nobody_else_has(tmp_path: Path) -> None:
    here = staging.LocalStaging(tmp_path)
    (tmp_path / "__in_progress").mkdir()
    path, stream = here.create(staged_path(PART))
    stream.write(b"rows")
    stream.close()
    with pytest.raises(FileExistsError):
        here.create(staged_path(PART))
    with here.open(path) as file:
        assert file.read() == b"rows"
    here.delete(path)
    here.delete(path)
    assert not Path(path).exists()


def test_buckets_are_of_the_table(make_table: Callable[..., Any]) -> None:
    table = make_table(buckets=BucketSpec(3, ("id",)))
    table.round(0)
    assert {file.bucket for file in table.files()} <= {0, 1, 2}
    assert table.read_ids() == [0, 1, 2, 3]


# -- three truths, names, and what is told -----------------------------------------------------------------------------


def test_and_and_or_know_three_truths() -> None:
    """As SQL has them: what is not known stays so unless the other one decides."""
    for a, b in product((True, False, None), repeat=2):
        known = {a, b}
        assert pruning._and(a, b) is (False if False in known else None if None in known else True)
        assert pruning._or(a, b) is (True if True in known else None if None in known else False)
    null, false = Range(None, None, nulls=True, values=False), Range(1, 1, nulls=False, values=True)
    for children in ((Leaf("n", Op.EQ, 1), Leaf("f", Op.EQ, 2)), (Leaf("f", Op.EQ, 2), Leaf("n", Op.EQ, 1))):
        ranges = {"n": null, "f": false}
        assert outcomes(Not(Or(children)), ranges) == {None}
        assert outcomes(And(children), ranges) == {False}


@pytest.mark.parametrize(
    ("name", "bucket"), [(PART, None), (base_name(0, 7, ATTEMPT, 0), 7), ("part-x.parquet", None), ("x-b00001-y", None)]
)
def test_the_bucket_in_a_name(name: str, bucket: int | None) -> None:
    assert naming.bucket_in(name) == bucket


@pytest.mark.parametrize(
    ("path", "is_below"),
    [("2026/a.parquet", True), ("k=1/2026/a.parquet", True), ("2026/k=1/a.parquet", True), ("k=1/a.parquet", False),
     ("2026.parquet", False), ("null/a.parquet", True), ("some/a.parquet", False)],
)  # fmt: skip
def test_files_below_folders_by_time(path: str, is_below: bool) -> None:
    assert is_below_time(path) is is_below


def test_a_folder_that_goes_away_has_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    for inner in ("gone", "file"):
        assert lying_on_disk._names_of(tmp_path, inner) == ([], [])
    (tmp_path / "_delta_log").mkdir()
    assert lying_on_disk._names_of(tmp_path, "") == (["file"], ["_delta_log"])

    def refused(*_: Any) -> None:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(lying_on_disk.os, "scandir", refused)
    assert lying_on_disk._names_of(tmp_path, "") == ([], ["_delta_log"]), "what a look tells"
    assert lying_on_disk._names_of(tmp_path, "x") == ([], [])


def test_what_is_no_claim_is_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what values and types raise says that a text is none of its column."""

    def fails(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(results, "decode", fails)
    with pytest.raises(MemoryError):
        odd_claim(StagedFile("p", 5, 1, payload={"stats": '{"a":["1","2",3]}'}), TABLE)


def test_what_is_told_of_an_adopted_table(make_table: Callable[..., Any]) -> None:
    table = make_table()
    table.round(0)
    made = [replace(file, rows=2, bytes=7) for file in table.files() for _ in range(3)]
    told = entries.adopted_table(table.info, made, {"x": "why"}, told=("a",))
    assert (told.files, told.rows, told.bytes, told.left_out, told.told, told.made) == (
        3,
        6,
        21,
        {"x": "why"},
        ("a",),
        True,
    )
    assert told.table.handle is None


def test_pipelines_of_a_lost_table_are_told_and_no_collector(make_table: Callable[..., Any]) -> None:
    table = make_table()
    table.round(0, pipeline="b")
    table.round(0, pipeline="a")
    newest = table.log.head()[0]
    marks = {**newest.watermarks, COLLECTOR: newest.watermarks["a"]}
    told = rebuilding._known(replace(newest, watermarks=marks))
    assert [sentence.split(" of run")[0] for sentence in told] == [
        "Pipeline a was at epoch 0",
        "Pipeline b was at epoch 0",
    ]
    assert rebuilding._known(None) == ()


@pytest.mark.parametrize(
    ("there", "table", "is_same"),
    [(pa.int8(), pa.int64(), True), (pa.int64(), pa.int8(), True), (pa.string(), pa.string(), True),
     (pa.string(), pa.large_string(), False), (pa.int8(), pa.string(), False), (pa.string(), pa.int8(), False),
     (pa.timestamp("ms"), pa.timestamp("us"), False), (pa.uint8(), pa.int8(), False), (pa.int8(), pa.uint8(), False)],
    ids=str,
)  # fmt: skip
def test_statistics_that_say_the_same_of_the_tables_column(
    there: pa.DataType, table: pa.DataType, is_same: bool
) -> None:
    assert looking._same_order(pa.schema([("a", there)]), pa.schema([("b", pa.int8()), ("a", table)]), "a") is is_same
    assert not looking._same_order(pa.schema([("a", there)]), pa.schema([("b", table)]), "a")
