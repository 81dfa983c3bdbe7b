"""Secondary indexes: built in parts, published whole or not at all."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from laketier.maintenance.orphans import collect_orphans, list_orphans
from laketier.spi import (
    BuiltIndexPart,
    ConfigError,
    Feature,
    FeatureNotSupported,
    IndexInfo,
    IndexKind,
    IndexMode,
    IndexPlan,
    IndexResources,
    IndexSpec,
    LakeIndexBuilder,
    LakeIndexer,
    LaketierError,
    Leaf,
    Op,
    Refused,
)
from laketier_conformance import apart
from laketier_conformance.documents import kind_of_numbers
from laketier_conformance.expect import expect, goes_well, is_final, refused, the_one
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, ids_of
from laketier_conformance.outside import local_folder

_OF_NUMBERS = (IndexKind.BTREE, IndexKind.BITMAP, IndexKind.ZONEMAP, IndexKind.BLOOMFILTER)


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
    for kind in _OF_NUMBERS:
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
def test_a_build_after_one_of_another_column_that_died(table: Table) -> None:
    """What that one had finished is of its column, though the index had the same name: nobody goes on from it."""
    table.append(0)
    table.append(1)
    plan, builder = _planned(table)
    indexer = _indexer(table)
    other = indexer.plan(replace(plan.spec, column="value"), 2)
    for part in other.parts:
        other.builder.build(part)  # and nobody published it
    told = "an index that was built after a build of another column under its name had died"
    with goes_well(told):
        found = indexer.resume(plan, 2)
        indexer.publish(found, [builder.build(part) for part in found.parts])
    info = the_one(_indexer(table).indexes(), "the indexes of the table")
    expect(info.column, "id", f"the column of {told}")
    _answers(table, told)


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


@pytest.mark.needs(Feature.INDEXING)
def test_what_does_not_fit_is_refused_before_a_task_runs(table: Table) -> None:
    """A task that finds out has cost a job. A refused plan leaves nothing behind."""
    indexer = _indexer(table)  # a format without it refuses here
    table.append(0)
    spec = IndexSpec("of_id", "id", kind_of_numbers(indexer, "id"))
    before = table.lake.files()
    for doing, odd, most, mode in (
        ("a column that is not there is indexed", replace(spec, column="nothing"), 1, IndexMode.CREATE),
        ("a value within a column is indexed", replace(spec, column="id.x"), 1, IndexMode.CREATE),
        ("an index is given an option that is none", replace(spec, options={"no such option": 1}), 1, IndexMode.CREATE),
        ("an index is built in no part", spec, 0, IndexMode.CREATE),
        ("the words of numbers are indexed", replace(spec, kind=IndexKind.INVERTED), 1, IndexMode.CREATE),
        ("numbers are indexed as vectors", replace(spec, kind=IndexKind.IVF_FLAT), 1, IndexMode.CREATE),
        ("an index is appended to that is not there", spec, 1, IndexMode.APPEND),
        ("an index is merged that is not there", spec, 1, IndexMode.MERGE),
    ):
        with refused((ConfigError, FeatureNotSupported), doing):
            indexer.plan(odd, most, mode)
    for kind in _OF_NUMBERS:
        told = f"an index of kind {kind.value} is to be built within a byte"
        with suppress(ConfigError, FeatureNotSupported), goes_well(told, but=(ConfigError,)):
            indexer.plan(replace(spec, kind=kind), 1).builder.within(IndexResources(memory=1))
    expect(table.lake.files() - before, set(), "files that refused plans left")
    _indexer(table).publish(*_built(table))
    for doing, odd in (
        ("an index is appended to as one of another column", replace(spec, column="value")),
        ("an index is appended to as one of words", replace(spec, kind=IndexKind.INVERTED)),
    ):
        with refused((ConfigError, FeatureNotSupported), doing):
            _indexer(table).plan(odd, 1, IndexMode.APPEND)
    expect(_covered(table), {"of_id": (5, 0)}, "rows in and not in an index after plans were refused")


@pytest.mark.needs(Feature.INDEXING)
@pytest.mark.parametrize("memory", [1, 64 << 20, 1 << 40], ids=["a-byte", "64-mib", "a-tib"])
def test_an_index_within_a_limit(table: Table, memory: int) -> None:
    """It is built as without one, or refused before a task runs: such a limit is too small, or there is none."""
    plan, builder = _planned_of(table, 2)
    try:
        bounded = builder.within(IndexResources(memory=memory))
    except (ConfigError, FeatureNotSupported):
        return
    if bounded.environment:
        return  # which a process has to start with
    bounded = pickle.loads(pickle.dumps(bounded))  # noqa: S301 - as an engine sends it to its tasks
    _indexer(table).publish(plan, [bounded.build(part) for part in plan.parts])
    _answers(table, f"an index that was built within {memory} bytes")


@pytest.mark.needs(Feature.INDEXING)
def test_a_build_after_one_whose_files_were_damaged(table: Table, unproven: Callable[[str, str], None]) -> None:
    """What a build left is used whole or not at all: a file that was cut, or has other bytes, is none of an index."""
    root = Path(table.lake.location)
    plan, builder = _planned_of(table, 2)
    before = table.lake.files()
    for part in plan.parts:
        builder.build(part)
    left = {name: apart.read(root / name) for name in sorted(table.lake.files() - before)}
    if not left:
        unproven("builds after one whose files were damaged", "a build leaves no files in a local folder")
        return
    of_each_name = {Path(name).name: name for name in left}.values()
    for name, (how, damaged) in itertools.product(of_each_name, _DAMAGE.items()):
        apart.write(root / name, damaged(left[name]))
        told = f"a build after one whose file {Path(name).name} {how}"
        with goes_well(told):
            anew, _ = _planned(table, IndexMode.REPLACE)
            found = _indexer(table).resume(anew, 2)
            _indexer(table).publish(found, [found.builder.build(part) for part in found.parts])
        _answers(table, told)
        apart.write(root / name, left[name])


_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "was cut": lambda data: data[: len(data) // 2],
    "has other bytes": lambda data: bytes(byte ^ 0x5A for byte in data),
}


@pytest.mark.needs(Feature.INDEXING, Feature.ORPHAN_COLLECTION)
def test_orphans_of_indexes(table: Table, harness: Harness) -> None:
    """A collection leaves each file that an index needs, and takes what a build left that nobody published. Who
    publishes that build afterwards is refused, or the index answers all the same."""
    plan, builder = _planned_of(table, 2)
    _indexer(table).publish(plan, [builder.build(part) for part in plan.parts])
    before = table.lake.files()
    late, parts = _built(table, IndexMode.REPLACE)
    staged = table.lake.files() - before
    _collected(table, "of a build that nobody published")
    expect(staged & table.lake.files(), set(), "files of a build that nobody published, after orphans were collected")
    try:
        _indexer(table).publish(late, parts)
    except LaketierError as error:
        is_final(error, "a build is published whose files were collected")
    _answers(table, "an index after a build was published whose files had been collected")
    _indexer(table).publish(*_built(table, IndexMode.REPLACE))
    _collected(table, "after an index was replaced")
    if harness.expire is not None:
        harness.expire(table.lake.storage, table.info)
        _collected(table, "after others expired the snapshots that had an index which is gone")


def _collected(table: Table, told: str) -> None:
    """The only index answers after orphans are collected, of which none is left. No listing of files shows an empty
    folder, which is an orphan, too."""
    table.lake.let_age()
    with goes_well(f"orphans are collected {told}"):
        collected = collect_orphans(table.lake.storage, table.info, grace=timedelta(0))
    _answers(table, f"an index, after orphans were collected {told}")
    expect(sorted(collected.removed), sorted(collected.orphans), f"the orphans that a collection removed {told}")
    table.lake.let_age()
    listed = list_orphans(table.lake.storage, table.info, grace=timedelta(0)).orphans
    left = [each.path for each in listed if each.kind != "record"]  # each watermark supersedes the one before
    expect(left, [], f"the orphans that are left when a collection is done {told}")
    folder = local_folder(table.info.location)
    empty = [] if folder is None else [path for path in folder.rglob("*") if path.is_dir() and not any(path.iterdir())]
    expect(sorted(map(str, empty)), [], f"the empty folders that are left when orphans were collected {told}")


def _planned_of(table: Table, epochs: int) -> tuple[IndexPlan, LakeIndexBuilder]:
    """A plan for a table that gets so many epochs first."""
    _indexer(table)  # a format without it refuses here
    for epoch in range(epochs):
        table.append(epoch)
    return _planned(table)


def _answers(table: Table, told: str) -> None:
    """The only index has each of the ten rows of two epochs, and filters through it find them."""
    whole = ids_of(0) + ids_of(1)
    expect(_covered(table), {"of_id": (len(whole), 0)}, f"{told}: the rows that it has, and has not")
    for leaf, expected in (
        (Leaf("id", Op.IN, tuple(whole)), whole),
        (Leaf("id", Op.EQ, whole[0]), whole[:1]),
        (Leaf("id", Op.GE, whole[-2]), whole[-2:]),
        (Leaf("id", Op.EQ, 77), []),
    ):
        with goes_well(f"{told}: rows are read where {leaf}"):
            found = sorted(table.read(columns=("id",), filters=(leaf,))["id"].to_pylist())
        expect(found, expected, f"{told}: the rows where {leaf}")
