"""What a builder meets: a table that was made anew, a snapshot that expired, parts of a build that died, limits."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from laketier.spi import (
    CommitError,
    ConfigError,
    Conflict,
    Feature,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexPlan,
    IndexResources,
    IndexSpec,
    LaketierError,
    Match,
    TableChanged,
    TableNotFound,
)
from laketier_conformance import apart, foreign
from laketier_conformance.documents import INDEX, QUERIES, Documents
from laketier_conformance.expect import expect, goes_well, is_final, refused, the_one, told
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake
from laketier_conformance.points import Pointed

WORDED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING)
VECTORED = pytest.mark.needs(Feature.SEARCH, Feature.INDEXING, Feature.VECTORS)
Unproven = Callable[[str, str], None]


@pytest.fixture
def texts(lake: Lake, harness: Harness) -> Documents:
    """A table of 80 rows in four files, without an index. Of a format that builds none, it is empty."""
    texts = Documents.of(lake, harness)
    return texts.filled(rows=20) if lake.declares(Feature.INDEXING) else texts


def _finds_its_words(texts: Documents, about: str) -> None:
    """All rows that match and no other; and the index knows each row once."""
    for query in (*QUERIES["any"][:3], *QUERIES["all"]):
        with goes_well(f"{about}: {query} is asked"):
            found = sorted(texts.found(query))
        expect(found, texts.expected(query), f"{about}: the rows that {query} finds")
    for info in texts.indexer.indexes():
        known = info.rows_indexed - info.rows_deleted + info.rows_not_indexed
        expect(known, len(texts.ids), f"{about}: the rows that an index has, and has not")


def _built_or_refused(texts: Documents, plan: IndexPlan, about: str) -> None:
    """All errors on the way are laketier's. Then nothing is published, or what is answers right."""
    builder = pickle.loads(pickle.dumps(plan.builder))  # noqa: S301 - as an engine sends it to its tasks
    try:
        builder.warm_up()
        builder = builder.train()
        texts.indexer.publish(plan, [builder.build(part) for part in plan.parts])
    except ConfigError as error:  # of a task nobody can ask for something else
        raise AssertionError(f"{about}: expected an error of a task's, found {told(error)}") from error
    except LaketierError as error:
        is_final(error, about)
        return
    except Exception as error:
        raise AssertionError(f"{about}: expected an error of laketier's, found {told(error)}") from error
    _finds_its_words(texts, about)


@pytest.mark.needs(Feature.SEARCH, Feature.INDEXING, Feature.DROP_TABLE)
@pytest.mark.parametrize("mode", [IndexMode.CREATE, IndexMode.MERGE])
@pytest.mark.parametrize("anew", [True, False], ids=["made-anew", "gone"])
def test_a_table_that_was_dropped_since_the_plan(
    texts: Documents, mode: IndexMode, anew: bool, harness: Harness
) -> None:
    """A task that comes late builds nothing of another table's rows that is published."""
    texts.indexer  # noqa: B018 - a format without it refuses here
    if mode is IndexMode.MERGE:
        texts.index(4)
    try:
        plan = texts.indexer.plan(texts.spec if mode is IndexMode.CREATE else replace(texts.spec, options={}), 1, mode)
    except FeatureNotSupported:
        return
    texts.table.lake.storage.catalog().drop_table(texts.table.path)
    about = f"a task ({mode.value}) builds after its table was dropped"
    if not anew:
        with refused((LaketierError, CommitError), about):
            plan.builder.train().build(plan.parts[0])
        return
    texts = Documents.of(texts.table.lake, harness)
    for epoch in range(5):
        texts.append(epoch, range(2000 + 20 * epoch, 2020 + 20 * epoch))
    if mode is IndexMode.MERGE:
        texts.index(4)
    before = texts.indexer.indexes()
    _built_or_refused(texts, plan, f"{about} and made anew")
    expect(texts.indexer.indexes(), before, f"the indexes after {about} and made anew")


@WORDED
def test_a_snapshot_that_expired_since_the_plan(texts: Documents, harness: Harness, unproven: Unproven) -> None:
    """A task says so, or builds all the same."""
    if harness.expire is None:
        texts.indexer  # noqa: B018 - a format without it refuses here
        unproven("builds of snapshots that expired", "the format's harness has no expire")
        return
    plan = texts.indexer.plan(texts.spec, 2)
    texts.append(4, range(1000, 1020))
    harness.expire(texts.table.lake.storage, texts.table.info)
    _built_or_refused(texts, plan, "a task builds after its snapshot expired")
    texts.index(2, IndexMode.REPLACE)
    _finds_its_words(texts, "an index that was built after snapshots expired")


@WORDED
@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_a_build_goes_on_in_other_parts(texts: Documents, most: int) -> None:
    """Of those that died with all or some of four parts done, a plan uses what it has room for: it has no more parts
    than were asked for, each row is in one of them, and the index is as one that was built at once."""
    _, done = texts.built(4)
    texts.built(3)
    plan = texts.indexer.plan(texts.spec, most)
    with goes_well("a build goes on"):
        found = texts.indexer.resume(plan, most)
    about = f"a plan of {most} parts that goes on from one of {len(done)}"
    parts = [*(each.part for each in found.kept), *found.parts]
    expect(sum(part.rows for part in parts), 80, f"{about}: its rows")
    assert len(parts) <= most, f"{about} has {len(parts)}"
    with goes_well(f"{about} is published"):
        texts.indexer.publish(found, [found.builder.build(part) for part in found.parts])
    _finds_its_words(texts, about)


@WORDED
@pytest.mark.parametrize("meanwhile", ["deleted", "brought-back", "compacted", "other-settings", "other-name"])
def test_a_build_goes_on_after_a_change(texts: Documents, meanwhile: str, harness: Harness, unproven: Unproven) -> None:
    """What died is used where it is what a task would build now, and only there."""
    texts.indexer  # noqa: B018 - a format without it refuses here
    hooks = {"deleted": ("delete_rows",), "brought-back": ("delete_rows", "roll_back"), "compacted": ("compact",)}
    lacks = [each for each in hooks.get(meanwhile, ()) if getattr(harness, each) is None]
    if lacks:
        unproven(f"builds that go on after rows were {meanwhile}", f"the format's harness has no {lacks[0]}")
        return
    ids, before = list(texts.ids), texts.table.info.snapshot_id
    if meanwhile == "brought-back":
        texts.deleted(harness, range(0, 80, 5))
    texts.built(2, spec=replace(texts.spec, options={}) if meanwhile == "other-settings" else None)
    name = "another" if meanwhile == "other-name" else INDEX
    if meanwhile == "deleted":
        texts.deleted(harness, range(0, 80, 3))
    elif meanwhile == "compacted":
        foreign.compact(texts.table, harness)
    elif meanwhile == "brought-back":
        foreign.roll_back(texts.table, harness, before, ids)
        texts.ids[:] = ids
    spec = replace(texts.spec, name=name)
    found = texts.indexer.resume(texts.indexer.plan(spec, 2), 2)
    about = f"an index whose build went on, {meanwhile.replace('-', ' ')} meanwhile"
    with goes_well(about):
        texts.indexer.publish(found, [found.builder.build(part) for part in found.parts])
    info = the_one(texts.indexer.indexes(), "the indexes of the table")
    given = {key: value for key, value in texts.options.items() if key in info.options}
    expect({key: info.options[key] for key in given}, given, f"{about}: its settings")
    expect(info.name, name, f"{about}: its name")
    _finds_its_words(texts, about)


@WORDED
def test_a_merge_goes_on(texts: Documents) -> None:
    """After one that died with a part of it done: all that was to be merged is."""
    texts.index(4)
    merged = replace(texts.spec, options={})
    try:
        plan, _ = texts.built(2, IndexMode.MERGE, merged)
    except FeatureNotSupported:
        return
    found = texts.indexer.resume(texts.indexer.plan(merged, 2, IndexMode.MERGE), 2)
    about = "a merge that goes on"
    units = [unit for part in (*(each.part for each in found.kept), *found.parts) for unit in part.units]
    expect(sorted(units), sorted(unit for part in plan.parts for unit in part.units), f"{about}: what it merges")
    with goes_well(about):
        info = texts.indexer.publish(found, [found.builder.build(part) for part in found.parts])
    expect((len(info.segments), info.rows_indexed), (2, 80), f"{about}: its segments, and the rows in it")
    _finds_its_words(texts, about)


@WORDED
def test_settings_that_are_none(texts: Documents) -> None:
    """None is always allowed, and is as if it were not given."""
    told = []
    for mode, options in ((IndexMode.CREATE, {}), (IndexMode.REPLACE, dict.fromkeys(texts.options))):
        with goes_well(f"an index is built with the settings {options}"):
            told.append(dict(texts.index(2, mode, replace(texts.spec, options=options)).options))
    expect(told[1], told[0], "the settings that an index tells, which was given None for each")


@WORDED
@pytest.mark.parametrize("mode", [IndexMode.CREATE, IndexMode.APPEND])
def test_deleted_rows_that_are_brought_back_since_the_plan(
    texts: Documents, mode: IndexMode, harness: Harness, unproven: Unproven
) -> None:
    """What was built has not got them: it is refused, or they are found all the same. Whoever plans again has them."""
    texts.indexer  # noqa: B018 - a format without it refuses here
    lacks = [each for each in ("delete_rows", "roll_back") if getattr(harness, each) is None]
    if lacks:
        unproven("indexes of rows that are brought back", f"the format's harness has no {lacks[0]}")
        return
    if mode is IndexMode.APPEND:
        texts.index(2)
        texts.append(4, range(1000, 1020))
    ids, before = list(texts.ids), texts.table.info.snapshot_id
    texts.deleted(harness, [*range(0, 80, 5), *(range(1000, 1010) if mode is IndexMode.APPEND else ())])
    plan, built = texts.built(2, mode)
    foreign.roll_back(texts.table, harness, before, ids)
    texts.ids[:] = ids
    about = f"an index ({mode.value}) that was built while some rows were deleted"
    try:
        with goes_well(about, but=(TableChanged,)):
            texts.indexer.publish(plan, built)
    except TableChanged:
        again = texts.indexer.replan(plan, built, 2)
        with goes_well(f"{about}, and planned again"):
            texts.indexer.publish(again, [again.builder.build(part) for part in again.parts])
    _finds_its_words(texts, about)


@WORDED
def test_limits_of_a_build_of_words(texts: Documents) -> None:
    """What is too small, or contradicts itself, is refused before a task runs. Within others it is built as without."""
    plan = texts.indexer.plan(texts.spec, 2)
    expect(plan.builder.environment, {}, "the variables without which an unlimited build can't keep its limits")
    large = 1 << 40
    for resources in (
        IndexResources(partition_size=1),
        IndexResources(memory=1),
        IndexResources(memory=1 << 28, partition_size=large),
    ):
        with refused((ConfigError, FeatureNotSupported), f"words are indexed within {resources}"):
            plan.builder.within(resources)
    for resources in (IndexResources(partition_size=1 << 24), IndexResources(partition_size=1 << 24, memory=large)):
        try:
            bounded = plan.builder.within(resources)
        except (ConfigError, FeatureNotSupported):
            continue
        odd = {name: value for name, value in bounded.environment.items() if not name or not value}
        expect(odd, {}, "variables of a build that have no name, or no value")
        if not bounded.environment:
            texts.indexer.publish(plan, [bounded.build(part) for part in plan.parts])
            _finds_its_words(texts, f"an index that was built within {resources}")
            texts.indexer.drop(INDEX)


@VECTORED
def test_what_parts_share_is_trained_first(lake: Lake, harness: Harness) -> None:
    """Once, and it leaves nothing: a task without it builds no part that does not fit the others."""
    points = Pointed.of(lake, harness)
    before = lake.files()
    for kind in (IndexKind.IVF_FLAT, IndexKind.IVF_PQ, IndexKind.IVF_SQ, IndexKind.IVF_HNSW_FLAT):
        spec = IndexSpec("of_v", "v", kind, harness.vector_options.get(kind.value, {}))
        try:
            plan = points.texts.indexer.plan(spec, 2)
        except FeatureNotSupported:
            continue
        if plan.builder.needs_training:
            with refused(LaketierError, f"a part of kind {kind.value} is built before its builder was trained"):
                plan.builder.build(plan.parts[0])
        trained = plan.builder.train()
        expect(trained.needs_training, False, f"whether a builder of kind {kind.value} that was trained needs training")
        same = trained.train()
        expect(same == trained, True, f"whether a builder of kind {kind.value} that is trained again is the same")
        expect(lake.files() - before, set(), f"the files that the training for kind {kind.value} left")
    words = points.texts.indexer.plan(points.texts.spec, 2).builder
    expect((words.needs_training, words.train() == words), (False, True), "whether an index of words is not trained")
    points.texts.index(2)
    expect(sorted(points.texts.found(Match("kolt"))), points.texts.expected("kolt"), "the rows that 'kolt' finds")


@VECTORED
def test_an_append_to_damaged_vectors(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """What all segments share can't be read any more: the table is said to be damaged, and never that others came
    first; or all is well."""
    points = Pointed.of(lake, harness, rounds=2, rows=60)
    texts, kind = points.texts, IndexKind.IVF_FLAT
    before = lake.files()
    spec = IndexSpec("of_v", "v", kind, harness.vector_options.get(kind.value, {}))
    try:
        texts.index(1, spec=spec)
    except FeatureNotSupported:
        return
    root, left = Path(lake.location), sorted(lake.files() - before)
    if not left:
        unproven("appends to damaged indexes", "a build leaves no files in a local folder")
        return
    points.append(2, range(1000, 1060))
    files = apart.read_all([root / name for name in left])
    for path, content in files.items():
        for how, damaged in (("was cut", content[: len(content) // 2]), ("has other bytes", b"\xff" * len(content))):
            apart.write(path, damaged)
            about = f"an index is appended to whose file {path.name} {how}"
            try:
                plan = texts.indexer.plan(replace(spec, options={}), 1, IndexMode.APPEND)
                texts.indexer.publish(plan, [plan.builder.build(part) for part in plan.parts])
            except (Conflict, TableNotFound) as error:
                raise AssertionError(f"{about}: expected an error that tells of damage, found {told(error)}") from error
            except LaketierError:
                pass
            except Exception as error:
                raise AssertionError(f"{about}: expected an error of laketier's, found {told(error)}") from error
            apart.write(path, content)


@WORDED
def test_a_build_with_the_variables_that_it_needs(texts: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a limit needs variables of the process, a task that has them builds what others do; also what merges."""
    texts.indexer  # noqa: B018 - a format without it refuses here
    texts.index(2)
    texts.append(4, range(1000, 1020))
    merged = replace(texts.spec, options={})
    for mode, spec in ((IndexMode.APPEND, merged), (IndexMode.MERGE, merged), (IndexMode.REPLACE, texts.spec)):
        for memory in (100 << 20, 1 << 34):
            about = f"an index ({mode.value}) that was built within {memory >> 20} MiB"
            try:
                plan = texts.indexer.plan(spec, 1, mode)
                bounded = plan.builder.within(IndexResources(memory=memory))
            except (ConfigError, FeatureNotSupported):
                continue
            with monkeypatch.context() as changed, goes_well(about):
                for name, value in bounded.environment.items():
                    changed.setenv(name, value)
                texts.indexer.publish(plan, [bounded.build(part) for part in plan.parts])
            _finds_its_words(texts, about)
            if mode is IndexMode.MERGE:
                texts.index(2, IndexMode.REPLACE)
