"""A build goes on where the driver of an earlier one died: what that had finished is used, if it is what a task would
build now, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import lance
import numpy as np
import pyarrow as pa
import pytest

from laketier.kit import failpoints
from laketier.kit.failpoints import observed
from laketier.maintenance.index_builds import PART_BUILT, IndexProgress, build_here, build_index
from laketier.maintenance.orphans import collect_orphans
from laketier.spi import BuiltIndexPart, IndexKind, IndexMode, IndexPlan, IndexSpec, TableChanged, TableError
from laketier.spi.clocks import host_time
from laketier_lance.clock import storage_time
from laketier_lance.index_record import RECORD, records, taken_over
from laketier_lance.options import LanceOptions

DIMENSION = 8
ROWS = pa.schema(
    [
        ("id", pa.int64()),
        ("doc", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("v", pa.list_(pa.float32(), DIMENSION)),
    ]
)
WORDS = IndexSpec("x", "doc", IndexKind.INVERTED, {"with_position": True})
IDS = IndexSpec("x", "id", IndexKind.BTREE)
NEAR = IndexSpec("x", "v", IndexKind.IVF_FLAT, {"num_partitions": 4})
FRAGMENTS, EACH = 6, 60


def add(table, number: int) -> None:
    ids = range(number * EACH, number * EACH + EACH)
    flat = pa.array(np.random.default_rng(number).random(EACH * DIMENSION), pa.float32())
    columns = [
        list(ids),
        [f"paper {each} on lake{each % 7}" for each in ids],
        [[f"t{each % 9}"] for each in ids],
        pa.FixedSizeListArray.from_arrays(flat, DIMENSION),
    ]
    lance.write_dataset(pa.table(columns, schema=ROWS), table.location, mode="append")


@pytest.fixture
def papers(make_table):
    table = make_table(ROWS)
    for number in range(FRAGMENTS):
        add(table, number)
    return table


def indexer(table):
    return table.storage.indexer(table.info)


def left_behind(table, spec: IndexSpec, count: int = 2, parts: int = 3, mode=IndexMode.CREATE) -> list[BuiltIndexPart]:
    """A driver that died after so many parts."""
    plan = indexer(table).plan(spec, parts, mode)
    builder = plan.builder.train()
    return [builder.build(part) for part in plan.parts[:count]]


class Counted:
    """Builds, and knows what it built. ``trained``: how often a model was."""

    def __init__(self) -> None:
        self.units: list[tuple[str, ...]] = []
        self.told: list[IndexProgress] = []
        self.trained = 0

    def build(self, plan: IndexPlan) -> Iterator[BuiltIndexPart]:
        for each in build_here(plan):
            self.units.append(each.part.units)
            yield each

    def train(self, builder):
        self.trained += 1
        return builder.train()

    def index(self, table, spec: IndexSpec, parts: int = 3, mode=IndexMode.CREATE, **more):
        made = {"build": self.build, "train": self.train, "told": self.told.append, **more}
        return build_index(indexer(table), spec, mode, max_parts=parts, **made)


def record_files(table) -> list[Path]:
    return sorted(Path(table.location, "_indices").glob(f"*/{RECORD}"))


def ids(table, spec: IndexSpec) -> set[int]:
    """The rows that a query finds through the index."""
    dataset = table.open()
    asked: dict[IndexKind, dict[str, object]] = {
        IndexKind.INVERTED: {"full_text_query": "lake3", "columns": ["id", "_score"]},
        IndexKind.LABEL_LIST: {"filter": "array_has_any(tags, ['t3'])"},
        IndexKind.NGRAM: {"filter": "contains(doc, 'lake3')"},
        IndexKind.IVF_FLAT: {
            "nearest": {"column": "v", "q": np.full(DIMENSION, 0.5, np.float32), "k": 50, "nprobes": 4},
            "columns": ["id", "_distance"],
        },
    }
    return set(dataset.to_table(**asked.get(spec.kind, {"filter": "id > 20 AND id < 300"}))["id"].to_pylist())


@pytest.mark.parametrize(
    "spec",
    [
        WORDS,
        IDS,
        NEAR,
        IndexSpec("x", "id", IndexKind.BITMAP),
        IndexSpec("x", "id", IndexKind.ZONEMAP),
        IndexSpec("x", "id", IndexKind.BLOOMFILTER),
        IndexSpec("x", "tags", IndexKind.LABEL_LIST),
        IndexSpec("x", "doc", IndexKind.NGRAM),
    ],
    ids=lambda spec: spec.kind.value,
)
def test_what_is_missing_is_built_and_nothing_else(papers, spec: IndexSpec) -> None:
    expected = ids(papers, spec) if spec.kind is not IndexKind.INVERTED else {n for n in range(360) if n % 7 == 3}
    lost = left_behind(papers, spec)
    again = Counted()
    info = again.index(papers, spec)
    assert (len(again.units), again.trained) == (1, 0)
    assert set(again.units[0]).isdisjoint(unit for each in lost for unit in each.part.units)
    last = replace(again.told[-1], memory=(), taken=())
    assert last == IndexProgress("x", 1, 1, 120, 120, parts_kept=2, rows_kept=240)
    assert (len(info.segments), info.rows_indexed, info.rows_not_indexed) == (3, 360, 0)
    assert set(info.segments).isdisjoint(each.segment for each in lost), "a name that was never seen before"
    assert ids(papers, spec) == expected
    published = {path.parent.name for path in record_files(papers)} & set(info.segments)
    assert not published, "nobody builds on what is published"


def test_nothing_is_left_to_build(papers) -> None:
    """The driver died between the last part and the commit."""
    left_behind(papers, NEAR, 3)
    again = Counted()
    assert again.index(papers, NEAR).rows_indexed == 360
    assert (again.units, again.trained) == ([], 0)


def test_a_build_may_be_told_to_use_nothing(papers) -> None:
    left_behind(papers, NEAR)
    again = Counted()
    again.index(papers, NEAR, resume=False)
    assert (len(again.units), again.trained) == (3, 1)


@pytest.mark.parametrize(
    "other",
    [
        replace(WORDS, name="y"),
        replace(WORDS, options={"with_position": False}),
        replace(WORDS, options={}),
        replace(WORDS, options={"with_position": True, "base_tokenizer": "whitespace"}),
    ],
)
def test_parts_of_another_index_are_not_used(papers, other: IndexSpec) -> None:
    left_behind(papers, other)
    again = Counted()
    again.index(papers, WORDS)
    assert len(again.units) == 3


def test_parts_of_another_model_are_not_mixed(papers) -> None:
    """Two drivers died, and each had trained a model of its own: the one that got further counts."""
    left_behind(papers, NEAR, 1)
    far = left_behind(papers, NEAR, 2)
    again = Counted()
    info = again.index(papers, NEAR)
    assert (len(again.units), again.trained) == (1, 0)
    left = set(again.units[0])
    assert left.isdisjoint(unit for each in far for unit in each.part.units)
    assert info.rows_indexed == 360


@pytest.mark.parametrize("spec", [WORDS, NEAR], ids=["words", "vectors"])
def test_an_append_goes_on(papers, spec: IndexSpec) -> None:
    Counted().index(papers, spec)
    for number in range(FRAGMENTS, FRAGMENTS + 4):
        add(papers, number)
    plain = replace(spec, options={})
    left_behind(papers, plain, 1, 2, IndexMode.APPEND)
    again = Counted()
    info = again.index(papers, plain, 2, IndexMode.APPEND)
    assert (len(again.units), len(again.units[0]), info.rows_not_indexed) == (1, 2, 0)


def test_a_merge_goes_on(papers) -> None:
    Counted().index(papers, WORDS, 6)
    plain = replace(WORDS, options={})
    left_behind(papers, plain, 1, 2, IndexMode.MERGE)
    again = Counted()
    info = again.index(papers, plain, 2, IndexMode.MERGE)
    assert (len(again.units), len(info.segments), info.rows_indexed) == (1, 2, 360)
    assert ids(papers, WORDS) == {n for n in range(360) if n % 7 == 3}


def test_a_stream_went_on_meanwhile(papers) -> None:
    """Parts of unchanged fragments are used at a later snapshot, and those with rows deleted since are not."""
    left_behind(papers, IDS, 2)
    add(papers, FRAGMENTS)
    again = Counted()
    assert again.index(papers, IDS).rows_indexed == 420
    assert sorted(len(each) for each in again.units) == [3], "two that were left, and the new one"
    indexer(papers).drop("x")
    left_behind(papers, IDS, 3)
    papers.open().delete("id = 5")
    more = Counted()
    assert more.index(papers, IDS).rows_indexed == 419
    built = {unit.partition("@")[0] for each in more.units for unit in each}
    assert "0" in built
    assert len(built) < 7
    indexer(papers).drop("x")
    left_behind(papers, IDS, 3)
    papers.open().optimize.compact_files()
    last = Counted()
    assert last.index(papers, IDS).rows_indexed == 419
    assert {unit for each in last.units for unit in each} == {
        unit for part in indexer(papers).plan(IDS, 3, IndexMode.REPLACE).parts for unit in part.units
    }


def test_rows_that_a_restore_brings_back_are_found(papers) -> None:
    """A part lacks the rows that were deleted before it was built. A restore of an older version brings them back."""
    papers.open().delete("id = 5")
    plan = indexer(papers).plan(IDS, 3)
    built = [plan.builder.build(part) for part in plan.parts]
    dataset = papers.open()
    dataset.checkout_version(dataset.version - 1).restore()
    assert papers.open().count_rows() == 360
    with pytest.raises(TableChanged, match=r"deleted from fragments \[0\] may be there again"):
        indexer(papers).publish(plan, built)
    again = indexer(papers).replan(plan, built, 3)
    assert len(again.kept) == 2
    Counted().index(papers, IDS)
    assert papers.open().to_table(["id"], filter="id = 5").num_rows == 1
    assert "ScalarIndexQuery" in papers.open().scanner(filter="id = 5").explain_plan()


def test_what_was_changed_is_built_again(papers) -> None:
    """Bytes that were flipped, a file that is gone, records that lie or are torn, and links that lead outside."""
    outside = Path(papers.location).parent / "outside"
    outside.mkdir()
    (outside / "page_lookup.lance").write_bytes(b"not ours")

    def flipped(folder: Path) -> None:
        file = folder / "page_data.lance"
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)

    def linked(folder: Path) -> None:
        (folder / "page_lookup.lance").unlink()
        (folder / "page_lookup.lance").symlink_to(outside / "page_lookup.lance")

    def said(folder: Path, change) -> None:
        told = json.loads((folder / RECORD).read_text())
        change(told)
        (folder / RECORD).write_text(json.dumps(told))

    def leads_out(told) -> None:
        told["built"]["payload"] = json.dumps(
            json.loads(told["built"]["payload"]) | {"files": [["../../../outside/page_lookup.lance", 8]]}
        )
        told["digests"] = {"../../../outside/page_lookup.lance": told["digests"]["page_lookup.lance"]}

    harms = [
        flipped,
        linked,
        lambda folder: (folder / "page_lookup.lance").unlink(),
        lambda folder: (folder / RECORD).write_bytes((folder / RECORD).read_bytes()[:100]),
        lambda folder: (folder / RECORD).write_bytes(b"null"),
        lambda folder: said(folder, leads_out),
        lambda folder: said(folder, lambda told: told.update(lance="0.1")),
        lambda folder: said(folder, lambda told: told["built"].update(segment="../../data")),
        lambda folder: said(folder, lambda told: told["built"]["part"].update(rows=1)),
        lambda folder: said(folder, lambda told: told["built"].update(settings="{}")),
        lambda folder: said(folder, lambda told: told.update(deleted={"0": "_deletions/0-1-1.arrow"})),
    ]
    for number, harm in enumerate(harms):
        (lost,) = left_behind(papers, IDS, 1)
        harm(Path(papers.location, "_indices", lost.segment))
        again = Counted()
        info = again.index(papers, IDS)
        assert (len(again.units), info.rows_indexed) == (3, 360), f"harm {number}"
        assert ids(papers, IDS) == set(range(21, 300))
        indexer(papers).drop("x")
        shutil.rmtree(Path(papers.location, "_indices", lost.segment))
    assert (outside / "page_lookup.lance").read_bytes() == b"not ours"


def test_a_model_is_read_from_the_files_and_not_believed(papers) -> None:
    lost = left_behind(papers, NEAR, 2)
    other = left_behind(papers, replace(NEAR, name="other"), 2)
    for each, strange in zip(lost, other, strict=True):
        folder = Path(papers.location, "_indices", each.segment)
        theirs = Path(papers.location, "_indices", strange.segment)
        told, foreign = (json.loads((at / RECORD).read_text()) for at in (folder, theirs))
        told["built"]["payload"], told["digests"] = foreign["built"]["payload"], foreign["digests"]
        for file in foreign["digests"]:
            shutil.copyfile(theirs / file, folder / file)
        (folder / RECORD).write_text(json.dumps(told))
    again = Counted()
    again.index(papers, NEAR)
    assert (len(again.units), again.trained) == (3, 1)


def test_an_append_does_not_believe_a_model_either(papers) -> None:
    """A part of the index's own settings whose files are of another model."""
    (strange,) = left_behind(papers, replace(NEAR, name="other"), 1)
    Counted().index(papers, NEAR)
    for number in range(FRAGMENTS, FRAGMENTS + 2):
        add(papers, number)
    plain = replace(NEAR, options={})
    (lost,) = left_behind(papers, plain, 1, 2, IndexMode.APPEND)
    folder, theirs = (Path(papers.location, "_indices", each.segment) for each in (lost, strange))
    told, foreign = (json.loads((at / RECORD).read_text()) for at in (folder, theirs))
    files = json.loads(foreign["built"]["payload"])["files"]
    told["built"]["payload"] = json.dumps(json.loads(told["built"]["payload"]) | {"files": files})
    told["digests"] = foreign["digests"]
    for file in foreign["digests"]:
        shutil.copyfile(theirs / file, folder / file)
    (folder / RECORD).write_text(json.dumps(told))
    again = Counted()
    again.index(papers, plain, 2, IndexMode.APPEND)
    assert len(again.units) == 2


def later(table) -> None:
    """Waits until the clock of the file system has moved on."""
    # Names of files have the time of the host, which may be ahead of that of the file system by some milliseconds.
    now = max(storage_time(table.location, LanceOptions()), host_time())
    while storage_time(table.location, LanceOptions()) <= now:
        time.sleep(0.001)


def test_what_is_not_used_is_collected_with_its_record(papers) -> None:
    lost = left_behind(papers, IDS)
    with patch("laketier_lance.indexer.forget_records"):  # as if the publisher was killed before
        kept = Counted().index(papers, WORDS)
    later(papers)
    collect_orphans(papers.storage, papers.info, grace=timedelta(0))
    there = {path.name for path in Path(papers.location, "_indices").iterdir()}
    assert there == set(kept.segments)
    assert lost
    assert {path.parent.name for path in record_files(papers)} == there, "each goes with its segment"
    again = Counted()
    again.index(papers, WORDS, mode=IndexMode.REPLACE)
    assert len(again.units) == 3, "nobody builds on what is published"
    assert ids(papers, WORDS) == {n for n in range(360) if n % 7 == 3}


def test_parts_that_are_being_collected_are_used_whole_or_not_at_all(papers) -> None:
    """The collector has chosen what it deletes, and a build takes it over: only old names are deleted."""
    left_behind(papers, IDS)
    later(papers)
    again = Counted()
    done = []

    def meanwhile(point: str) -> None:
        if point == "orphans.selected" and not done:
            done.append(again.index(papers, IDS))

    with observed(meanwhile):
        collect_orphans(papers.storage, papers.info, grace=timedelta(0))
    (info,) = done
    assert len(again.units) == 1
    assert info.rows_indexed == 360
    assert all(any(Path(papers.location, "_indices", each).iterdir()) for each in info.segments)
    assert ids(papers, IDS) == set(range(21, 300))
    collect_orphans(papers.storage, papers.info, grace=timedelta(0))
    assert ids(papers, IDS) == set(range(21, 300))


def test_what_is_used_again_is_as_young_as_what_is_built(papers) -> None:
    """The grace period begins anew: a collector that comes before the publish leaves it alone."""
    for each in left_behind(papers, IDS):
        for file in Path(papers.location, "_indices", each.segment).iterdir():
            os.utime(file, (1_000_000_000, 1_000_000_000))
    plan = indexer(papers).resume(indexer(papers).plan(IDS, 3), 3)
    assert len(plan.kept) == 2
    before = (time.time_ns() // 1_000_000) - 3_600_000
    listed = [file.path for file in papers.storage.maintenance(papers.info).orphans(before)]
    assert not [path for path in listed if path.split("/")[1] in {each.segment for each in plan.kept}]


def test_two_drivers_take_over_the_same_parts(papers) -> None:
    """One of them publishes; the other is refused, and its files are no harm."""
    left_behind(papers, IDS)
    first, second = (indexer(papers).resume(indexer(papers).plan(IDS, 3), 3) for _ in range(2))
    assert {each.segment for each in first.kept}.isdisjoint(each.segment for each in second.kept)
    indexer(papers).publish(first, [first.builder.build(part) for part in first.parts])
    with pytest.raises(TableChanged, match="already"):
        indexer(papers).publish(second, [second.builder.build(part) for part in second.parts])
    later(papers)
    collect_orphans(papers.storage, papers.info, grace=timedelta(0))
    assert ids(papers, IDS) == set(range(21, 300))


def test_many_take_over_at_once(papers) -> None:
    left_behind(papers, IDS)
    (one, other) = records(papers.location)
    taken: list[BuiltIndexPart | None] = []
    threads = [
        threading.Thread(target=lambda each=each: taken.append(taken_over(papers.location, each)))
        for each in [one, other] * 8
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({each.segment for each in taken if each is not None}) == 16


def test_more_parts_than_are_wanted_are_not_used(papers) -> None:
    """The dead build was cut into six; this one may have two."""
    left_behind(papers, IDS, 5, 6)
    again = Counted()
    info = again.index(papers, IDS, 2)
    assert (len(info.segments), len(again.units), info.rows_indexed) == (2, 1, 360)


DRIVER = """
import sys
from laketier.maintenance.index_builds import build_here, build_in_processes, build_index
from laketier.spi import IndexKind, IndexMode, IndexSpec, LakeStorageConfig, TableError, TablePath
from laketier_lance.plugin import LancePlugin

storage = LancePlugin().create_storage(LakeStorageConfig(sys.argv[1], None))
indexer = storage.indexer(storage.catalog().load_table(TablePath("db", "t")))
kind, column, options = (IndexKind.IVF_FLAT, "v", {"num_partitions": 4}) if sys.argv[2] == "near" else (
    IndexKind.INVERTED, "doc", {"with_position": True})
build = build_in_processes(2) if sys.argv[3] == "processes" else build_here
build_index(indexer, IndexSpec("x", column, kind, options), IndexMode.REPLACE, max_parts=3, build=build)
"""


@pytest.mark.parametrize("what", ["words", "near"])
@pytest.mark.parametrize("point", [f"{PART_BUILT}=kill@2", "index.before_commit=kill"])
def test_after_a_kill_only_what_is_missing_is_built(papers, what: str, point: str) -> None:
    spec = NEAR if what == "near" else WORDS
    environment = {**os.environ, failpoints.VARIABLE: point}
    driver = [sys.executable, "-c", DRIVER, str(papers.warehouse), what, "here"]
    assert subprocess.run(driver, env=environment, check=False).returncode == -signal.SIGKILL
    assert indexer(papers).indexes() == []
    again = Counted()
    info = again.index(papers, spec, mode=IndexMode.REPLACE)
    assert (len(again.units), again.trained) == (1 if PART_BUILT in point else 0, 0)
    assert (len(info.segments), info.rows_indexed, info.rows_not_indexed) == (3, 360, 0)
    fresh = ids(papers, spec)
    again.index(papers, spec, mode=IndexMode.REPLACE, resume=False)
    assert ids(papers, spec) == fresh


def test_a_driver_that_dies_while_it_takes_over(papers) -> None:
    """Its links are orphans, or are used in their turn."""
    left_behind(papers, IDS)
    (first, _) = records(papers.location)
    assert taken_over(papers.location, first) is not None
    half = Path(papers.location, "_indices", "00000000-0000-0000-0000-000000000000")
    half.mkdir()
    os.link(record_files(papers)[0].parent / "page_data.lance", half / "page_data.lance")
    again = Counted()
    assert again.index(papers, IDS).rows_indexed == 360
    assert len(again.units) == 1
    later(papers)
    collect_orphans(papers.storage, papers.info, grace=timedelta(0))
    assert not half.exists()
    assert ids(papers, IDS) == set(range(21, 300))


def test_a_part_that_fails_leaves_no_record(papers, monkeypatch) -> None:
    monkeypatch.setenv("LANCE_LANGUAGE_MODEL_HOME", "/nowhere")
    with pytest.raises(TableError):
        left_behind(
            papers, IndexSpec("x", papers.schema.names[1], IndexKind.INVERTED, {"base_tokenizer": "jieba/default"})
        )
    assert record_files(papers) == []
