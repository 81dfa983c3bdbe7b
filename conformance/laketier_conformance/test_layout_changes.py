"""A table as a log, where its rows lie in partitions and buckets: as they came, and splits tell where."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from laketier.bucketing import assigner_for
from laketier.spi import (
    CHANGE_TYPE,
    BucketSpec,
    Feature,
    FeatureNotSupported,
    LakeSource,
    PartitionField,
    ScanPlan,
    UnsupportedType,
    WriteMode,
)
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, read_plan, read_split, token
from laketier_conformance.layouts import FUNCTIONS, KEYS, REFUSABLE, SPELLED, rows_by, spelled_as_they_are

Plan = Callable[[Table, int, int], ScanPlan]


def _appended(table: Table, start: int, end: int) -> ScanPlan:
    return table.changes.plan(start, end)


def _fed(table: Table, start: int, end: int) -> ScanPlan:
    return table.feed.plan(start, end)


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.PARTITIONING)
@pytest.mark.parametrize("name", KEYS)
def test_appended_rows_of_partitions(lake: Lake, name: str) -> None:
    """A format may keep the values of partitions elsewhere than in its files."""
    rows = rows_by(*KEYS[name])
    table = _parted(lake, rows, name)
    if table is not None:
        start = table.latest
        table.publish_arrow([rows.slice(0, 2)], token(0))
        middle = table.latest
        table.publish_arrow([rows.slice(2)], token(1))
        _told(table, start, middle, rows.slice(0, 2), name, _appended)
        _told(table, start, table.latest, rows, name, _appended)


@pytest.mark.usefixtures("far_from_utc")
@pytest.mark.needs(Feature.CHANGE_FEED, Feature.PARTITIONING)
@pytest.mark.parametrize("name", KEYS)
def test_a_feed_of_partitions(lake: Lake, harness: Harness, name: str) -> None:
    """Also of rows that went, where the format can replace rows."""
    rows = rows_by(*KEYS[name])
    table = _parted(lake, rows, name)
    if table is None:
        return
    if harness.keep_feed is not None:
        harness.keep_feed(lake.storage, table.info)
    start = table.latest
    table.publish_arrow([rows], token(0))
    end = table.latest
    _told(table, start, end, rows, name, _fed)
    if lake.declares(Feature.OVERWRITE):
        table.round(token(1), [], WriteMode.OVERWRITE)
        found = _told(table, end, table.latest, rows, name, _fed)
        expect(set(found[CHANGE_TYPE].to_pylist()), {"-D"}, "the change types of rows that are replaced by none")


@pytest.mark.needs(Feature.INCREMENTAL_READ, Feature.BUCKETING)
def test_appended_rows_of_buckets(lake: Lake) -> None:
    """A split of changes tells its bucket, as one of a snapshot does, or that it spans several."""
    rows = rows_by(pa.string(), [f"key {i}" for i in range(40)])
    for function in FUNCTIONS:
        buckets = BucketSpec(4, ("key",), function)
        try:
            table = lake.create(rows.schema, f"db.{function}", buckets=buckets)
        except FeatureNotSupported:
            if lake.declares(Feature.BUCKETING):
                continue
            raise
        start = table.latest
        table.publish_arrow([rows], token(0))
        plan = _appended(table, start, table.latest)
        assigner = assigner_for(table.info.descriptor)
        for split in plan.splits:
            parts = read_split(table.source, split, plan.schema)
            found = {bucket for part in parts for bucket in assigner.assign(part).to_pylist()}
            spans = split.bucket == -1 and len(found) > 1
            assert found <= {split.bucket} or spans, (
                f"the bucket that a split of changes tells is that of its rows: expected {found}, found {split.bucket}"
            )
        expect(_rows(table.source, plan), pa.Table.from_batches([rows]), "rows that were appended to buckets")


@pytest.mark.needs(Feature.INCREMENTAL_READ)
def test_appended_rows_without_a_layout(table: Table) -> None:
    start = table.latest
    table.append(0)
    for split in _appended(table, start, table.latest).splits:
        expect(split.bucket, -1, "the bucket of a split of changes, where the table has none")
        expect(split.partition, (), "the partition of a split of changes, where the table has none")


def _parted(lake: Lake, rows: pa.RecordBatch, name: str) -> Table | None:
    """None where the format takes no partitions of that type."""
    try:
        return lake.create(rows.schema, "db.laid_out", partition_by=(PartitionField("key"),))
    except UnsupportedType:
        if name not in REFUSABLE:
            raise
        return None


def _told(table: Table, start: int, end: int, rows: pa.RecordBatch, name: str, plan_of: Plan) -> pa.Table:
    """These rows came, or went, in this range."""
    plan, source = plan_of(table, start, end), table.source
    found = _rows(source, plan)
    expect(found.select(rows.schema.names), pa.Table.from_batches([rows]), f"rows of a log of partitions by {name}")
    if name in SPELLED:
        spelled_as_they_are(source, plan)
    return found


def _rows(source: LakeSource, plan: ScanPlan) -> pa.Table:
    return read_plan(source, plan).sort_by("id")
