"""More rows than a counter, a batch, a row group or a file holds; and memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from laketier.spi import (
    And,
    Feature,
    Leaf,
    Not,
    Op,
    PartitionField,
    Predicate,
    ScanPlan,
    ScanRequest,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
)
from laketier_conformance.children import Child
from laketier_conformance.expect import expect
from laketier_conformance.lake import MOST_BATCHES, Lake, Opened, Table, finished, read_plan, read_split, token
from laketier_conformance.weigh import KEY, KEYS, LIMIT, MANY, MIB, TOTAL, in_batches
from laketier_conformance.weigh import ROWS as HEAVY
from laketier_conformance.weigh import SCHEMA as WIDE

ROWS = MANY
BATCH = 100_003
MOST = ROWS + MOST_BATCHES
"""Batches of a split: one for each row, and empty ones."""
IDS = pa.schema([pa.field("id", pa.int64(), nullable=False)])
TEXTS = IDS.append(pa.field("text", pa.string()))
LONG = "a" * 5_000
"""Longer than the bounds that writers of Parquet keep of a row group: the bounds of the others are not the file's."""


@dataclass(frozen=True)
class Million:
    """A table of one task's rows. Plans with the splits of the plain scan read the same rows, and that is done once."""

    table: Table
    result: WriteResult

    @cached_property
    def plain(self) -> tuple[ScanPlan, pa.Table]:
        source = self.table.source
        plan = source.plan(ScanRequest())
        return plan, read_plan(source, plan, MOST)

    def read(self, limit: int | None = None, filters: tuple[Predicate, ...] = ()) -> pa.Table:
        source = self.table.source
        plan = source.plan(ScanRequest(limit=limit, filters=filters))
        known, rows = self.plain
        same = (plan.splits, plan.schema) == (known.splits, known.schema)
        return finished(rows if same else read_plan(source, plan, MOST), plan, limit)


@pytest.fixture(scope="module")
def million(opened: Opened, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Million]:
    """One task of more than a million rows, which several tests read and none changes."""
    texts = pa.concat_arrays([pa.array([LONG]), pa.nulls(ROWS - 2, pa.string()), pa.array(["m"])])
    whole = pa.record_batch([pa.array(range(ROWS), pa.int64()), texts], schema=TEXTS)
    with opened(tmp_path_factory.mktemp("million")) as lake:
        table = lake.create(TEXTS)
        result = table.stage_arrow(whole.slice(start, BATCH) for start in range(0, ROWS, BATCH))
        table.commit([result], token(0))
        yield Million(table, result)


def _each_once(ids: pa.ChunkedArray, rows: int, what: str) -> None:
    found = (len(ids), pc.sum(ids).as_py(), pc.count_distinct(ids).as_py())
    expect(found, (rows, rows * (rows - 1) // 2, rows), f"{what} (rows, the sum of their ids, distinct ids)")


def test_more_than_a_million_rows_of_one_task(million: Million) -> None:
    table, result = million.table, million.result
    counted = (result.rows, sum(file.rows for file in result.files))
    expect(counted, (ROWS, ROWS), f"one task wrote {ROWS} rows, and its result and its files count them")
    mark = table.watermark()
    assert mark is not None, "the round that published them left no watermark"
    expect(mark.rows, ROWS, f"the watermark counts the {ROWS} rows of its commit")
    source = table.source
    plan, rows = million.plain
    _each_once(rows["id"], ROWS, f"one task wrote {ROWS} rows, and each is read once")
    told = [split.rows for split in plan.splits]
    assert None in told or sum(map(int, filter(None, told))) == ROWS, f"splits of {ROWS} rows say that they have {told}"
    nothing = source.plan(ScanRequest(columns=()))
    counts = [batch.num_rows for split in nothing.splits for batch in read_split(source, split, nothing.schema, MOST)]
    expect(sum(counts), ROWS, f"{ROWS} rows are counted without a column")


def test_an_abort_of_a_large_task(million: Million) -> None:
    """What is written into several files, as one would be too large, is deleted with all of them."""
    table = million.table
    before = table.lake.files()
    for completed in (False, True):
        writer = table.factory.create_writer(WriterInitContext(attempt=new_attempt_id()))
        for ids in in_batches(ROWS):
            writer.write(ids)
        if completed:
            writer.complete()
        writer.abort()
        done = "completed" if completed else "written"
        left = table.lake.files() - before
        expect(left, set(), f"files that are left of a task of {ROWS} rows that was aborted when it had {done} them")


EDGES = (0, 65_535, 65_536, 122_879, 122_880, 131_072, 524_288, 999_999, 1_000_000, 2**20 - 1, 2**20, ROWS - 1)
"""Where batches, row groups and files begin and end in formats and engines."""


@pytest.mark.parametrize(
    ("predicate", "ids"),
    [
        (Leaf("id", Op.IN, EDGES), EDGES),
        (Leaf("id", Op.EQ, 65_536), (65_536,)),  # of no last row group
        (Leaf("id", Op.GE, ROWS - 3), range(ROWS - 3, ROWS)),
        (And((Leaf("id", Op.GE, 2**20 - 2), Leaf("id", Op.LT, 2**20 + 2))), range(2**20 - 2, 2**20 + 2)),
        (Not(Leaf("id", Op.LT, ROWS - 1)), (ROWS - 1,)),
        (Leaf("text", Op.LT, "b"), (0,)),
        (Leaf("text", Op.GT, "b"), (ROWS - 1,)),
    ],
    ids=["in", "eq", "ge", "and", "not", "text-below", "text-above"],
)
def test_filters_at_the_edges_of_row_groups(million: Million, predicate: Predicate, ids: tuple[int, ...]) -> None:
    found = million.read(filters=(predicate,))["id"].to_pylist()
    expect(sorted(found), sorted(ids), f"{ROWS} rows are filtered by {predicate}")


@pytest.mark.parametrize("limit", [65_537, 2**20 + 1, ROWS + 1])
def test_a_limit_beyond_a_row_group(million: Million, limit: int) -> None:
    rows = million.read(limit)["id"]
    found = (len(rows), pc.count_distinct(rows).as_py())
    wanted = min(limit, ROWS)
    expect(found, (wanted, wanted), f"{limit} of {ROWS} rows are asked for (rows, distinct ids)")


@pytest.mark.needs(Feature.PARTITIONING)
def test_many_rows_in_several_files_of_one_task(lake: Lake) -> None:
    """Each batch has rows of each partition, so that files grow side by side."""
    rows = 300_000
    schema = pa.schema([IDS.field("id"), ("key", pa.string())])
    table = lake.create(schema, "db.parted", partition_by=(PartitionField("key"),))
    keys = pa.array(["a", "b", None] * (rows // 3))
    whole = pa.record_batch([pa.array(range(rows), pa.int64()), keys], schema=schema)
    result = table.stage_arrow(whole.slice(start, 40_001) for start in range(0, rows, 40_001))
    table.commit([result], token(0))
    per_file = sorted((dict(file.partition)["key"] or "", file.rows) for file in result.files)
    counts = {key: sum(n for each, n in per_file if each == key) for key in ("", "a", "b")}
    expect(counts, dict.fromkeys(("", "a", "b"), rows // 3), "the files of each partition count its rows")
    _each_once(table.read()["id"], rows, f"{rows} rows in three partitions are read once each")
    for key, first in (("a", 0), ("b", 1)):
        found = table.read(filters=(Leaf("key", Op.EQ, key),))["id"]
        expected = pa.chunked_array([pa.array(range(first, rows, 3), pa.int64())])
        same = found.combine_chunks().sort().equals(expected.combine_chunks())
        assert same, f"partition {key!r} should hold every third id from {first} on, and {len(found)} others were read"


Children = Callable[[int], list[Child]]


def test_memory_of_a_writer_and_of_a_reader(lake: Lake, children: Children) -> None:
    """A task's input, and a split, may be larger than memory. Each runs in a process of its own."""
    table = lake.create(WIDE, "db.heavy")
    writer, reader = children(2)
    answer = writer.ask(lake, "write_much", table=str(table.path))
    assert "grown" in answer, f"a large task is written: found {answer}"
    assert answer["grown"] < LIMIT, _told("writing", answer["grown"])
    answer = reader.ask(lake, "read_much", table=str(table.path))
    assert "grown" in answer, f"a large table is read: found {answer}"
    expect(answer["rows"], HEAVY, "all rows are read, one batch after the other")
    assert answer["grown"] < LIMIT, _told("reading", answer["grown"])


@pytest.mark.needs(Feature.PARTITIONING)
def test_memory_of_a_writer_of_partitions(lake: Lake, children: Children) -> None:
    """What is collected for each partition alone is without bound, as the number of partitions is the data's."""
    table = lake.create(WIDE.append(KEY), "db.heavy_parts", partition_by=(PartitionField(KEY.name),))
    (writer,) = children(1)
    answer = writer.ask(lake, "write_much", table=str(table.path))
    assert "grown" in answer, f"a large task of {KEYS} partitions is written: found {answer}"
    assert answer["grown"] < LIMIT, _told(f"writing into {KEYS} partitions", answer["grown"])
    _each_once(table.read(columns=("id",))["id"], HEAVY, f"{HEAVY} rows in {KEYS} partitions are read once each")


def _told(doing: str, grown: int) -> str:
    return (
        f"{doing} {TOTAL // MIB} MiB in batches of 4 MiB may take {LIMIT // MIB} MiB of memory, and the process grew "
        f"by {grown // MIB} MiB: everything is held at once"
    )
