"""Secondary indexes: built in parts, published whole or not at all."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from laketier.spi import (
    BuiltIndexPart,
    ConfigError,
    Feature,
    FeatureNotSupported,
    IndexInfo,
    IndexKind,
    IndexMode,
    IndexPlan,
    IndexSpec,
    LakeIndexBuilder,
    LakeIndexer,
    LaketierError,
    Refused,
)
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import Lake, Table, ids_of


def _built(
    table: Table, mode: IndexMode = IndexMode.CREATE, most: int = 2, column: str = "id"
) -> tuple[IndexPlan, list[BuiltIndexPart]]:
    """An index of a column, of the first kind that the format builds."""
    plan, builder = _planned(table, mode, most, column)
    return plan, [builder.build(part) for part in plan.parts]


def _planned(
    table: Table, mode: IndexMode = IndexMode.CREATE, most: int = 2, column: str = "id"
) -> tuple[IndexPlan, LakeIndexBuilder]:
    indexer = _indexer(table)  # outside of `try`: a format that has no indexer says so here
    for kind in (IndexKind.BTREE, IndexKind.BITMAP, IndexKind.ZONEMAP, IndexKind.BLOOMFILTER):
        try:
            plan = indexer.plan(IndexSpec(f"of_{column}", column, kind), most, mode)
        except FeatureNotSupported:
            continue
        return plan, pickle.loads(pickle.dumps(plan.builder))  # noqa: S301 - as an engine sends it to its tasks
    pytest.fail("the format builds indexes: of integers and texts it builds btree, bitmap, zonemap or bloomfilter")


def _indexer(table: Table) -> LakeIndexer:
    return table.lake.storage.indexer(table.info)


@pytest.mark.needs(Feature.INDEXING)
def test_indexing(lake: Lake, table: Table) -> None:
    """Parts together cover the rows, rounds keep the index, and a second publish changes nothing."""
    assert isinstance(lake.storage.indexer(table.info), LakeIndexer), "the storage's indexer is a LakeIndexer"
    table.append(0)
    table.append(1)
    plan, built = _built(table)
    expect(sum(part.rows for part in plan.parts), 10, "rows of all parts of a plan")
    expect(_indexer(table).indexes(), [], "indexes before any was published")
    table.append(2)
    info = _indexer(table).publish(plan, built)
    covered = (info.rows_indexed, info.rows_not_indexed)
    expect(covered, (10, 5), "rows in and not in an index that was built while a round came in between")
    again = _indexer(table).publish(plan, built)
    expect(again, info, "the index, after it was published again with the same parts")
    table.append(3)
    kept = [(each.name, each.rows_indexed, each.rows_not_indexed) for each in _indexer(table).indexes()]
    expect(kept, [("of_id", 10, 10)], "the indexes after another round")
    expect(
        sorted(table.ids), sorted(row for epoch in range(4) for row in ids_of(epoch)), "rows of a table with an index"
    )
    more = _indexer(table).publish(*_built(table, IndexMode.APPEND))
    expect((more.rows_indexed, more.rows_not_indexed), (20, 0), "rows in and not in an index that was appended to")
    _merge(table, more)
    with refused(ConfigError, "an index was created under a name that is taken"):
        _built(table)
    _indexer(table).drop("of_id")
    expect(_indexer(table).indexes(), [], "indexes after the only one was dropped")


@pytest.mark.needs(Feature.INDEXING)
def test_an_index_beside_another(table: Table) -> None:
    """Each has rows, and an end, of its own."""
    table.append(0)
    _indexer(table).publish(*_built(table))
    table.append(1)
    _indexer(table).publish(*_built(table, column="name"))
    expect(_covered(table), {"of_id": (5, 5), "of_name": (10, 0)}, "rows in and not in each of two indexes")
    _indexer(table).drop("of_id")
    expect(_covered(table), {"of_name": (10, 0)}, "rows in and not in the indexes, after one of two was dropped")
    expect(sorted(table.ids), sorted(ids_of(0) + ids_of(1)), "rows of a table one of whose indexes was dropped")


def _covered(table: Table) -> dict[str, tuple[int, int]]:
    return {each.name: (each.rows_indexed, each.rows_not_indexed) for each in _indexer(table).indexes()}


def _merge(table: Table, info: IndexInfo) -> None:
    """All segments into one, where the format can."""
    try:
        plan, built = _built(table, IndexMode.MERGE, most=1)
    except FeatureNotSupported:
        return
    expect(sorted(unit for part in plan.parts for unit in part.units), sorted(info.segments), "segments to be merged")
    merged = _indexer(table).publish(plan, built)
    found = (len(merged.segments), merged.rows_indexed, merged.rows_not_indexed, dict(merged.options))
    expect(found, (1, info.rows_indexed, 0, dict(info.options)), "segments, rows and options of a merged index")


@pytest.mark.needs(Feature.INDEXING)
def test_a_build_after_one_that_died(table: Table) -> None:
    """What a build had finished may be used by the next one, and then it is as good as built now."""
    table.append(0)
    table.append(1)
    _built(table)  # all of it, and nobody published it
    indexer = _indexer(table)
    plan, _ = _planned(table)
    found = indexer.resume(plan, 2)
    covered = sum(part.rows for part in found.parts) + sum(each.rows for each in found.kept)
    expect(covered, 10, "rows that a plan which goes on builds and keeps")
    table.append(2)
    left, wanted = (sorted(unit for part in parts for unit in part.units) for parts in (found.parts, plan.parts))
    kept = sorted(unit for each in found.kept for unit in each.part.units)
    expect(sorted([*left, *kept]), wanted, "units that a plan which goes on builds and keeps")
    info = indexer.publish(found, [found.builder.build(part) for part in found.parts])
    expect((info.rows_indexed, info.rows_not_indexed), (10, 5), "rows in and not in an index whose build went on")
    anew, _ = _planned(table, IndexMode.REPLACE)
    again = indexer.resume(anew, 2)
    expect(bool({each.segment for each in again.kept} & set(info.segments)), False, "parts used that are published")
    both = indexer.publish(again, [again.builder.build(part) for part in again.parts])
    expect((both.rows_indexed, both.rows_not_indexed), (15, 0), "rows in and not in an index that was replaced")


@pytest.mark.needs(Feature.INDEXING)
def test_parts_that_are_not_whole(table: Table) -> None:
    """Nothing is published."""
    table.append(0)
    table.append(1)
    plan, built = _built(table)
    again = plan.builder.build(plan.parts[0])
    for what, wrong in {
        "a part is missing": built[1:],
        "a part was built twice": [*built, again],
        "a part is of another plan": [replace(built[0], plan_id="another"), *built[1:]],
        "a part has other settings": [*built[1:], replace(built[0], settings="others")],
        "a part is of another snapshot": [replace(each, snapshot_id=each.snapshot_id - 1) for each in built],
        "a part has other rows": [replace(built[0], rows=1), *built[1:]],
    }.items():
        try:
            _indexer(table).publish(plan, wrong)
        except Refused:
            pass
        except LaketierError as error:
            pytest.fail(f"a publish is Refused where {what}: found {error!r}")
        else:
            if len(plan.parts) > 1 or what != "a part has other settings":
                pytest.fail(f"a publish is refused where {what}: it was not")
        expect(_indexer(table).indexes(), [], f"indexes after a publish where {what}")
