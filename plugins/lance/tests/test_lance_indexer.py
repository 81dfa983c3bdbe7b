"""What an index is planned, built and published of, and what stands in its way, one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError

from laketier.spi import (
    BuiltIndexPart,
    CommitError,
    ConfigError,
    Conflict,
    FeatureNotSupported,
    IndexKind,
    IndexMode,
    IndexPart,
    IndexPlan,
    IndexResources,
    IndexSpec,
    OutsideTable,
    Refused,
    RenameColumn,
    TableChanged,
    TableError,
    UnknownOutcome,
)
from laketier_lance import index_builder, index_info, index_merger, vector_model
from laketier_lance import indexer as module
from laketier_lance.index_builder import LanceIndexBuilder, built_part, new_segment
from laketier_lance.index_merger import LanceIndexMerger
from laketier_lance.index_results import BuiltSegment, BuiltSettings
from laketier_lance.indexer import LanceIndexer, _made
from laketier_lance.options import LanceOptions
from laketier_lance.vector_model import VectorModel

PLAIN = LanceOptions().storage_options()
IDS = IndexSpec("x", "id", IndexKind.BTREE)
NAMES = IndexSpec("w", "name", IndexKind.INVERTED, {"with_position": True})
NEAR = IndexSpec("v", "v", IndexKind.IVF_FLAT, {"num_partitions": 1})
MODEL = VectorModel("l2", 2, "float", b"\0" * 8)


@pytest.fixture
def three(table: Any) -> Any:
    """Three fragments of two rows each."""
    for epoch in range(3):
        table.append(epoch, epoch * 2, epoch * 2 + 1)
    return table


def indexer(table: Any) -> LanceIndexer:
    found = table.storage.indexer(table.info)
    assert isinstance(found, LanceIndexer)
    return found


def built(
    table: Any, spec: IndexSpec = IDS, parts: int = 3, mode: IndexMode = IndexMode.CREATE
) -> tuple[IndexPlan, list[BuiltIndexPart]]:
    plan = indexer(table).plan(spec, parts, mode)
    builder = plan.builder.train()
    return replace(plan, builder=builder), [builder.build(part) for part in plan.parts]


def create(table: Any, spec: IndexSpec = IDS, parts: int = 3, mode: IndexMode = IndexMode.CREATE) -> Any:
    return indexer(table).publish(*built(table, spec, parts, mode))


def refused(table: Any, made: Any, why: str) -> None:
    version = table.open().version
    with pytest.raises(TableChanged, match="does not fit the table any more") as failure:
        indexer(table).publish(*made)
    assert why in str(failure.value.why)
    assert table.open().version == version


# -- plans -----------------------------------------------------------------------------------------------------------


def test_a_plan_is_of_the_version_that_it_saw(three: Any) -> None:
    for mode in (IndexMode.CREATE, IndexMode.REPLACE):
        plan = indexer(three).plan(IDS, 2, mode)
        assert (plan.mode, plan.snapshot_id, plan.spec, len(plan.parts)) == (mode, 4, IDS, 2)
        assert isinstance(plan.builder, LanceIndexBuilder)
        assert (plan.builder.plan_id, plan.builder.location, plan.builder.snapshot_id) == (
            plan.plan_id,
            three.location,
            4,
        )
        assert plan.builder.model is None
        assert [part.rows for part in plan.parts] == [4, 2]
    assert indexer(three).plan(IDS, 1).plan_id != indexer(three).plan(IDS, 1).plan_id
    info = create(three)
    nothing = indexer(three).plan(IDS, 2, IndexMode.APPEND)
    assert (nothing.parts, nothing.mode) == ((), IndexMode.APPEND)
    merge = indexer(three).plan(IDS, 2, IndexMode.MERGE)
    assert isinstance(merge.builder, LanceIndexMerger)
    assert [part.units for part in merge.parts] == [tuple(info.segments[:2])]
    assert (merge.mode, merge.builder.snapshot_id) == (IndexMode.MERGE, 5)


@pytest.mark.parametrize(
    ("spec", "parts", "mode", "error", "told"),
    [
        (IDS, 0, IndexMode.CREATE, ConfigError, "max_parts = 0 is less than 1"),
        (IDS, -1, IndexMode.APPEND, ConfigError, "max_parts = -1 is less than 1"),
        (
            IndexSpec("x", "id", IndexKind.IVF_RQ),
            1,
            IndexMode.CREATE,
            FeatureNotSupported,
            "one model and one rotation",
        ),
        (replace(IDS, options={"a": 1}), 1, IndexMode.CREATE, ConfigError, "has no option 'a'"),
        (replace(IDS, column="no"), 1, IndexMode.CREATE, ConfigError, "there is no column 'no'"),
        (replace(IDS, name=""), 1, IndexMode.CREATE, ConfigError, "name"),
        (replace(IDS, name=""), 1, IndexMode.REPLACE, ConfigError, "name"),
        (replace(IDS, name="y"), 1, IndexMode.APPEND, ConfigError, "there is no index 'y'"),
        (replace(IDS, name="y"), 1, IndexMode.MERGE, ConfigError, "there is no index 'y'"),
        (replace(IDS, name="y"), 1, IndexMode.CREATE, ConfigError, "has an index of kind btree already: 'x'"),
        (replace(IDS, name="y"), 1, IndexMode.REPLACE, ConfigError, "has an index of kind btree already: 'x'"),
        (IDS, 1, IndexMode.CREATE, ConfigError, "there is an index 'x' already"),
        (replace(IDS, kind=IndexKind.BITMAP), 1, IndexMode.APPEND, ConfigError, "built with other settings"),
        (replace(IDS, kind=IndexKind.BITMAP), 1, IndexMode.MERGE, ConfigError, "built with other settings"),
        (
            replace(NAMES, options={"base_tokenizer": "Simpel"}),
            1,
            IndexMode.CREATE,
            ConfigError,
            "refuses the settings",
        ),
        (
            replace(NAMES, options={"base_tokenizer": "Simpel"}),
            1,
            IndexMode.REPLACE,
            ConfigError,
            "refuses the settings",
        ),
    ],
    ids=str,
)
def test_what_is_not_planned(three: Any, spec: IndexSpec, parts: int, mode: IndexMode, error: Any, told: str) -> None:
    if told not in ("name", "one model and one rotation", "there is no column 'no'"):
        create(three)
    with pytest.raises(error, match=told):
        indexer(three).plan(spec, parts, mode)


def test_an_index_of_another_tool_may_have_any_name(three: Any) -> None:
    three.open().create_scalar_index("id", "BTREE", name="of theirs/é")
    theirs = replace(IDS, name="of theirs/é")
    assert create(three, theirs, 1, IndexMode.REPLACE).name == "of theirs/é"
    with pytest.raises(ConfigError):
        indexer(three).plan(replace(theirs, name="of ours/é"), 1)


def test_an_empty_table_is_not_indexed(table: Any) -> None:
    with pytest.raises(ConfigError, match="the table has no rows to index"):
        indexer(table).plan(IDS, 1)
    table.append(0, 1)
    table.open().delete("true")
    with pytest.raises(ConfigError, match="the table has no rows to index"):
        indexer(table).plan(IDS, 1, IndexMode.REPLACE)


def test_what_is_built_whole_is_not_added_to(three: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create(three)
    monkeypatch.setattr(module, "why_whole", lambda _: "it is whole")
    assert indexer(three).plan(IDS, 3, IndexMode.APPEND).parts == (), "there is nothing to add"
    assert indexer(three).plan(IDS, 3, IndexMode.MERGE).parts == ()
    assert len(indexer(three).plan(IDS, 3, IndexMode.REPLACE).parts) == 1
    three.append(3, 9)
    for mode, parts in ((IndexMode.APPEND, 3), (IndexMode.MERGE, 1)):
        with pytest.raises(FeatureNotSupported, match="adding to index 'x' of kind btree") as failure:
            indexer(three).plan(IDS, parts, mode)
        assert "it is whole" in str(failure.value)


def test_a_linked_folder_is_not_indexed(three: Any, tmp_path: Path) -> None:
    plan, parts = built(three)
    folder = Path(three.location, "_indices")
    folder.rename(tmp_path / "aside")
    folder.symlink_to(tmp_path / "aside")
    for attempt in (
        lambda: indexer(three).plan(IDS, 1),
        lambda: indexer(three).publish(plan, parts),
        lambda: indexer(three).indexes(),
        lambda: indexer(three).drop("x"),
        lambda: plan.builder.build(plan.parts[0]),
        lambda: plan.builder.warm_up(),
    ):
        with pytest.raises(OutsideTable):
            attempt()


# -- what came between -----------------------------------------------------------------------------------------------


def test_a_column_that_is_gone(three: Any) -> None:
    made = built(three, NAMES)
    three.foreign("drop")
    refused(three, made, "column 'name' is gone")


def test_a_column_that_was_renamed(three: Any) -> None:
    made = built(three)
    three.storage.catalog().alter_table(three.path, [RenameColumn("id", "number")])
    refused(three, made, "column 'id' is gone")


def test_fragments_that_are_others_now(three: Any) -> None:
    made = built(three)
    three.foreign("compaction")
    refused(three, made, "fragments [0, 1, 2] were compacted, rewritten or deleted since version 4")


def test_fragments_that_are_gone(three: Any) -> None:
    made = built(three)
    three.open().delete("id < 2")
    refused(three, made, "fragments [0] were compacted")


def test_another_index_of_the_name(three: Any) -> None:
    made = built(three)
    create(three, replace(NAMES, name="x"))
    refused(three, made, "there is an index 'x' already")


def test_another_index_of_the_column(three: Any) -> None:
    for mode in (IndexMode.CREATE, IndexMode.REPLACE):
        made = built(three, mode=mode)
        create(three, replace(IDS, name="y"))
        refused(three, made, "has an index of kind btree already: 'y'")
        indexer(three).drop("y")


def test_an_index_of_another_column_is_not_replaced(three: Any) -> None:
    made = built(three, mode=IndexMode.REPLACE)
    create(three, replace(NAMES, name="x"))
    refused(three, made, "index 'x' is of column name, not of id")


def test_an_index_that_covers_more_by_now_is_not_replaced(three: Any) -> None:
    create(three)
    made = built(three, parts=1, mode=IndexMode.REPLACE)
    three.append(3, 9)
    create(three, mode=IndexMode.APPEND)
    refused(three, made, "the index to replace covers fragments [3], too")
    three.open().delete("id = 9")
    assert indexer(three).publish(*made).rows_indexed == 6, "what is gone need not be covered"


def test_rows_that_another_build_added(three: Any) -> None:
    create(three)
    three.append(3, 9)
    made = built(three, mode=IndexMode.APPEND)
    create(three, mode=IndexMode.APPEND)
    refused(three, made, "the index covers fragments [3] already")


def test_rows_are_not_added_to_an_index_that_is_gone(three: Any) -> None:
    create(three)
    three.append(3, 9)
    made = built(three, mode=IndexMode.APPEND)
    indexer(three).drop("x")
    refused(three, made, "there is no index 'x'")


def test_rows_are_not_added_to_an_index_with_other_settings(three: Any) -> None:
    create(three, NAMES)
    three.append(3, 9)
    made = built(three, replace(NAMES, options={}), mode=IndexMode.APPEND)
    indexer(three).drop("w")
    three.append(4, 10)
    other = built(three, replace(NAMES, options={"with_position": False}))
    first = (replace(other[0], parts=other[0].parts[:1]), other[1][:1])
    indexer(three).publish(*first)
    refused(three, made, "index 'w' was built with other settings")
    indexer(three).drop("w")
    create(three, replace(IDS, name="w"))
    refused(three, made, "index 'w' is of column id, not of name")


def test_segments_that_are_gone_are_not_merged(three: Any) -> None:
    create(three)
    made = built(three, parts=1, mode=IndexMode.MERGE)
    create(three, mode=IndexMode.REPLACE)
    refused(three, made, "3 of the segments were merged, dropped or compacted since")
    indexer(three).drop("x")
    refused(three, made, "3 of the segments were merged, dropped or compacted since")
    create(three)
    made = built(three, parts=2, mode=IndexMode.MERGE)
    kept = indexer(three).publish(*made)
    assert (len(kept.segments), kept.rows_indexed) == (2, 6)
    assert indexer(three).publish(*made) == kept, "it has landed"


def test_a_build_that_landed_is_known_by_its_commit(three: Any) -> None:
    """Whatever others did to the index since."""
    made = built(three)
    indexer(three).publish(*made)
    create(three, mode=IndexMode.REPLACE)
    assert indexer(three).publish(*made).rows_indexed == 6
    indexer(three).drop("x")
    three.foreign("compaction")
    version = three.open().version
    with pytest.raises(TableChanged, match="index 'x' was dropped meanwhile"):
        indexer(three).publish(*made)
    assert three.open().version == version


def test_rows_are_not_added_to_an_index_with_more_settings(three: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create(three)
    three.append(3, 9)
    made = built(three, mode=IndexMode.APPEND)
    monkeypatch.setattr(module, "as_it_is", lambda *given: replace(given[2], options={"more": 1}))
    refused(three, made, "the index was replaced by one with other settings")


def test_where_commits_are_gone_nobody_knows(three: Any) -> None:
    made = built(three)
    three.foreign("compaction")
    three.open().cleanup_old_versions(timedelta(0))
    three.append(3, 9)
    three.open().cleanup_old_versions(timedelta(0))
    with pytest.raises(UnknownOutcome, match="cleaned up"):
        indexer(three).publish(*made)


@pytest.fixture
def vectors(make_table: Callable[..., Any]) -> Any:
    table = make_table(pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), 2))]))
    add_vectors(table, 1)
    return table


def add_vectors(table: Any, seed: int) -> None:
    flat = np.random.default_rng(seed).random(40).astype(np.float32)
    rows = pa.table([list(range(20)), pa.FixedSizeListArray.from_arrays(pa.array(flat), 2)], schema=table.schema)
    lance.write_dataset(rows, table.location, mode="append")


def test_vectors_are_added_with_the_model_of_the_index(vectors: Any) -> None:
    create(vectors, NEAR)
    add_vectors(vectors, 2)
    plan = indexer(vectors).plan(replace(NEAR, options={}), 1, IndexMode.APPEND)
    assert isinstance(plan.builder, LanceIndexBuilder)
    assert plan.builder.model is not None
    assert not plan.builder.needs_training
    assert plan.builder.train() is plan.builder
    made = (plan, [plan.builder.build(part) for part in plan.parts])
    add_vectors(vectors, 3)
    indexer(vectors).drop("v")
    again = built(vectors, NEAR)
    first = indexer(vectors).plan(NEAR, 3)
    assert len(first.parts) == 3
    only = replace(again[0], parts=again[0].parts[:1])
    indexer(vectors).publish(only, again[1][:1])
    refused(vectors, made, "the index was replaced by one with another model")


def test_segments_of_several_models_are_not_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    models = {"a": MODEL, "b": replace(MODEL, metric="dot"), "c": MODEL}
    monkeypatch.setattr(module, "model_of", lambda _, storage, segment: models[segment])
    ours = LanceIndexer("/t", LanceOptions())

    def found(kind: str, *segments: str) -> Any:
        return SimpleNamespace(name="x", index_type=kind, segments=[SimpleNamespace(uuid=each) for each in segments])

    assert ours._model(found("IVF_FLAT", "a", "c")) == MODEL
    assert ours._model(found("BTree", "nobody looks")) is None
    with pytest.raises(ConfigError, match="the segments of index 'x' have 2 models"):
        ours._model(found("IVF_FLAT", "a", "b", "c"))


# -- rows that a restore brings back ---------------------------------------------------------------------------------


def _part(deleted: dict[int, str], snapshot_id: int = 3) -> Any:
    told = BuiltSegment((0,), (), 1, ("k", b""), (), tuple(deleted.items()))
    return SimpleNamespace(payload=told.text(), snapshot_id=snapshot_id)


@pytest.mark.parametrize(
    ("now", "before", "restored", "back"),
    [
        ({}, [{}], 5, set()),
        ({1: "a"}, [{1: "a"}], 5, set()),
        ({1: "b"}, [{1: "a"}], None, set()),
        ({1: "b"}, [{1: "a"}], 5, {1}),
        ({}, [{1: "a"}, {2: "c"}], 5, {1, 2}),
        ({2: "c", 3: "d"}, [{1: "a"}, {2: "c"}], 5, {1}),
        ({}, [{1: "a"}], UnknownOutcome("gone"), {1}),
    ],
    ids=str,
)
def test_rows_that_may_be_there_again(
    monkeypatch: pytest.MonkeyPatch, now: Any, before: Any, restored: Any, back: Any
) -> None:
    asked: list[Any] = []

    def find(dataset: Any, is_it: Any, *, after: int) -> Any:
        asked.append(after)
        assert is_it(SimpleNamespace(operation=lance.LanceOperation.Restore(1)))
        assert not is_it(SimpleNamespace(operation=lance.LanceOperation.Append([])))
        if isinstance(restored, Exception):
            raise restored
        return restored

    monkeypatch.setattr(module, "deletions", lambda _: now)
    monkeypatch.setattr(module, "find_commit", find)
    parts = [_part(each, 3 + at) for at, each in enumerate(before)]
    assert LanceIndexer("/t", LanceOptions())._brought_back(None, parts) == back  # type: ignore[arg-type]
    assert asked in ([], [3])


def test_the_segments_that_a_commit_made() -> None:
    made = SimpleNamespace(
        operation=SimpleNamespace(new_indices=[SimpleNamespace(uuid="a"), SimpleNamespace(uuid="b")])
    )
    assert _made(made) == {"a", "b"}
    assert _made(SimpleNamespace(operation=lance.LanceOperation.Append([]))) == set()


# -- publishing ------------------------------------------------------------------------------------------------------


def test_a_commit_is_tried_again_and_not_for_ever(three: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, asked = built(three), []
    commit = lance.LanceDataset.commit_existing_index_segments

    def beaten(self: Any, *given: Any) -> Any:
        asked.append(given)
        if len(asked) < times:
            raise CommitConflictError("another commit came first")
        return commit(self, *given)

    monkeypatch.setattr(lance.LanceDataset, "commit_existing_index_segments", beaten)
    times = 1000
    with pytest.raises(Conflict, match="came first each time"):
        indexer(three).publish(*made)
    assert len(asked) == 20
    asked.clear()
    times = 20
    assert indexer(three).publish(*made).rows_indexed == 6
    assert len(asked) == 20
    assert asked[0][:2] == ("x", "id")


@pytest.mark.parametrize("error", [OSError("x"), ValueError("x"), RuntimeError("x"), KeyError("x")])
def test_a_commit_that_lance_refuses(three: Any, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: Any) -> Any:
        raise error

    made = built(three)
    kind = KeyError if isinstance(error, KeyError) else CommitError
    monkeypatch.setattr(lance.LanceDataset, "commit_existing_index_segments", fails)
    with pytest.raises(kind):
        indexer(three).publish(*made)
    monkeypatch.undo()
    create(three)
    monkeypatch.setattr(lance.LanceDataset, "drop_index", fails)
    with pytest.raises(kind):
        indexer(three).drop("x")


def test_an_index_is_on_the_device_before_it_is_told(three: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(module, "make_durable", lambda *given: told.append(given))
    monkeypatch.setattr(module, "forget_records", lambda *given: told.append(given))
    made = built(three)
    info = indexer(three).publish(*made)
    for _ in range(2):
        assert told == [(three.location, 5), (three.location, list(info.segments))]
        told.clear()
        assert indexer(three).publish(*made) == info
    told.clear()
    nothing = built(three, mode=IndexMode.APPEND)
    assert indexer(three).publish(*nothing) == info
    assert told == [(three.location, 5), (three.location, ())]
    told.clear()
    indexer(three).drop("x")
    assert told == [(three.location, 6)]
    with pytest.raises(ConfigError, match="there is no index 'x'"):
        indexer(three).drop("x")
    assert len(told) == 1


def test_indexes_are_listed_by_name_and_as_they_are(three: Any) -> None:
    for name, column in (("b", "id"), ("a", "name")):
        create(three, IndexSpec(name, column, IndexKind.BTREE), 2)
    three.append(3, 9)
    first, second = indexer(three).indexes()
    assert (first.name, second.name) == ("a", "b")
    assert (second.column, second.kind, dict(second.options)) == ("id", "btree", {})
    assert (second.rows_indexed, second.rows_not_indexed, second.rows_deleted, second.segment_rows) == (6, 1, 0, (4, 2))
    assert second.snapshot_id == three.open().version
    assert (second.bytes or 0) > 0
    assert second.damage is None
    assert abs((second.built_at or 0) / 1000 - time.time()) < 600


def test_a_version_that_is_cleaned_up_meanwhile_is_not_called_damaged(
    three: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(three)
    real, looked = module.index_info, []

    def damaged(dataset: Any, found: Any, rows: Any) -> Any:
        looked.append(int(dataset.version))
        if len(looked) == 1:
            three.append(3, 9)
        return replace(real(dataset, found, rows), damage="a file is missing" if len(looked) == 1 else None)

    monkeypatch.setattr(module, "index_info", damaged)
    (found,) = indexer(three).indexes()
    assert (looked, found.damage, found.rows_not_indexed) == ([5, 6], None, 1)
    monkeypatch.setattr(module, "index_info", lambda *given: replace(real(*given), damage="a file is missing"))
    (found,) = indexer(three).indexes()
    assert found.damage == "a file is missing"


def test_rows_that_an_index_of_text_counts_still(monkeypatch: pytest.MonkeyPatch) -> None:
    def dataset(answer: Any) -> Any:
        def stats(name: str) -> Any:
            if isinstance(answer, Exception):
                raise answer
            assert name == "x"
            return {"segments": answer}

        return SimpleNamespace(stats=SimpleNamespace(index_stats=stats), uri="/t")

    words = SimpleNamespace(name="x", index_type="Inverted")
    assert index_info._deleted(dataset([{"num_docs": 5}, {"num_docs": "2"}, {}]), words, 4) == 3
    assert index_info._deleted(dataset([{"num_docs": 2}]), words, 4) == 0
    assert index_info._deleted(dataset(KeyError()), SimpleNamespace(name="x", index_type="BTree"), 4) == 0
    for error, kind in ((OSError("x"), TableError), (KeyError("x"), KeyError)):
        with pytest.raises(kind):
            index_info._deleted(dataset(error), words, 4)


# -- building --------------------------------------------------------------------------------------------------------


def _builder(spec: IndexSpec = IDS, **more: Any) -> LanceIndexBuilder:
    return LanceIndexBuilder("plan", "/t", LanceOptions(), spec, 3, **more)


@pytest.fixture
def parts_of_two(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A dataset of two fragments, of which Lance builds whatever it is told."""
    told = SimpleNamespace(asked=[], error=None, model=MODEL, deleted={})

    def segment(dataset: Any, spec: Any, fragments: Any, resources: Any, model: Any) -> Any:
        told.asked.append((dataset, spec, fragments, resources, model))
        if told.error is not None:
            raise told.error
        return SimpleNamespace(uuid="s")

    monkeypatch.setattr(index_builder, "refuse_links", lambda location: told.asked.append(("links", location)))
    monkeypatch.setattr(index_builder, "open_dataset", lambda *given: given)
    monkeypatch.setattr(index_builder, "unit_rows", lambda *_: {"0@a": 2, "1@b": 3, "2@c": 4})
    monkeypatch.setattr(index_builder, "new_segment", segment)
    monkeypatch.setattr(index_builder, "model_of", lambda *_: told.model)
    monkeypatch.setattr(index_builder, "deletions", lambda _: told.deleted)
    monkeypatch.setattr(index_builder, "built_part", lambda *given: given)
    return told


def test_a_part_is_built_of_its_fragments(parts_of_two: SimpleNamespace) -> None:
    part, limits = IndexPart(1, ("0@a", "2@c"), 6), IndexResources(memory=32 * 1024**2)
    parts_of_two.deleted = {0: "a.arrow", 1: "b.arrow"}
    found: Any = _builder().within(limits).build(part)
    assert parts_of_two.asked == [("links", "/t"), (("/t", PLAIN, 3), IDS, [0, 2], limits, None)]
    plan, location, spec, version, of, segment, rows, deleted, model = found
    assert (plan, location, spec, version, of, segment.uuid, rows, deleted, model) == (
        *("plan", "/t", IDS, 3, part, "s", 6, {0: "a.arrow"}, None),
    )


def test_fragments_of_another_table_are_not_built(parts_of_two: SimpleNamespace) -> None:
    with pytest.raises(TableChanged, match="fragments of part 4 are not those of version 3"):
        _builder().build(IndexPart(4, ("0@a", "1@other"), 6))
    assert len(parts_of_two.asked) == 1


@pytest.mark.parametrize(
    "error", [OSError("x"), ValueError("x"), RuntimeError("x"), TypeError("x"), NotImplementedError("x"), KeyError("x")]
)
def test_a_part_that_lance_does_not_build(parts_of_two: SimpleNamespace, error: Exception) -> None:
    parts_of_two.error = error
    spec = replace(NAMES, options={"base_tokenizer": "jieba/default"})
    with pytest.raises(KeyError if type(error) is KeyError else TableError) as failure:
        _builder(spec).build(IndexPart(0, ("0@a",), 2))
    if type(error) is not KeyError:
        assert "could not build part 0 of index 'w'" in str(failure.value)
        assert "dictionary" in str(failure.value)


def test_a_part_is_built_with_the_model_that_it_was_given(parts_of_two: SimpleNamespace) -> None:
    part = IndexPart(0, ("0@a",), 2)
    with pytest.raises(Refused, match="index 'v' has no model yet"):
        _builder(NEAR).build(part)
    found: Any = _builder(NEAR, model=MODEL).build(part)
    assert found[-1] == MODEL
    parts_of_two.model = replace(MODEL, metric="dot")
    with pytest.raises(TableError, match="with another model than it was given"):
        _builder(NEAR, model=MODEL).build(part)
    assert _builder().train() == _builder()


def test_a_model_is_trained_on_the_version_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(index_builder, "open_dataset", lambda *given: given)
    monkeypatch.setattr(index_builder, "train", lambda *given, **more: asked.append((given, more)) or MODEL)
    for kind, codebook in ((IndexKind.IVF_FLAT, False), (IndexKind.IVF_PQ, True)):
        spec = replace(NEAR, kind=kind, options={"metric": "l2"})
        assert _builder(spec).train() == _builder(spec, model=MODEL)
        assert asked.pop() == ((("/t", PLAIN, 3), "v", {"metric": "l2"}), {"codebook": codebook})


class _Trains:
    """In the place of pylance's `IndicesBuilder`."""

    def __init__(self, centroids: Any, codebook: Any, error: Exception | None = None) -> None:
        self.centroids, self.codebook, self.error = centroids, codebook, error
        self.asked: list[Any] = []

    def __call__(self, *given: Any) -> Any:
        self.asked.append(given)
        return self

    def train_ivf(self, *given: Any, **more: Any) -> Any:
        self.asked.append((given, more))
        if self.error is not None:
            raise self.error
        return SimpleNamespace(centroids=self.centroids)

    def train_pq(self, ivf: Any, *given: Any, **more: Any) -> Any:
        assert ivf.centroids is self.centroids
        self.asked.append((given, more))
        return SimpleNamespace(codebook=self.codebook, num_subvectors=2)


def _vectors(*numbers: float, kind: pa.DataType | None = None) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers, kind or pa.float32()), 2)


@pytest.mark.parametrize(
    ("rows", "rate", "of_model", "of_codes"),
    [(1000, 256, 250, 62), (4000, 256, 256, 250), (7, 256, 2, 2), (10**6, 8, 8, 8), (12, 256, 3, 2)],
)
def test_a_model_is_trained_as_it_is_told(
    monkeypatch: pytest.MonkeyPatch, rows: int, rate: int, of_model: int, of_codes: int
) -> None:
    lance_trains = _Trains(_vectors(1, 2, 3, 4), _vectors(5, 6, 7, 8))
    monkeypatch.setattr("lance.indices.IndicesBuilder", lance_trains)
    dataset = SimpleNamespace(count_rows=lambda: rows, uri="/t")
    options = {"metric": "cosine", "num_partitions": 4, "sample_rate": rate, "max_iters": 9}
    plain = vector_model.train(dataset, "v", options, codebook=False)  # type: ignore[arg-type]
    assert lance_trains.asked == [
        (dataset, "v"),
        ((4,), {"distance_type": "cosine", "sample_rate": of_model, "max_iters": 9}),
    ]
    floats = np.array([1, 2, 3, 4], np.float32).tobytes()
    assert plain == VectorModel("cosine", 2, "float", floats)
    lance_trains.asked.clear()
    more = options | {"num_sub_vectors": 1, "num_bits": 4}
    coded = vector_model.train(dataset, "v", more, codebook=True)  # type: ignore[arg-type]
    assert lance_trains.asked[2] == ((1,), {"sample_rate": of_codes, "max_iters": 9, "num_bits": 4})
    assert coded == replace(plain, codebook=np.array([5, 6, 7, 8], np.float32).tobytes(), num_sub_vectors=2, num_bits=4)


def test_a_model_of_numbers_that_are_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset: Any = SimpleNamespace(count_rows=lambda: 100, uri="/t")
    options = {
        "metric": "l2",
        "num_partitions": 2,
        "sample_rate": 2,
        "max_iters": 9,
        "num_sub_vectors": 1,
        "num_bits": 4,
    }
    good, bad = _vectors(1, 2, 3, 4), _vectors(1, 2, float("nan"), 4)
    for centroids, codebook in ((bad, good), (good, bad), (_vectors(float("inf"), 2), good)):
        monkeypatch.setattr("lance.indices.IndicesBuilder", _Trains(centroids, codebook))
        with pytest.raises(TableError, match="has numbers that are none"):
            vector_model.train(dataset, "v", options, codebook=True)
    for error, kind in ((OSError("x"), TableError), (ValueError("x"), TableError), (KeyError("x"), KeyError)):
        monkeypatch.setattr("lance.indices.IndicesBuilder", _Trains(good, good, error))
        with pytest.raises(kind):
            vector_model.train(dataset, "v", options, codebook=False)


@pytest.mark.parametrize(
    ("kind", "name", "width"), [(pa.float16(), "halffloat", 2), (pa.float32(), "float", 4), (pa.float64(), "double", 8)]
)
def test_numbers_of_a_model_in_bytes_and_back(kind: pa.DataType, name: str, width: int) -> None:
    whole = _vectors(0, 0, 1, 2, 3, 4, 9, 9, kind=kind)
    told = vector_model._bytes(whole.slice(1, 2))
    assert len(told) == 4 * width
    assert vector_model._array(told, name, 2).equals(whole.slice(1, 2))
    assert VectorModel("l2", 2, name, told).num_partitions == 2


# -- what is on the device, and what is said of it -------------------------------------------------------------------


def _said(uuid: str = "s", kind: str = "k", details: bytes = b"\x08\x01") -> Any:
    files = [SimpleNamespace(path="a", size_bytes=3), SimpleNamespace(path="b", size_bytes=4)]
    return SimpleNamespace(
        uuid=uuid, fields=[0], fragment_ids={2, 0}, index_version=1, files=files, index_details=(kind, details)
    )


def test_a_segment_is_on_the_device_with_all_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []
    for name in ("fsync_file", "fsync_directory"):
        monkeypatch.setattr(
            index_builder, name, lambda path, name=name: told.append((name, str(Path(path).relative_to(tmp_path))))
        )
    index_builder._sync(str(tmp_path), "s", ["a", "b"])
    files = [("fsync_file", f"_indices/s/{name}") for name in "ab"]
    assert told == [*files, *(("fsync_directory", name) for name in ("_indices/s", "_indices", "."))]
    told.clear()
    index_builder._sync("s3://b/t.lance", "s", ["a"])
    assert told == []


def test_what_a_task_says_of_its_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    monkeypatch.setattr(index_builder, "_sync", lambda *given: done.append(("sync", given[0])))
    monkeypatch.setattr(index_builder, "write_record", lambda *given: done.append(("record", *given)))
    part = IndexPart(1, ("0@a", "2@b"), 5)
    found = built_part("plan", "/t", IDS, 3, part, _said(), 5, {2: "gone.arrow"})
    assert done == [("sync", "/t"), ("record", "/t", "x", found)]
    assert (found.plan_id, found.part, found.segment, found.snapshot_id, found.rows, found.size) == (
        "plan",
        part,
        "s",
        3,
        5,
        7,
    )
    assert BuiltSettings.read(found.settings) == BuiltSettings("btree", "id", {}, "", ("k", b"\x08\x01"))
    assert BuiltSegment.read(found.payload) == BuiltSegment(
        fields=(0,),
        fragments=(0, 2),
        index_version=1,
        details=("k", b"\x08\x01"),
        files=(("a", 3), ("b", 4)),
        deleted=((2, "gone.arrow"),),
    )
    hinted, plain = (
        BuiltSettings.read(built_part("plan", "/t", NEAR, 3, part, each, 5, {}, MODEL).settings)
        for each in (_said(details=bytes([74, 1, 5, 8, 1])), _said())
    )
    assert hinted == plain
    assert hinted.model == MODEL.digest
    assert BuiltSettings.read(built_part("plan", "/t", NEAR, 3, part, _said(), 5, {}).settings).model == ""


def test_a_segment_of_text_is_finished_by_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    class Dataset:
        def create_index_uncommitted(self, *given: Any, **more: Any) -> str:
            asked.append((given, more))
            return "raw"

        def merge_existing_index_segments(self, segments: Any) -> str:
            assert segments == ["raw"]
            return "finished"

    dataset: Any = Dataset()
    assert new_segment(dataset, IDS, (4, 5), IndexResources()) == "raw"
    assert asked.pop() == (("id", "BTREE"), {"name": "x", "replace": True, "fragment_ids": [4, 5]})
    assert new_segment(dataset, NAMES, (4,), IndexResources()) == "finished"
    assert asked.pop() == (
        ("name", "INVERTED"),
        {"name": "w", "replace": True, "fragment_ids": [4], "with_position": True},
    )


# -- merging ---------------------------------------------------------------------------------------------------------


class Merges:
    """A dataset with an index of segments ``a`` and ``b``."""

    def __init__(self, *sizes: int | None) -> None:
        self.asked: list[Any] = []
        segments = [
            SimpleNamespace(
                uuid=name, fragment_ids=[at], size_bytes=size, dataset_version_at_last_update=7 + at, index_version=at
            )
            for at, (name, size) in enumerate(zip("abc", sizes, strict=False))
        ]
        self.found = SimpleNamespace(name="x", fields=[3], type_url="k", segments=segments)
        self.error: Exception | None = None
        self.books = False

    def describe_indices(self) -> list[Any]:
        return [self.found, *([SimpleNamespace(name="__lance_frag_reuse", segments=[])] if self.books else [])]

    def merge_existing_index_segments(self, segments: Any) -> str:
        self.asked.append(segments)
        if self.error is not None:
            raise self.error
        return "merged"


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def make(spec: IndexSpec, *sizes: int | None, rows: Any = None, **limits: int) -> tuple[Any, Any]:
        dataset = Merges(*sizes)
        monkeypatch.setattr(LanceIndexMerger, "opened", lambda _: dataset)
        monkeypatch.setattr(index_merger, "fragment_rows", lambda _: {0: 5, 1: 6, 9: 7} if rows is None else rows)
        monkeypatch.setattr(index_merger, "deletions", lambda _: {0: "a.arrow", 9: "b.arrow"})
        monkeypatch.setattr(index_merger, "built_part", lambda *given: given)

        def anew(*given: Any) -> Any:
            dataset.asked.append(given)
            return "anew"

        monkeypatch.setattr(index_merger, "new_segment", anew)
        merger = LanceIndexMerger("plan", "/t", LanceOptions(), spec, 3, IndexResources(**limits))
        return dataset, merger

    return make


def test_segments_are_merged_of_their_files(merges: Callable[..., Any]) -> None:
    dataset, merger = merges(IDS, 10, 20)
    part = IndexPart(0, ("a", "b"), 11)
    assert merger.build(part) == ("plan", "/t", IDS, 3, part, "merged", 11, {})
    ((first, second),) = dataset.asked
    assert (first.uuid, first.name, first.fields, first.dataset_version, set(first.fragment_ids)) == (
        "a",
        "x",
        [3],
        7,
        {0},
    )
    assert (second.uuid, second.index_version, second.index_details, set(second.fragment_ids)) == (
        "b",
        1,
        ("k", b""),
        {1},
    )


@pytest.mark.parametrize(
    ("sizes", "memory", "of_files"),
    [((10, 20), 64 * 1024**2 + 90, True), ((10, 20), 64 * 1024**2 + 89, False), ((10, None), 10**9, False)],
)
def test_text_is_merged_of_its_files_where_they_fit(
    merges: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, sizes: Any, memory: int, of_files: bool
) -> None:
    dataset, merger = merges(replace(NAMES, name="x"), *sizes, memory=memory)
    monkeypatch.setattr(index_merger, "replace", lambda segment, **change: change)
    found = merger.build(IndexPart(0, ("a", "b"), 11))
    if of_files:
        assert found[5:] == ("merged", 11, {})
        return
    assert found[5:] == ({"fragment_ids": {0, 1}}, 11, {0: "a.arrow"})
    assert dataset.asked == [(dataset, merger.spec, {0: 5, 1: 6}, merger.resources, None)]


@pytest.mark.parametrize(("spec", "model"), [(IDS, None), (replace(NEAR, name="x"), MODEL)], ids=["numbers", "vectors"])
def test_what_a_compaction_moved_without_its_indexes_is_merged_of_its_rows(
    merges: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, spec: IndexSpec, model: Any
) -> None:
    dataset, merger = merges(spec, 10, 20)
    monkeypatch.setattr(index_merger, "replace", lambda segment, **change: change)
    monkeypatch.setattr(index_merger, "model_of", lambda *given: MODEL if given == ("/t", PLAIN, "a") else None)
    dataset.books = True
    found = merger.build(IndexPart(0, ("a", "b"), 11))
    assert found[5:] == ({"fragment_ids": {0, 1}}, 11, {0: "a.arrow"})
    assert dataset.asked == [(dataset, spec, {0: 5, 1: 6}, merger.resources, model)]


def test_segments_without_rows_are_merged_of_their_files(merges: Callable[..., Any]) -> None:
    _, merger = merges(replace(NAMES, name="x"), 10, None, rows={9: 7}, memory=1)
    assert merger.build(IndexPart(0, ("a", "b"), 0))[5:] == ("merged", 0, {})


@pytest.mark.parametrize("units", [("a", "gone"), ("gone",)])
def test_segments_of_another_table_are_not_merged(merges: Callable[..., Any], units: Any) -> None:
    dataset, merger = merges(IDS, 10, 20)
    with pytest.raises(TableChanged, match="segments of part 2 are not those of version 3"):
        merger.build(IndexPart(2, units, 0))
    dataset.found.name = "other"
    with pytest.raises(TableChanged):
        merger.build(IndexPart(2, ("a",), 0))
    assert dataset.asked == []


@pytest.mark.parametrize(
    "error", [OSError("x"), ValueError("x"), RuntimeError("x"), TypeError("x"), NotImplementedError("x"), KeyError("x")]
)
def test_segments_that_lance_does_not_merge(merges: Callable[..., Any], error: Exception) -> None:
    dataset, merger = merges(IDS, 10, 20)
    dataset.error = error
    with pytest.raises(KeyError if type(error) is KeyError else TableError, match=r"x|could not merge 2 segments"):
        merger.build(IndexPart(0, ("a", "b"), 11))
