"""Files that end by event time: the time in a column, not that of a clock."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit.event_time import EventTime, check_event_time
from laketier.kit.file_counts import FILE_COUNTS, FileEnd
from laketier.kit.rolling import RollingWriter
from laketier.kit.rolling_settings import RollingSettings
from laketier.spi import ConfigError

START = datetime(2026, 11, 24, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.string()), ("at", pa.timestamp("ms", "UTC"))])


class Rows:
    """A file that remembers its rows."""

    def __init__(self, stream: pa.NativeFile, schema: pa.Schema) -> None:
        self.stream, self.ids = stream, list[int]()

    def write(self, table: pa.Table) -> None:
        self.ids += table["id"].to_pylist()
        self.stream.write(b"x" * table.num_rows)

    def tell(self) -> int:
        return int(self.stream.tell())

    def close(self) -> Any:
        return self.ids

    def abandon(self) -> None:
        self.ids.clear()


class Writer:
    """Batches in, the ids of each file out."""

    def __init__(self, folder: Path, *, keyed: bool = False, block_rows: int = 1000, **settings: Any) -> None:
        def create(partition: tuple[Any, ...]) -> tuple[str, pa.NativeFile]:
            path = str(folder / f"{len(list(folder.iterdir()))}")
            return path, pa.OSFile(path, "wb")

        wanted = {"target_file_event_seconds": 3600, "event_time_column": "at", **settings}
        self.count = 0
        self.rolling = RollingWriter(
            SCHEMA,
            create,
            Rows,
            RollingSettings(**wanted),
            block_rows=block_rows,
            block_bytes=1 << 20,
            keys=(lambda table: [table["key"]]) if keyed else None,
        )

    def write(self, *minutes: int | None, key: str = "k") -> None:
        rows = [
            {"id": self.count + i, "key": key, "at": None if at is None else START + timedelta(minutes=at)}
            for i, at in enumerate(minutes)
        ]
        self.count += len(rows)
        self.rolling.write(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))

    def files(self) -> list[list[int]]:
        return [file.footer for file in self.rolling.close()]


@pytest.mark.parametrize("keyed", [False, True])
def test_a_file_ends_when_the_event_time_has_gone_on(tmp_path: Path, keyed: bool) -> None:
    writer = Writer(tmp_path, keyed=keyed)
    writer.write(0, 10)
    writer.write(59)
    writer.write(60, 61)  # an hour after the first row: these begin another file
    writer.write(119)
    writer.write(None, 121)
    assert writer.files() == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_rows_that_come_late_make_no_file_of_each_batch(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(600)
    for _ in range(5):
        writer.write(0, 5)  # ten hours late
    writer.write(659)
    writer.write(661)
    assert writer.files() == [[*range(12)], [12]]


def test_late_rows_of_another_partition_make_few_files_too(tmp_path: Path) -> None:
    writer = Writer(tmp_path, keyed=True)
    for minute in range(50):
        for at, key in ((600 + minute, "now"), (minute, "late")):
            writer.write(at, key=key)
            writer.rolling._split()  # as if each batch were large
    writer.write(661, key="now")
    assert [len(ids) for ids in writer.files()] == [50, 50, 1]


def test_a_partition_that_gets_no_rows_ends_by_the_time_of_others(tmp_path: Path) -> None:
    writer = Writer(tmp_path, keyed=True)
    writer.write(0, key="a")
    writer.write(30, key="b")
    writer.write(70, key="b")
    assert [file.partition for file in writer.rolling._closed] == [("a",)]
    assert sorted(writer.files()) == [[0], [1, 2]]


def test_rows_without_a_time_and_one_from_the_far_future_lose_nothing(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write(None)
    writer.write(None, 0)
    writer.write(60 * 24 * 365 * 1000)
    writer.write(1)
    assert sorted(row for file in writer.files() for row in file) == [0, 1, 2, 3, 4]


def test_a_file_that_ended_by_its_size_gives_its_time_to_none(tmp_path: Path) -> None:
    writer = Writer(tmp_path, target_file_rows=2)
    writer.write(0, 1, 50)
    writer.write(65)  # an hour after the first file, and not after the second, which began at 50
    writer.write(111)
    assert writer.files() == [[0, 1], [2, 3], [4]]


def test_each_file_says_what_ended_it_and_the_process_counts_them(tmp_path: Path) -> None:
    before, _ = FILE_COUNTS.now()
    writer = Writer(tmp_path, keyed=True, block_rows=1, target_file_rows=2, max_open_files=2)
    writer.write(0, 1, key="rows")
    writer.write(2, key="past")
    writer.write(100, key="a")
    for key in ("b", "c"):
        writer.write(101, key=key)
    ended = [file.ended for file in writer.rolling.close()]
    assert ended[:2] == [FileEnd.ROWS, FileEnd.EVENT_TIME]
    assert set(ended[2:]) == {FileEnd.TASK, FileEnd.OPEN_FILES}
    after, _ = FILE_COUNTS.now()
    assert {why: after[why] - before[why] for why in set(ended)} == Counter(ended)


@given(st.lists(st.lists(st.none() | st.integers(-300, 300), min_size=1, max_size=4), max_size=12), st.booleans())
def test_whatever_the_times_each_row_is_in_one_file(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int | None]], keyed: bool
) -> None:
    writer = Writer(tmp_path_factory.mktemp("files"), keyed=keyed)
    for number, minutes in enumerate(batches):
        writer.write(*minutes, key=f"k{number % 2}")
    assert sorted(row for file in writer.files() for row in file) == list(range(writer.count))


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.date32()])
def test_each_unit_counts_seconds(kind: pa.DataType) -> None:
    schema = pa.schema([("at", kind)])
    event = EventTime.of(RollingSettings(target_file_event_seconds=86_400, event_time_column="at"), schema)
    assert event is not None
    days = pa.array([20_000, None, 20_001], pa.int32()).cast(pa.date32())
    column = days if pa.types.is_date32(kind) else days.cast(pa.timestamp("s")).cast(pa.timestamp(kind.unit)).cast(kind)
    ends = event.ends([pa.record_batch([column], schema=schema)])
    assert ends is not None
    assert event.is_past(*ends)
    assert not event.is_past(ends[0], ends[1] - 1)
    assert event.ends([pa.record_batch([pa.nulls(2, kind)], schema=schema)]) is None


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"target_file_event_seconds": 5}, "Set event-time-column, too"),
        ({"event_time_column": "at"}, "Set target-file-event-seconds, too"),
        ({"target_file_event_seconds": 5, "event_time_column": "no"}, "'no', which is not a column"),
        ({"target_file_event_seconds": 5, "event_time_column": "id"}, "of type int64"),
    ],
)
def test_settings_that_fit_no_table_are_refused(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        check_event_time(RollingSettings(**settings), SCHEMA)
