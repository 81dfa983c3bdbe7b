"""What a source says is held against the contract before anybody believes it: each wrong answer is told, and no row of
it lands."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from laketier.rounds.checked_log import CheckedLog
from laketier.rounds.keyed import KeyedLog
from laketier.rounds.reused import Kept
from laketier.spi import (
    BadRecord,
    BucketBounds,
    ConfigError,
    LogOffsets,
    LogRange,
    LogSplit,
    LogTable,
    PluginBroken,
    StorageError,
    TableLog,
)

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
WANTED = LogRange(LogOffsets({"a": 3, "b": 0}), LogOffsets({"a": 9, "b": 4, "empty": 0}))


def split(bucket: str, start: Any, end: Any, payload: Any = None) -> LogSplit:
    return LogSplit(bucket=bucket, start=start, end=end, payload=payload)


PLAN = [split("a", 3, 6), split("b", 0, 4), split("a", 6, 9)]


@dataclass(frozen=True)
class Said(TableLog):
    """A log that says what it is told to say."""

    described: Any = LogTable("t", "id", SCHEMA)  # noqa: RUF009 - frozen
    told: Any = field(default_factory=lambda: {"a": BucketBounds(3, 9, 1_000), "b": BucketBounds(0, 0, initial=0)})
    planned: Any = field(default_factory=lambda: list(PLAN))
    gives: Any = ()
    bad: Any = ()
    stamped: Any = None

    def stamp(self, position: LogOffsets) -> str | None:
        found: str | None = self.stamped
        return found

    def identify(self) -> str | None:
        found: str | None = self.stamped
        return found

    @property
    def table(self) -> LogTable:
        found: LogTable = self.described
        return found

    def bounds(self) -> Mapping[str, BucketBounds]:
        found: Mapping[str, BucketBounds] = self.told
        return found

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        found: Sequence[LogSplit] = self.planned
        return found

    def read(self, split: LogSplit, **options: Any) -> Any:
        if self.gives is None:
            return None
        return self._batches(**options)

    def decode(self, records: Sequence[BadRecord], *, on_bad_record: Any = None) -> Iterator[Any]:
        return self._batches(on_bad_record=on_bad_record)

    def _batches(self, *, on_bad_record: Any, **_: Any) -> Iterator[Any]:
        for record in self.bad:
            on_bad_record(record)
        yield from self.gives


@dataclass(frozen=True)
class Unclosable(Said):
    """One whose client library fails at its end."""

    error: BaseException = OSError()  # noqa: RUF009 - it is given

    def close(self) -> None:
        raise self.error


@dataclass(frozen=True)
class Failing(Said):
    """One whose client library raises what no laketier knows, in a method or in more."""

    error: BaseException = KeyError("partitions")  # noqa: RUF009 - it is given
    fails_in: str = ""

    def _fail(self, method: str) -> None:
        if method == self.fails_in:
            raise self.error

    @property
    def table(self) -> LogTable:
        self._fail("table")
        return super().table

    def bounds(self) -> Mapping[str, BucketBounds]:
        self._fail("bounds")
        return super().bounds()

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        self._fail("plan")
        return super().plan(wanted)

    def stamp(self, position: LogOffsets) -> str | None:
        self._fail("stamp")
        return super().stamp(position)

    def identify(self) -> str | None:
        self._fail("identify")
        return super().identify()


CALLS: dict[str, Callable[[TableLog], Any]] = {
    "table": lambda log: CheckedLog.of(log, "t").table,
    "bounds": lambda log: CheckedLog.of(log, "t").bounds(),
    "plan": lambda log: CheckedLog.of(log, "t").plan(WANTED),
    "stamp": lambda log: CheckedLog.of(log, "t").stamp(WANTED.end),
    "identify": lambda log: CheckedLog.of(log, "t").identify(),
}


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("error", [KeyError("partitions"), SystemExit(3)], ids=["error", "exit"])
def test_an_error_of_the_sources_own_says_whose_it_is(method: str, error: BaseException) -> None:
    with pytest.raises(StorageError) as told:
        CALLS[method](Failing(error=error, fails_in=method))
    assert str(told.value).startswith(f"t: the source failed in `TableLog.{method}`, because {type(error).__name__}: ")
    assert "author of the source" in str(told.value)
    assert told.value.__cause__ is error


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("error", [OSError("gone"), ConfigError("no"), KeyboardInterrupt()], ids=["os", "told", "end"])
def test_an_error_that_says_whose_it_is_passes(method: str, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        CALLS[method](Failing(error=error, fails_in=method))
    assert raised.value is error


def batch(*names: str) -> pa.RecordBatch:
    return pa.record_batch({name: [1] for name in names})


def test_what_is_right_passes_through() -> None:
    parts = [split("a", 3, 9, "first"), split("a", 3, 9, "second"), split("b", 0, 4)]
    bad = [
        BadRecord(bucket="a", offset=5, error="no", value=b"x", at=7),
        BadRecord(bucket="a", offset=3, error="", value=None),
    ]
    said = Said(planned=parts, gives=[batch("id", "text")], bad=bad)
    log: CheckedLog = pickle.loads(pickle.dumps(CheckedLog.of(said, "t")))  # noqa: S301 - our own bytes
    assert log.bounds() == said.bounds()
    assert log.plan(WANTED) == parts
    told: list[BadRecord] = []
    assert list(log.read(PLAN[0], on_bad_record=told.append)) == said.gives
    assert told == bad
    assert list(CheckedLog.of(Said(gives=[batch("text")]), "t").read(PLAN[0], columns=["text"])) == [batch("text")]
    assert CheckedLog.of(Said(), "t").plan(WANTED) == PLAN
    nothing = LogRange(LogOffsets({"a": 3, "b": 4}), LogOffsets({"a": 3, "b": 4, "empty": 0}))
    assert CheckedLog.of(Said(planned=()), "t").plan(nothing) == (), "no bucket has offsets"


@pytest.mark.parametrize("stamp", [None, "x", "é" * 1000], ids=["none", "short", "long"])
def test_a_stamp_is_a_short_text_or_none(stamp: Any) -> None:
    assert CheckedLog.of(Said(stamped=stamp), "t").stamp(WANTED.end) == stamp


@pytest.mark.parametrize("stamp", ["", 7, b"x", "\ud800", "x" * 1001], ids=["empty", "number", "bytes", "odd", "long"])
def test_what_is_no_stamp_is_refused(stamp: Any) -> None:
    with pytest.raises(PluginBroken, match="`stamp` returned"):
        CheckedLog.of(Said(stamped=stamp), "t").stamp(WANTED.end)


def test_the_id_of_the_table_by_now_is_text_or_none() -> None:
    for given in (None, "x"):
        assert KeyedLog.of(CheckedLog.of(Said(stamped=given), "t"), (), None).identify() == given
    for wrong in cast("list[Any]", ["", 7, b"x"]):
        with pytest.raises(PluginBroken, match="`identify` returned"):
            CheckedLog.of(Said(stamped=wrong), "t").identify()


@pytest.mark.parametrize(
    "table",
    [
        None,
        LogTable("t", "", SCHEMA),
        LogTable("t", None, SCHEMA),  # type: ignore[arg-type]
        LogTable("t", 17, SCHEMA),  # type: ignore[arg-type]
        LogTable("t", "\ud800", SCHEMA),
        LogTable("t", "id", None),
    ],
    ids=str,
)
def test_a_table_without_identity_or_columns_is_not_opened(table: Any) -> None:
    with pytest.raises(PluginBroken, match=r"^t: the source breaks its contract"):
        CheckedLog.of(Said(table), "t")


def test_what_is_no_log_is_not_opened() -> None:
    with pytest.raises(PluginBroken, match="which is no TableLog"):
        CheckedLog.of(None, "t")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bounds",
    [
        None,
        [("a", BucketBounds(0, 1))],
        {0: BucketBounds(0, 1)},
        {"": BucketBounds(0, 1)},
        {"\ud800": BucketBounds(0, 1)},
        {"a": (0, 1)},
        {"a": BucketBounds(0.0, 1.0)},  # type: ignore[arg-type]
        {"a": BucketBounds(False, True)},
        {"a": BucketBounds(0, 2**63)},
        {"a": BucketBounds(2, 1)},
        {"a": BucketBounds(-1, 1)},
        {"a": BucketBounds(0, 1, initial=2)},
        {"a": BucketBounds(0, 1, initial=-1)},
        {"a": BucketBounds(0, 1, "yesterday")},  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_bounds_that_can_be_no_watermark_are_refused(bounds: Any) -> None:
    with pytest.raises(PluginBroken, match="`bounds`"):
        CheckedLog.of(Said(told=bounds), "t").bounds()


@pytest.mark.parametrize(
    ("planned", "why"),
    [
        (None, "it returns a sequence"),
        ([None], "which is no LogSplit"),
        ((), r"leaves out bucket 'a', and the range has its offsets 3 to 9; rows would be lost"),
        (PLAN[1:2], r"leaves out bucket 'a'"),
        ([PLAN[0], PLAN[2]], r"leaves out bucket 'b', and the range has its offsets 0 to 4"),
        (PLAN[:2], r"ends at offset 6 of bucket 'a', and the range at 9"),
        (PLAN[1:], "rows would be lost"),
        ([split("a", 3, 5), split("a", 6, 9)], "rows would be lost"),
        ([split("a", 3, 6), split("a", 5, 9)], "rows would be read twice"),
        ([split("a", 3, 9), split("a", 3, 9)], "rows would be read twice"),
        ([split("a", 3, 9, "x"), split("a", 3, 9, "x")], "rows would be read twice"),
        ([split("a", 3, 9, "x"), split("a", 3, 8, "y")], "rows would be read twice"),
        ([split("a", 3, 9, "x"), split("a", 3, 9, "y"), split("a", 3, 9, "x")], "rows would be read twice"),
        ([split("a", 3, 9), split("a", 3, 9, "y")], "rows would be read twice"),
        ([split("a", 3, 9, "y"), split("a", 3, 9)], "rows would be read twice"),
        ([split("a", 3, 9, "x"), split("a", 3, 9, "y"), split("a", 3, 9)], "rows would be read twice"),
        ([split("a", 0, 9)], "rows would be read twice"),
        (PLAN[::-1], "rows would be lost"),
        ([split("a", 3, 10)], r"ends at offset 10 of bucket 'a', and the range at 9"),
        ([split("a", 3, 3)], "which is empty"),
        ([split("a", 3, 2)], "which is empty"),
        ([split("a", 3, 9.0)], "offsets are int"),
        ([*PLAN, split("other", 0, 1)], "which the range has not"),
        ([*PLAN, split("empty", 0, 1)], r"ends at offset 1 of bucket 'empty', and the range at 0"),
    ],
)
def test_a_plan_that_is_not_the_range_is_refused(planned: Any, why: str) -> None:
    with pytest.raises(PluginBroken, match=why):
        CheckedLog.of(Said(planned=planned), "t").plan(WANTED)


@pytest.mark.parametrize(
    "gives",
    [
        None,
        [None],
        [pa.table({"id": [1], "text": ["a"]})],
        [batch("id")],
        [batch("text", "id")],
        [batch("id", "text"), batch("id", "text", "new")],
    ],
)
def test_batches_that_are_not_of_the_table_are_refused(gives: Any) -> None:
    with pytest.raises(PluginBroken, match="`read`"):
        list(CheckedLog.of(Said(gives=gives), "t").read(PLAN[0]))


def _filled(buffers: int, batches: int) -> Iterator[pa.RecordBatch]:
    """Batches of a source that fills so many buffers in turn."""
    memory = [np.zeros(4, np.int64) for _ in range(buffers)]
    for number in range(batches):
        ids = memory[number % buffers]
        ids[:] = range(4 * number, 4 * number + 4)
        array = pa.Array.from_buffers(pa.int64(), 4, [None, pa.py_buffer(ids)])
        yield pa.record_batch([array, pa.array(["x"] * 4)], names=["id", "text"])


@pytest.mark.parametrize(("buffers", "batches"), [(1, 2), (2, 9), (3, 9)])
def test_memory_of_a_batch_that_is_filled_again_is_refused(buffers: int, batches: int) -> None:
    """Writers keep batches until they have enough rows for a file."""
    with pytest.raises(PluginBroken, match="rows would be lost, and others be there twice"):
        list(CheckedLog.of(Said(gives=_filled(buffers, batches)), "t").read(PLAN[0]))


def test_batches_that_share_memory_nobody_writes_to_are_right() -> None:
    whole = pa.table({"id": range(90), "text": pa.array(["a", "b", None] * 30).dictionary_encode()})
    empty = pa.record_batch({"id": pa.nulls(2**31), "text": pa.nulls(2**31)})
    gives = [empty, *whole.to_batches(max_chunksize=10), *_filled(9, 9), batch("id", "text")]
    assert list(CheckedLog.of(Said(gives=gives), "t").read(PLAN[0])) == gives


def _sliced(first: int, step: int) -> Iterator[pa.RecordBatch]:
    """Batches that are slices of one memory, which is written as they are given."""
    memory = np.zeros(40_000, np.int64)
    ids = pa.Array.from_buffers(pa.int64(), len(memory), [None, pa.py_buffer(memory)])
    for number in range(3):
        at = first + step * number
        memory[at : at + 10] = range(10 * number, 10 * number + 10)
        yield pa.record_batch([ids.slice(at, 10), pa.array(["x"] * 10)], names=["id", "text"])


def test_each_batch_of_a_memory_is_its_own_rows_alone() -> None:
    """Whether the next ones are written behind them, or over them far behind the memory's beginning."""
    given = CheckedLog.of(Said(gives=_sliced(0, 10)), "t").read(PLAN[0])
    assert [i for each in given for i in each["id"].to_pylist()] == list(range(30))
    with pytest.raises(PluginBroken, match="rows would be lost, and others be there twice"):
        list(CheckedLog.of(Said(gives=_sliced(30_000, 0)), "t").read(PLAN[0]))


def test_a_few_batches_are_held_and_large_ones_are_not() -> None:
    """The next one is read while the one before is held anyway."""
    kept, whole = Kept(), pa.record_batch({"id": np.zeros(1 << 22, np.int64)})
    memory = np.zeros(1 << 22, np.int64)
    kept.hold(pa.record_batch([pa.Array.from_buffers(pa.int64(), 1 << 22, [None, pa.py_buffer(memory)])], names=["id"]))
    memory[0] = 1
    assert kept.are_changed()
    kept.hold(whole)
    kept.hold(whole)
    assert not kept.are_changed(), "the first one is not held any more"


@pytest.mark.parametrize("error", [OSError("the socket is gone"), SystemExit(3)])
def test_a_log_that_can_not_be_closed_is_told_of(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    log = CheckedLog.of(Unclosable(error=error), "t")
    log.close()
    assert "t" in caplog.text
    assert str(error) in caplog.text


GOOD = BadRecord(bucket="a", offset=3, error="no", value=b"x")


@pytest.mark.parametrize(
    "record",
    [
        replace(GOOD, bucket="b"),
        replace(GOOD, offset=6),
        replace(GOOD, offset=2),
        replace(GOOD, offset=True),
        replace(GOOD, offset=3.0),  # type: ignore[arg-type]
        replace(GOOD, error=ValueError("no")),  # type: ignore[arg-type]
        replace(GOOD, value="text"),  # type: ignore[arg-type]
        replace(GOOD, key="text"),  # type: ignore[arg-type]
        replace(GOOD, at=1.5),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_bad_records_that_can_not_be_kept_are_refused(record: BadRecord) -> None:
    told: list[BadRecord] = []
    with pytest.raises(PluginBroken, match="`on_bad_record`"):
        list(CheckedLog.of(Said(bad=[record]), "t").read(PLAN[0], on_bad_record=told.append))
    assert told == []


TOMBSTONE = BadRecord(bucket="a", offset=4, error="no value", value=None)
LETTERS = [GOOD, replace(GOOD, offset=5), TOMBSTONE]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (2, ()),
        (5, ()),  # a record may be many rows
        (1, (replace(GOOD, error="still"),)),
        (0, LETTERS),
    ],
)
def test_a_replay_takes_a_record_that_is_a_row_or_told(rows: int, told: Sequence[BadRecord]) -> None:
    heard: list[BadRecord] = []
    log = CheckedLog.of(Said(gives=[batch("id", "text")] * rows, bad=told), "t")
    assert len(list(log.decode(LETTERS, on_bad_record=heard.append))) == rows
    assert heard == list(told)


@pytest.mark.parametrize(
    ("rows", "told", "why"),
    [
        (1, (), "`decode` says nothing of 1 of 3 records"),
        (0, (TOMBSTONE,), "`decode` says nothing of 2 of 3 records"),
        (2, (replace(GOOD, offset=9),), "each once"),
        (2, (replace(GOOD, value=b"y"),), "each once"),
        (2, (replace(GOOD, value=bytearray(b"x")),), "each once"),  # type: ignore[arg-type]
        (2, (GOOD, GOOD), "each once"),
        (2, (replace(GOOD, error=ValueError("no")),), "each once"),  # type: ignore[arg-type]
        (2, (None,), "each once"),
    ],
)
def test_a_replay_takes_no_record_of_which_nothing_was_said(rows: int, told: Any, why: str) -> None:
    log = CheckedLog.of(Said(gives=[batch("id", "text")] * rows, bad=told), "t")
    with pytest.raises(PluginBroken, match=why):
        list(log.decode(LETTERS, on_bad_record=lambda record: None))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"primary_key": "id"}, "a primary key is a tuple"),
        ({"primary_key": None}, "a primary key is a tuple"),
        ({"change_column": 5}, "a change column is a name"),
        ({"former_names": {"id": "text"}}, "former names are a tuple of texts"),
        ({"former_names": None}, "former names are a tuple of texts"),
        ({"partition_by": ("id",)}, "partitions are a tuple of PartitionField"),
        ({"buckets": 5}, "buckets are a BucketSpec"),
    ],
)
def test_a_table_that_is_described_by_other_types_is_not_opened(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(PluginBroken, match=why):
        CheckedLog.of(Said(LogTable("t", "id", SCHEMA, **wrong)), "t")


@pytest.mark.parametrize("size", ["many", 1.5, float("nan")])
def test_a_split_of_a_size_that_is_no_number_is_refused(size: Any) -> None:
    planned = [replace(PLAN[0], bytes=size), *PLAN[1:]]
    with pytest.raises(PluginBroken, match="the size of a split is int"):
        CheckedLog.of(Said(planned=planned), "t").plan(WANTED)
    numpy = [replace(each, bytes=np.int64(5)) for each in PLAN]
    assert CheckedLog.of(Said(planned=numpy), "t").plan(WANTED) == numpy


def test_payloads_that_can_not_travel_are_told() -> None:
    planned = [split("a", 3, 9, lambda: 1), split("a", 3, 9, lambda: 2), PLAN[1]]
    with pytest.raises(PluginBroken, match=r"which can't be pickled: .*; a payload is a frozen dataclass"):
        CheckedLog.of(Said(planned=planned), "t").plan(WANTED)


ODD: dict[str, Any] = {"schema_version": 5}


@pytest.mark.parametrize("record", [None, {}, replace(GOOD, **ODD), replace(GOOD, schema_version="\ud800")])
def test_what_is_no_bad_record_is_refused(record: Any) -> None:
    with pytest.raises(PluginBroken, match=r"`on_bad_record` got .*it gets a BadRecord"):
        list(CheckedLog.of(Said(bad=[record]), "t").read(PLAN[0], on_bad_record=lambda _: None))
