"""Tables that other tools wrote: each is read, written and cleaned up as its own tool would have it, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Feature,
    FeatureNotSupported,
    OffsetsExpired,
    RowsChanged,
    TableNotFound,
    TablePath,
    WriteMode,
)
from laketier_conformance import foreign_rows
from laketier_conformance.expect import expect, refused
from laketier_conformance.foreign import collect, followed_by
from laketier_conformance.foreign_rows import Foreign, less, same
from laketier_conformance.foreign_tables import ADD_COLUMN, APPEND, CHANGES, LOAD, ORPHANS, OVERWRITE, READ
from laketier_conformance.harness import Harness, Warehouse
from laketier_conformance.lake import Lake, Table, ids_of, read_plan, token

NEW = "added_by_laketier"


@pytest.fixture
def foreign_tables(
    lake: Lake, harness: Harness, unproven: Callable[[str, str], None]
) -> Callable[[], Iterator[Foreign]]:
    """Makes one after the other, each beside those that were made before it."""

    def made() -> Iterator[Foreign]:
        tables = harness.foreign_tables
        if not tables:
            unproven("tables that other tools wrote", "the format's harness has no foreign_tables")
        for number, (name, make) in enumerate(tables.items()):
            path = TablePath("others", f"t{number}")
            yield Foreign(name, Table(lake, path), make(Warehouse(lake.location, lake.options), path))

    return made


def test_a_foreign_table_is_read_as_its_tool_reads_it(foreign_tables: Callable[[], Iterator[Foreign]]) -> None:
    """Whole, in some columns, by a filter on each column, and by its older snapshots."""
    for foreign in foreign_tables():
        table = foreign.table
        catalog = table.lake.storage.catalog()
        assert table.path in catalog.list_tables(), f"{foreign}: it is not listed among all tables"
        assert table.path in catalog.list_tables("others"), f"{foreign}: it is not listed in its database"
        if foreign.refuses(READ):
            requests: tuple[dict[str, Any], ...] = ({}, {"columns": ()}, {"limit": 1})
            for request in requests:
                with foreign.refused(f"it is read with {request}" if request else "it is read"):
                    table.read(**request)
            continue
        with foreign.well("it is read in each way"):
            foreign_rows.reads(foreign)
        foreign.keeps_snapshots("before any round", some=False)
        foreign.tells_its_history()


def test_rounds_on_a_foreign_table(foreign_tables: Callable[[], Iterator[Foreign]]) -> None:
    """Each epoch is there once, whatever the tool does between two of them."""
    for foreign in foreign_tables():
        if foreign.refuses(APPEND):
            rows = None if foreign.refuses(LOAD) else foreign.ours()
            with foreign.refused("a round is published"):
                foreign.round(0, rows if rows is not None else pa.table({}))
            continue
        published = foreign.ours()
        foreign.publishes(0, published, "on what its tool wrote")
        for kind in ("appends", "moves", "changes", "evolves"):
            step = getattr(foreign.told, kind)
            if step is None:
                continue
            after = f"after its tool did what the harness calls {kind}"
            step()
            if kind == "evolves":
                mark = foreign.table.watermark()
                expect(None if mark is None else mark.token, token(0), f"{foreign}: the watermark {after}")
            else:
                foreign.replays(0, published, after)
            foreign.is_read(after)
        foreign.publishes(1, foreign.ours(), "after its tool wrote more")


@pytest.mark.needs(Feature.INCREMENTAL_READ)
def test_a_foreign_table_as_a_log(table: Table, foreign_tables: Callable[[], Iterator[Foreign]]) -> None:
    """What its tool appended is told once, what it moved is not, and what it took away is refused."""
    table.append(0, ids_of(0))
    assert table.latest > 0, "a round is a version"
    for foreign in foreign_tables():
        if foreign.refuses(CHANGES):
            with foreign.refused("its changes are planned"):
                changes = foreign.table.changes
                bounds = changes.versions()
                changes.plan(bounds.earliest, bounds.latest)
            continue
        _logged(foreign)


def _planned(foreign: Foreign, start: int, end: int, doing: str, **how: bool) -> pa.Table:
    with foreign.well(f"changes are planned and read {doing}"):
        return read_plan(foreign.table.source, foreign.table.changes.plan(start, end, **how))


def _logged(foreign: Foreign) -> None:
    with foreign.well("its versions are told"):
        start = foreign.table.latest
    before, expected = foreign.told.rows(), []
    with suppress(RowsChanged):
        earliest = foreign.table.changes.versions().earliest
        plan = foreign.table.changes.plan(earliest, start)
        found = less(read_plan(foreign.table.source, plan), before.cast(plan.schema))
        expect(found, [], f"{foreign}: rows that its commits appended, and that it has not")
    with suppress(RowsChanged, OffsetsExpired):
        plan = foreign.table.changes.plan(0, start)
        missing = less(before.cast(plan.schema), read_plan(foreign.table.source, plan))
        expect(missing, [], f"{foreign}: rows that it has, and that a log of all its versions lacks")
    if not foreign.refuses(APPEND):
        expected.append(foreign.ours())
        foreign.round(0, expected[0])
        same(_planned(foreign, start, foreign.table.latest, "of a round of ours"), expected[0], f"{foreign}: a round")
    known = followed_by(foreign.table)  # a round of ours may store one
    if foreign.told.appends is not None:
        middle, before = foreign.table.latest, foreign.told.rows()
        foreign.told.appends()
        after = foreign.told.rows()
        appended = _planned(foreign, middle, foreign.table.latest, "of what its tool appended")
        expect(less(before, after), [], f"{foreign}: rows that are gone after the harness's appends")
        told = f"{foreign}: rows of the log, where its tool appended some"
        expect(less(appended, appended.slice(0, 0)), less(after, before.cast(after.schema)), told)
        both = _planned(foreign, start, foreign.table.latest, "of a round of ours, and what its tool appended")
        same(both, pa.concat_tables([*expected, appended]), f"{told} after a round of ours")
    if foreign.told.moves is not None:
        middle = foreign.table.latest
        foreign.told.moves()
        moved = _planned(foreign, middle, foreign.table.latest, "of what its tool moved")
        expect(moved.num_rows, 0, f"{foreign}: the number of rows of the log, where its tool only moved some")
    if foreign.told.changes is not None:
        middle = foreign.table.latest
        foreign.told.changes()
        with refused(RowsChanged, f"{foreign}: a range is planned in which its tool took rows away"):
            foreign.table.changes.plan(middle, foreign.table.latest)
        now = foreign.told.rows()
        left = _planned(foreign, middle, foreign.table.latest, "of what its tool took away", skip_changes=True)
        expect(less(left, now.cast(left.schema)), [], f"{foreign}: rows of a log that skips changes, and are not there")
    expect(followed_by(foreign.table), known, f"{foreign}: the identity by which a log knows it, after what was done")


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_maintenance_of_a_foreign_table(
    table: Table, lake: Lake, foreign_tables: Callable[[], Iterator[Foreign]]
) -> None:
    """Orphans of ours go, and whatever its tool needs stays. What it is dropped from is no table any more."""
    collect(table)
    for foreign in foreign_tables():
        if foreign.refuses(ORPHANS):
            with foreign.refused("its orphans are collected"):
                collect(foreign.table)
            continue
        if not foreign.refuses(APPEND):
            rows = foreign.ours()
            foreign.round(0, rows)
            foreign.table.stage_arrow(rows.to_batches())
        for kind in ("appends", "moves", "changes"):
            step = getattr(foreign.told, kind)
            if step is not None:
                step()
        rows = foreign.told.rows()
        with foreign.well("its orphans are collected"):
            collect(foreign.table)
        foreign.has([rows], "after orphans were collected")
        foreign.keeps_snapshots("after orphans were collected")
        with foreign.well("its old snapshots end"), suppress(FeatureNotSupported):
            lake.let_age()
            foreign.table.lake.storage.maintenance(foreign.table.info).expire(retention=0, keep=1, delete=True)
        foreign.has([rows], "after its old snapshots ended")
        with foreign.well("it is dropped"):
            lake.storage.catalog().drop_table(foreign.table.path)
        with refused(TableNotFound, f"{foreign}: it is loaded after it was dropped"):
            _ = foreign.table.info


@pytest.mark.needs(Feature.OVERWRITE)
def test_an_overwrite_of_a_foreign_table(table: Table, foreign_tables: Callable[[], Iterator[Foreign]]) -> None:
    """All rows of its tool are replaced, and its older snapshots have them still."""
    table.round(token(0), [ids_of(0)], WriteMode.OVERWRITE)
    for foreign in foreign_tables():
        if foreign.refuses(OVERWRITE):
            rows = None if foreign.refuses(LOAD) else foreign.ours()
            with foreign.refused("it is overwritten"):
                foreign.round(0, rows if rows is not None else pa.table({}), WriteMode.OVERWRITE)
            continue
        ours = foreign.ours().slice(0, 1)
        for epoch, doing in enumerate(("it is overwritten", "it is overwritten once more")):
            with foreign.well(doing):
                foreign.round(epoch, ours, WriteMode.OVERWRITE)
            foreign.has([ours], f"after {doing}")
            if epoch == 0 and foreign.told.appends is not None:
                foreign.told.appends()
                foreign.is_read("after an overwrite and what its tool appended")
        foreign.keeps_snapshots("after it was overwritten")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_a_column_is_added_to_a_foreign_table(table: Table, foreign_tables: Callable[[], Iterator[Foreign]]) -> None:
    """Rows of its tool have none of it, and a round of ours has."""
    column = AddColumn(pa.field(NEW, pa.int64()))
    table.lake.storage.catalog().alter_table(table.path, [column])
    for foreign in foreign_tables():
        catalog = foreign.table.lake.storage.catalog()
        if foreign.refuses(ADD_COLUMN):
            with foreign.refused("a column is added"):
                catalog.alter_table(foreign.table.path, [column])
            continue
        before = foreign.told.rows()
        with foreign.well("a column is added"):
            catalog.alter_table(foreign.table.path, [column])
        wider = before.append_column(pa.field(NEW, pa.int64()), pa.nulls(before.num_rows, pa.int64()))
        same(foreign.told.rows(), wider, f"{foreign}: rows that the tool reads after a column was added")
        foreign.is_read("after a column was added")
        if not foreign.refuses(APPEND):
            ours = foreign.ours()
            at = ours.schema.get_field_index(NEW)
            ours = ours.set_column(at, ours.schema.field(at), pa.array([7] * len(ours), pa.int64()))
            foreign.publishes(0, ours, "after a column was added")
