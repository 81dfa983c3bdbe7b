"""Partitions by time and other transforms: the values, the folders, what plain readers and filters see."""

from __future__ import annotations

import json
import operator
import shutil
import time
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laketier.kit.partition import OddPartitionValues
from laketier.kit.time_spans import UNITS, TimeSpan, ordinals
from laketier.spi import (
    AddColumn,
    And,
    BucketSpec,
    ConfigError,
    CorruptTable,
    IncompatibleTable,
    Leaf,
    Op,
    Or,
    PartitionField,
    StagedFileLost,
    TableDescriptor,
    Transform,
    UnsupportedType,
    WriteMode,
)
from laketier_localfile.layout import LAYOUT
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.partitioning import Partitioning, check_partitioning
from laketier_localfile.time_pattern import TIME_PATTERN, TimePattern

HOURLY = LocalFileOptions(time_pattern="%Y/%m/%d/%H")
SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string()), ("ts", pa.timestamp("us"))])
MOMENTS = [
    datetime(2026, 11, 24, 10, 59, 59, 999999),
    datetime(2026, 11, 24, 11),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59),
    None,
]
ROWS = [{"id": i, "region": "eu/.." if i % 2 else None, "ts": ts} for i, ts in enumerate(MOMENTS)]


def by(*fields: str) -> tuple[PartitionField, ...]:
    return tuple(map(PartitionField.parse, fields))


def folders(table: Any) -> set[str]:
    return {str(path.parent.relative_to(table.location)) for path in table.plain_files()}


# -- values ------------------------------------------------------------------------------------------------------------


@given(st.sampled_from(UNITS), st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 31)))
@example(UNITS[-1], datetime(1969, 12, 31, 23, 59, 59, 1))
def test_each_moment_lies_within_its_span_whatever_its_resolution(unit: Transform, moment: datetime) -> None:
    for resolution in ("s", "ms", "us", "ns"):
        if resolution == "ns" and not 1678 < moment.year < 2262:
            continue
        # A cast alone would bring moments before 1970 nearer to it, into the next second.
        exact = pa.array([moment], pa.timestamp("us"))
        coarse = {"s": "second", "ms": "millisecond"}.get(resolution)
        column = (pc.floor_temporal(exact, unit=coarse) if coarse else exact).cast(pa.timestamp(resolution))
        (ordinal,) = ordinals(column, unit).to_pylist()
        span = TimeSpan(unit, ordinal)
        assert span.parts == tuple(moment.strftime(f"{moment.year:04}|%m|%d|%H|%M").split("|"))[: len(span.parts)]
        if span.bounds is not None:
            assert span.bounds[0] <= moment < span.bounds[1]


@given(st.sampled_from(UNITS), st.integers(-(2**63), 2**63 - 1))
def test_each_instant_of_any_age_has_a_span_whose_text_gives_it_back(unit: Transform, seconds: int) -> None:
    column = pa.array([seconds, None], pa.int64()).view(pa.timestamp("s"))
    ordinal, of_null = ordinals(column, unit).to_pylist()
    assert of_null is None
    span = TimeSpan(unit, ordinal)
    assert TimeSpan.parse(span.text, unit) == span
    pattern = TimePattern(
        {0: "%Y", 1: "%Y-%m", 2: "%d.%m.%Y", 3: "%Y/%m/%d/%H", 4: "%H%M/%Y%m%d"}[UNITS.index(unit)], unit
    )
    path = "/".join([*pattern.folders(span.text), "part-00000-0123456789abcdef0123456789abcdef-0000.parquet"])
    assert LAYOUT.data_path(path, where="a test") == path


@given(st.dates())
def test_days_without_time_lie_in_the_same_spans(day: date) -> None:
    column, moments = pa.array([day]), pa.array([datetime(day.year, day.month, day.day)], pa.timestamp("us"))
    for unit in UNITS[:3]:
        assert ordinals(column, unit) == ordinals(moments, unit)


@given(st.lists(st.tuples(st.integers(-(2**40), 2**40), st.sampled_from(["a", "b"])), max_size=40))
def test_two_spans_never_share_a_folder(found: list[tuple[int, str]]) -> None:
    pattern = TimePattern("%Y%m%d/%H", Transform.HOUR)
    spans = {ordinal for ordinal, _ in found}
    assert len({tuple(pattern.folders(TimeSpan(Transform.HOUR, each).text)) for each in spans}) == len(spans)


@pytest.mark.parametrize(
    "text", ["2026-13", "2026-1", "+2026-01", "-0000-01", "+010000-01", "2026", "2026-01-01", "../x", ""]
)
def test_a_text_that_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no month"):
        TimeSpan.parse(text, Transform.MONTH)


# -- folders -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [("hour(ts)",), ("region", "hour(ts)")])
def test_rows_lie_in_folders_by_time_and_every_reader_finds_them(make_table: Any, fields: tuple[str, ...]) -> None:
    table = make_table(schema=SCHEMA, partition_by=fields, options=HOURLY)
    table.round(0, ROWS)
    assert table.scan().sort_by("id").to_pylist() == ROWS
    if len(fields) == 1:
        assert folders(table) == {
            "2026/11/24/10", "2026/11/24/11", "1969/12/31/23", "0001/01/01/00", "9999/12/31/23", "null/null/null/null",
        }  # fmt: skip
    else:
        assert "region=eu%2F../2026/11/24/11" in folders(table)
        assert "region=__HIVE_DEFAULT_PARTITION__/2026/11/24/10" in folders(table)
    files = f"{table.location}/**/*.parquet"
    found = duckdb.sql(f"SELECT id FROM read_parquet('{files}', hive_partitioning = false) ORDER BY id").fetchall()
    assert [row[0] for row in found] == list(range(len(ROWS)))
    assert pl.read_parquet(files, hive_partitioning=False)["id"].sort().to_list() == list(range(len(ROWS)))
    assert table.log.read(1).added[0].transformed
    assert table.info.descriptor.partition_by == by(*fields)


def test_moments_with_a_zone_lie_by_their_time_in_utc(make_table: Any) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.string()), ("ts", pa.timestamp("ms", "Asia/Tokyo"))])
    table = make_table(schema=schema, partition_by=("day(ts)",), options=LocalFileOptions(time_pattern="dt=%Y-%m-%d"))
    moment = datetime(2026, 11, 25, 3, tzinfo=timezone(timedelta(hours=9)))
    table.round(0, [{"id": 1, "region": "x", "ts": moment}, {"id": 2, "region": "x", "ts": None}])
    assert folders(table) == {"dt=2026-11-24", "dt=__HIVE_DEFAULT_PARTITION__"}
    assert table.read_ids(filters=(Leaf("ts", Op.GE, datetime(2026, 11, 24, tzinfo=UTC)),)) == [1]
    day = duckdb.sql(
        f"SELECT dt, id FROM read_parquet('{table.location}/*/*.parquet', hive_partitioning = true) ORDER BY id"
    )
    assert day.fetchall() == [(date(2026, 11, 24), 1), (None, 2)]


def test_without_a_pattern_transforms_have_folders_in_hives_way(make_table: Any) -> None:
    table = make_table(schema=SCHEMA, partition_by=("bucket(2, id)", "truncate(2, region)", "month(ts)"))
    table.round(0, ROWS)
    assert table.scan().sort_by("id").to_pylist() == ROWS
    assert "id_bucket=0/region_trunc=eu/ts_month=2026-11" in folders(table)
    assert table.info.descriptor.partition_by == by("bucket(2, id)", "truncate(2, region)", "month(ts)")


@pytest.mark.parametrize(
    ("value", "width", "truncated"),
    [(-1, 10, -10), (7, 10, 0), (-128, 10, -130), (127, 1, 127), ("a😀b", 2, "a😀"), (None, 3, None)],
)
def test_truncate_rounds_down_and_counts_characters(value: Any, width: int, truncated: Any) -> None:
    kind = pa.string() if isinstance(value, str) else pa.int8()
    field = PartitionField("c", Transform.TRUNCATE, width)
    partitioning = Partitioning((field,), pa.schema([("c", kind)]))
    assert partitioning.values(field, pa.array([value], kind)).to_pylist() == [truncated]


def test_files_of_one_span_are_folded_and_those_of_another_are_not(make_table: Any) -> None:
    options = LocalFileOptions(time_pattern="%Y/%m/%d/%H", fold_files=3)
    table = make_table(schema=SCHEMA, partition_by=("hour(ts)",), options=options)
    for epoch in range(8):
        rows = [{"id": 2 * epoch + i, "region": "x", "ts": datetime(2026, 11, 24, i)} for i in range(2)]
        table.round(epoch, rows)
    assert table.read_ids() == list(range(16))
    assert folders(table) == {"2026/11/24/00", "2026/11/24/01"}
    assert len(table.plain_files()) < 16


def test_overwrite_and_buckets_and_time_travel(make_table: Any) -> None:
    table = make_table(schema=SCHEMA, partition_by=("hour(ts)",), options=HOURLY, buckets=BucketSpec(2, ("id",)))
    table.round(0, ROWS)
    table.round(1, ROWS[:2], mode=WriteMode.OVERWRITE)
    assert table.read_ids() == [0, 1]
    assert table.read_ids(snapshot_id=1) == list(range(len(ROWS)))
    assert {entry.bucket for entry in table.log.read(1).added} == {0, 1}


# -- filters -----------------------------------------------------------------------------------------------------------


def planned(table: Any, *filters: Any) -> int:
    from laketier.spi import ScanRequest

    return len(table.storage.source(table.info).plan(ScanRequest(filters=filters)).splits)


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.date32()])
def test_a_filter_skips_the_folders_of_other_times(make_table: Any, kind: pa.DataType) -> None:
    """Nanoseconds have no bounds in the manifest, so there it is the folder alone that tells."""
    schema = pa.schema([("id", pa.int64()), ("region", pa.string()), ("ts", kind)])
    table = make_table(schema=schema, partition_by=("day(ts)",))
    days = [
        datetime(2026, 11, day, tzinfo=UTC if pa.types.is_timestamp(kind) and kind.tz else None) for day in range(1, 6)
    ]
    if pa.types.is_date(kind):
        days = [day.date() for day in days]
    table.round(0, [{"id": i, "region": "x", "ts": day} for i, day in enumerate([*days, None])])
    assert planned(table, Leaf("ts", Op.GE, days[3])) == 2
    assert planned(table, Leaf("ts", Op.LT, days[1])) == 1
    assert planned(table, Leaf("ts", Op.EQ, days[2])) == 1
    assert planned(table, Leaf("ts", Op.IN, (days[0], days[4]))) == 2
    assert planned(table, Leaf("ts", Op.IS_NULL)) == 1
    assert planned(table, Leaf("ts", Op.NOT_NULL)) == 5
    assert planned(table, And((Leaf("ts", Op.GT, days[0]), Leaf("ts", Op.LE, days[1])))) in (1, 2)
    assert planned(table, Or((Leaf("ts", Op.LT, days[0]), Leaf("ts", Op.GT, days[4])))) <= 1


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=12),
    st.integers(0, 8),
    st.sampled_from([Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE]),
    st.sampled_from(["ns", "us"]),
)
@example(halves=[2], literal=2, op=Op.GE, resolution="ns")
def test_what_a_span_says_of_a_filter_is_true_of_each_of_its_values(
    halves: list[int], literal: int, op: Op, resolution: str
) -> None:
    """Values at the edges of hours, also a nanosecond before one."""
    from laketier.kit.manifests import FileEntry
    from laketier_localfile.pruning import outcomes, ranges_of

    schema = pa.schema([("ts", pa.timestamp(resolution))])
    step = 1_800_000_000_000 if resolution == "ns" else 1_800_000_000
    values = [half * step - half % 3 for half in halves]
    column = pa.array(values, pa.int64()).view(schema.field(0).type)
    field = PartitionField("ts", Transform.HOUR)
    wanted = datetime(1970, 1, 1) + timedelta(minutes=30 * literal) - timedelta(microseconds=literal // 2 % 2)
    bound = (wanted - datetime(1970, 1, 1)) // timedelta(microseconds=1) * (1000 if resolution == "ns" else 1)
    truth = getattr(operator, op.name.lower())
    for value, ordinal in zip(values, ordinals(column, Transform.HOUR).to_pylist(), strict=True):
        entry = FileEntry("x", 1, 1, 0, (("ts_hour", TimeSpan(Transform.HOUR, ordinal).text),), details={"stats": {}})
        known = ranges_of(entry, schema, ["ts"], {"ts"}, (field,))
        assert truth(value, bound) in outcomes(Leaf("ts", op, wanted), known)


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("%Y/%m/%d", "needs %Y, %m, %d, %H"),
        ("%Y/%m/%d/%H/%M", "no other directive"),
        ("%H", "needs %Y"),
        ("%Y/%m/%d/%H%%", "it may have"),
        ("%Y/%j/%m/%d/%H", "it may have"),
        ("%Y/../%m/%d/%H", "each of its folders"),
        ("/%Y/%m/%d/%H", "each of its folders"),
        ("%Y//%m/%d/%H", "each of its folders"),
        ("logs/%Y/%m/%d/%H", "each of its folders"),
        ("_%Y/%m/%d/%H", "each of its folders"),
        (".%Y/%m/%d/%H", "each of its folders"),
        ("%Y/%m/%d/%H\n", "it may have"),
        ("%Y/%m/%d/%H\\x", "it may have"),
        ("a=%Y/a=%m/%d/%H", "same key"),
        ("a=b=%Y/%m/%d/%H", "its key"),
        ("%Y=%m/%d/%H", "its key"),
        ("%Y/%m/%d/%H" + "x" * 200, "at most 128"),
    ],
)
def test_a_pattern_that_names_no_hours_is_refused_with_the_reason(table: Any, pattern: str, why: str) -> None:
    descriptor = TableDescriptor(SCHEMA, by("hour(ts)"), properties={TIME_PATTERN: pattern})
    with pytest.raises(ConfigError) as refused:
        check_partitioning(descriptor)
    assert why in str(refused.value)


def test_a_pattern_belongs_to_its_table(make_table: Any, tmp_path: Path) -> None:
    table = make_table(schema=SCHEMA, partition_by=("hour(ts)",), options=HOURLY)
    assert table.info.descriptor.properties[TIME_PATTERN] == "%Y/%m/%d/%H"
    table.options = LocalFileOptions()
    table.round(0, ROWS[:1])  # nothing has to be said again
    assert folders(table) == {"2026/11/24/10"}
    table.options = LocalFileOptions(time_pattern="%Y%m%d%H")
    with pytest.raises(ConfigError, match="is named by '%Y/%m/%d/%H'"):
        table.round(1, ROWS[:1])
    with pytest.raises(ConfigError, match="one pattern"):
        table.create()
    assert table.read_ids() == [0]


@pytest.mark.parametrize(
    ("partition_by", "properties", "error", "match"),
    [
        (("region",), {TIME_PATTERN: "%Y"}, ConfigError, "no partition of the table is one"),
        (("year(ts)", "region"), {TIME_PATTERN: "%Y"}, ConfigError, r"lake.partition-by = region, year\(ts\)"),
        (("year(ts)", "day(ts)"), {TIME_PATTERN: "%Y/%m/%d"}, ConfigError, "the only one"),
        (("year(ts)",), {TIME_PATTERN: "id=%Y"}, ConfigError, "column 'id' has the name of the folders"),
        (("region", "year(ts)"), {TIME_PATTERN: "region=%Y"}, ConfigError, "two folders"),
        (("hour(region)",), {}, UnsupportedType, "hour does not take"),
        (("hour(day)",), {}, UnsupportedType, "hour does not take"),
        (("truncate(2, ts)",), {}, UnsupportedType, "truncate does not take"),
        (("bucket(4, flag)",), {}, Exception, "flag"),
        (("day(ts)", "day(ts)"), {}, ConfigError, "two folders"),
        (("hour(hid)",), {}, ConfigError, "column 'hid_hour' has the name"),
    ],
)
def test_what_can_not_be_told_apart_is_refused_at_create(
    table: Any, partition_by: tuple[str, ...], properties: dict[str, str], error: type[Exception], match: str
) -> None:
    schema = pa.schema(
        [*SCHEMA, ("day", pa.date32()), ("flag", pa.bool_()), ("hid", pa.timestamp("s")), ("hid_hour", pa.int32())]
    )
    with pytest.raises(error, match=match):
        check_partitioning(TableDescriptor(schema, by(*partition_by), properties=properties))


def test_a_column_never_gets_the_name_of_folders(make_table: Any) -> None:
    table = make_table(schema=SCHEMA, partition_by=("hour(ts)",))
    with pytest.raises(ConfigError, match="TS_hour"):
        table.storage.catalog().alter_table(table.path, [AddColumn(pa.field("TS_hour", pa.string()))])


def test_a_forged_partition_is_refused_before_anything_is_published(make_table: Any) -> None:
    from dataclasses import replace

    table = make_table(schema=SCHEMA, partition_by=("hour(ts)",), options=HOURLY)
    for text in ("../../../etc", "2026-11-24", "2026-11-24-24", "null", "", "2026-11-24-10/.."):
        staged = table.stage(ROWS[:1])
        forged = replace(staged, files=(replace(staged.files[0], partition=(("ts_hour", text),)),))
        committer = table.committer()
        with pytest.raises(StagedFileLost, match="is no value of"):
            committer.publish(committer.open(), [forged], None)
    assert table.read_ids() == []


def test_an_older_laketier_refuses_the_manifests(make_table: Any) -> None:
    """Version 6: they would take the folders for none of the table's."""
    table = make_table(schema=SCHEMA, partition_by=("hour(ts)",), options=HOURLY)
    for epoch in range(40):
        table.round(epoch, [{"id": epoch, "region": "x", "ts": datetime(2026, 1, 1)}])
    documents = [*table.log.folder.glob("0*.json"), *table.log.folder.glob("rollups/*.json")]
    versions = {path.name: json.loads(path.read_text())["body"]["version"] for path in documents}
    assert set(versions.values()) == {6}
    assert len(versions) > 41


# -- made again --------------------------------------------------------------------------------------------------------


def test_a_table_is_rebuilt_with_its_folders_while_a_manifest_is_left(make_table: Any) -> None:
    table = make_table(schema=SCHEMA, partition_by=("region", "hour(ts)"), options=HOURLY)
    table.round(0, ROWS)
    table.round(1, [{"id": 10, "region": "x", "ts": datetime(2026, 11, 24, 10)}])
    table.log.path(1).unlink()
    with pytest.raises(CorruptTable):
        table.scan()
    rebuilt = table.storage.adoption().rebuild(table.path)
    assert rebuilt.table.descriptor.partition_by == by("region", "hour(ts)")
    assert table.read_ids() == [*range(6), 10]
    assert planned(table, Leaf("ts", Op.EQ, datetime(2026, 11, 24, 11))) == 1
    entries = {entry.path.rpartition("/")[0]: dict(entry.partition)["ts_hour"] for entry in table.log.read(0).added}
    assert entries["region=x/2026/11/24/10"] == "2026-11-24-10"


@pytest.mark.parametrize(("fields", "options"), [(("hour(ts)",), HOURLY), (("region", "day(ts)"), LocalFileOptions())])
def test_a_table_is_rebuilt_from_files_alone_and_says_that_its_time_is_lost(
    make_table: Any, fields: tuple[str, ...], options: LocalFileOptions
) -> None:
    table = make_table(schema=SCHEMA, partition_by=fields, options=options)
    rows = [{**row, "region": row["region"] or "x"} for row in ROWS]
    table.round(0, rows)
    shutil.rmtree(table.location / "_laketier_manifests")
    rebuilt = table.storage.adoption().rebuild(table.path)
    assert any("such as time" in line for line in rebuilt.told)
    assert rebuilt.table.descriptor.partition_by == by(*fields[:-1])
    table.options = LocalFileOptions()
    assert table.scan().sort_by("id").to_pylist() == rows


def test_odd_values_of_columns_beside_time_are_named_by_digests(make_table: Any) -> None:
    options = LocalFileOptions(time_pattern="%Y", odd_partition_values=OddPartitionValues.ACCEPT)
    table = make_table(schema=SCHEMA, partition_by=("region", "year(ts)"), options=options)
    table.round(0, [{"id": 1, "region": "", "ts": datetime(2026, 1, 1)}])
    (folder,) = folders(table)
    assert folder.startswith("region=__odd_")
    assert folder.endswith("/2026")
    assert table.read_ids() == [1]


def test_orphans_are_what_dead_rounds_left_and_no_file_below_time(make_table: Any) -> None:
    table = make_table(schema=SCHEMA, partition_by=("hour(ts)",), options=HOURLY)
    table.round(0, ROWS)
    table.stage(ROWS)
    maintenance = table.storage.maintenance(table.info)
    found = maintenance.orphans(time.time_ns() // 1_000_000 + 60_000)
    assert len(found) == len(ROWS)
    assert maintenance.remove_orphans(found) == found
    assert table.scan().sort_by("id").to_pylist() == ROWS


def test_moved_columns_of_a_time_partition_are_refused(make_table: Any) -> None:
    from laketier.spi import WidenColumn

    table = make_table(schema=SCHEMA, partition_by=("hour(ts)",), options=HOURLY)
    with pytest.raises(IncompatibleTable):
        table.storage.catalog().alter_table(table.path, [WidenColumn("ts", pa.timestamp("ns"))])
