"""Dead letters that are tried again, on every format: each that fits is in the lake table once, the others stay."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_logs import json_options, produce, read_with_bad, source_at
from lake_rows import ids_of, letter_states
from laketier.config import LakeConfig
from laketier.dead_letters import failpoints, records
from laketier.dead_letters.records import (
    DeadLetter,
    DeadLetterState,
    Replays,
    in_chunks,
    read_replays,
    replayed_table,
    summarize_dead_letters,
)
from laketier.dead_letters.replay import ReplayResult, replay
from laketier.dead_letters.table import dead_letter_table
from laketier.kit.failpoints import VARIABLE, observed
from laketier.registry import open_log_source
from laketier.rounds import LogRound, LogRoundSettings, OnBadRecordPolicy
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import (
    BadRecord,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    LogSplit,
    OnBadRecord,
    Stale,
    TableChanged,
    TableLog,
    TableNotFound,
    WatermarkLost,
)
from laketier.tiering.failpoints import ACK_BEFORE, PUBLISH_AFTER, PUBLISH_BEFORE
from laketier_kafka.mock_broker import KafkaBroker
from laketier_verification.lines import CutLog, LinesTable
from landing import all_of, land_bytes, log_of, rows

DEAD = LogRoundSettings(on_bad_record=OnBadRecordPolicy.DEAD_LETTER)
OPEN, REPLAYING, REPLAYED = DeadLetterState


@dataclass
class Lettered:
    """A log of JSON lines with records that are no rows, and the lake table that it goes to."""

    source: LinesTable
    config: LakeConfig
    engine: LocalEngine

    def opened(self) -> TableLog:
        source = open_log_source("lines", {"path": str(self.source.root)}, name="lines", origin="the test")
        return source.open(self.source.name)

    def round(self) -> None:
        made = LogRound(self.opened(), self.config, DEAD)
        made.finish(self.engine.run(list(made.plan())))

    def mend(self, *, mended: bool = True) -> None:
        self.source.describe(ids_as_text=mended)

    def replay(self, **settings: Any) -> ReplayResult:
        return replay(self.config, self.opened(), **settings)

    def ids(self) -> list[int]:
        return ids_of(self.config)

    def states(self) -> dict[int, DeadLetterState]:
        return letter_states(self.config)


@pytest.fixture
def lettered(tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine) -> Lettered:
    made = Lettered(LinesTable(tmp_path / "logs", "t").create(), lake_config, engine)
    made.source.append(1)
    made.source.append_raw('{"id": "2"}', "poison", '{"id": "3"}')
    made.round()
    return made


def test_what_fits_now_is_replayed_once_and_the_rest_stays(lettered: Lettered) -> None:
    assert lettered.replay() == ReplayResult(unfit=3, errors=lettered.replay().errors)
    assert (lettered.ids(), set(lettered.states().values())) == ([1], {OPEN})
    lettered.mend()
    tried = lettered.replay(dry_run=True)
    assert (tried.replayed, tried.rows, tried.unfit, lettered.ids()) == (2, 2, 1, [1])
    done = lettered.replay()
    assert (done.replayed, done.rows, done.unfit) == (2, 2, 1)
    assert [(bad.bucket, bad.offset, bad.value) for bad in done.errors] == [("0", 2, b"poison")]
    assert (lettered.ids(), lettered.states()) == ([1, 2, 3], {1: REPLAYED, 2: OPEN, 3: REPLAYED})
    assert lettered.replay().replayed == 0
    lettered.source.append_raw('{"id": "4"}', "more poison", '{"id": "x5"}')
    lettered.round()
    assert lettered.ids() == [1, 2, 3, 4], "a record that is a row when it is read is no dead letter"
    assert lettered.replay().unfit == 3
    seen = summarize_dead_letters(lettered.config)
    assert seen is not None
    assert (seen.table, seen.total, seen.states) == ("db.t__dead_letters", 5, {OPEN: 3, REPLAYED: 2})
    assert sum(count for _, count in seen.errors) == 5


def test_a_dead_letter_of_a_killed_round_that_is_a_row_by_now_stops_the_table(lettered: Lettered) -> None:
    lettered.source.append_raw('{"id": "4"}', "poison", '{"id": 5}')
    lettered.mend(mended=False)
    made = LogRound(lettered.opened(), lettered.config, DEAD)
    answers = list(lettered.engine.run(list(made.plan())))

    def kill(name: str) -> None:
        if name == failpoints.DEAD_LETTERS:
            raise _Killed

    with observed(kill), pytest.raises(_Killed):
        made.finish(answers)
    lettered.mend()
    with pytest.raises(ConfigError, match=r"1 dead letters of a killed round can be decoded and stored now.*0:4"):
        lettered.round()
    lettered.mend(mended=False)
    lettered.round()
    lettered.mend()
    lettered.replay()
    assert lettered.ids() == [1, 2, 3, 4, 5]


def test_dead_letters_are_decoded_in_what_memory_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [3, 4, 4, 20, 1, 1, 1, 1]
    every = [
        DeadLetter("t", BadRecord(bucket="0", offset=at, error="", value=b"." * size)) for at, size in enumerate(sizes)
    ]
    monkeypatch.setattr(records, "CHUNK_BYTES", 8)
    chunks = [[dead_letter.record.offset for dead_letter in chunk] for chunk in in_chunks(iter(every), 3)]
    assert chunks == [[0, 1], [2], [3], [4, 5, 6], [7]]


def test_many_dead_letters_are_several_epochs(lettered: Lettered) -> None:
    lettered.mend(mended=False)
    lettered.source.append_raw(*(f'{{"id": "{number}"}}' for number in range(10, 20)))
    lettered.round()
    lettered.mend()
    assert lettered.replay(most=4).replayed == 12
    assert lettered.ids() == [1, 2, 3, *range(10, 20)]
    assert Counter(lettered.states().values()) == {REPLAYED: 12, OPEN: 1}


class StutteringLog(CutLog):
    """One that says of each bad record three times that it is bad."""

    def read(self, split: LogSplit, *, on_bad_record: OnBadRecord, **options: Any) -> Iterator[pa.RecordBatch]:
        def thrice(record: BadRecord) -> None:
            for _ in range(3):
                on_bad_record(record)

        return super().read(split, on_bad_record=thrice, **options)


@pytest.mark.parametrize("lake_config", ["localfile"], indirect=True)
def test_a_record_that_was_reported_thrice_is_replayed_once(lettered: Lettered) -> None:
    lettered.mend(mended=False)
    lettered.source.append_raw('{"id": "4"}', '{"id": "5"}')
    made = LogRound(StutteringLog(lettered.opened()), lettered.config, DEAD)
    made.finish(lettered.engine.run(list(made.plan())))
    lettered.source.append_raw('{"id": "6"}')
    made = LogRound(StutteringLog(lettered.opened()), lettered.config, DEAD)
    with observed(_kill_at(failpoints.DEAD_LETTERS)), pytest.raises(_Killed):
        made.finish(lettered.engine.run(list(made.plan())))
    lettered.mend()
    done = lettered.replay(most=1)
    assert (done.replayed, done.rows, done.waiting) == (4, 4, 1)
    assert lettered.ids() == [1, 2, 3, 4, 5]
    assert lettered.replay().replayed == 0


def _kill_at(name: str) -> Callable[[str], None]:
    def kill(passed: str) -> None:
        if passed == name:
            raise _Killed

    return kill


PUBLISHED = (PUBLISH_BEFORE, PUBLISH_AFTER, ACK_BEFORE)
POINTS = [
    failpoints.REPLAY_STAGED,
    failpoints.REPLAY_CHOSEN,
    *(f"{point}@{hit}" for point in PUBLISHED for hit in (1, 2)),
]


ONE = pytest.mark.parametrize("lake_config", ["localfile"], indirect=True)


class _Killed(BaseException):
    """The process is gone: nothing may run after it but what a kill leaves too."""


@pytest.mark.parametrize("lake_config", ["localfile", "iceberg"], indirect=True)
@pytest.mark.parametrize("point", POINTS)
def test_a_replay_that_ends_anywhere_is_ended_by_the_next(lettered: Lettered, point: str) -> None:
    lettered.mend()
    name, _, hit = point.partition("@")
    left = int(hit or 1)

    def kill(passed: str) -> None:
        nonlocal left
        left -= passed == name
        if not left:
            raise _Killed

    with observed(kill), pytest.raises(_Killed):
        lettered.replay()
    assert lettered.ids() in ([1], [1, 2, 3]), "all of a replay, or nothing of it"
    # A record that becomes a dead letter meanwhile belongs to the next replay.
    lettered.mend(mended=False)
    lettered.source.append_raw('{"id": "4"}')
    lettered.round()
    lettered.mend()
    first = lettered.replay()
    assert (lettered.ids(), first.unfit) == ([1, 2, 3, 4], 1)
    assert lettered.states() == {1: REPLAYED, 2: OPEN, 3: REPLAYED, 4: REPLAYED}
    assert lettered.replay().replayed == 0
    assert lettered.ids() == [1, 2, 3, 4]


def _replay_up_to(lettered: Lettered, name: str) -> None:
    def kill(passed: str) -> None:
        if passed == name:
            raise _Killed

    with observed(kill), pytest.raises(_Killed):
        lettered.replay()


@ONE
def test_a_killed_replay_binds_the_settings_of_the_next(lettered: Lettered) -> None:
    lettered.mend()
    _replay_up_to(lettered, failpoints.REPLAY_CHOSEN)
    assert lettered.states() == {1: REPLAYING, 2: OPEN, 3: REPLAYING}
    lettered.mend(mended=False)
    with pytest.raises(ConfigError, match="had chosen 2 dead letters, and 2 of them are no rows") as refused:
        lettered.replay()
    assert "Set the table's `read` settings, and the options of its lake table, back" in str(refused.value)
    assert lettered.ids() == [1]
    lettered.mend()
    lettered.replay()
    assert lettered.ids() == [1, 2, 3]


@ONE
def test_of_two_replays_at_once_one_is_refused(lettered: Lettered) -> None:
    lettered.mend()
    inner: list[ReplayResult] = []

    def another(passed: str) -> None:
        if passed == failpoints.REPLAY_STAGED and not inner:
            inner.append(ReplayResult())
            inner[0] = lettered.replay(most=1)

    with observed(another), pytest.raises(Stale, match="another replay of the table runs"):
        lettered.replay()
    assert inner[0].replayed == 2
    assert (lettered.ids(), lettered.replay().replayed) == ([1, 2, 3], 0)


@ONE
def test_the_same_replay_twice_at_once_is_one(lettered: Lettered) -> None:
    lettered.mend()
    inner: list[ReplayResult] = []

    def another(passed: str) -> None:
        if passed in (failpoints.REPLAY_STAGED, failpoints.REPLAY_CHOSEN) and not inner:
            inner.append(ReplayResult())
            inner[0] = lettered.replay()

    with observed(another):
        lettered.replay()
    assert lettered.ids() == [1, 2, 3]


@ONE
def test_a_replay_that_is_overtaken_while_it_looks_is_refused(
    lettered: Lettered, monkeypatch: pytest.MonkeyPatch
) -> None:
    lettered.mend()

    def overtaken(config: LakeConfig) -> Replays:
        monkeypatch.undo()
        assert lettered.replay().replayed == 2
        return read_replays(config)

    monkeypatch.setattr("laketier.dead_letters.replay.read_replays", overtaken)
    with pytest.raises(Stale, match="another replay of the table runs"):
        lettered.replay()
    assert (lettered.ids(), lettered.replay().replayed) == ([1, 2, 3], 0)


@ONE
def test_chosen_dead_letters_that_are_gone_are_missed(lettered: Lettered) -> None:
    lettered.mend()
    _replay_up_to(lettered, failpoints.REPLAY_CHOSEN)
    for folder in Path(lettered.config.warehouse).rglob(dead_letter_table(lettered.config.table).table):
        shutil.rmtree(folder)
    lettered.source.append_raw("more poison")
    lettered.round()
    with pytest.raises(CorruptTable, match="letters that a replay had chosen are not in the dead-letter table"):
        lettered.replay()
    assert lettered.ids() == [1]


@ONE
def test_dead_letters_of_a_round_that_has_not_ended_wait(lettered: Lettered) -> None:
    lettered.source.append_raw('{"id": "9"}')
    made = LogRound(lettered.opened(), lettered.config, DEAD)

    def kill(passed: str) -> None:
        if passed == failpoints.DEAD_LETTERS:
            raise _Killed

    with observed(kill), pytest.raises(_Killed):
        made.finish(lettered.engine.run(list(made.plan())))
    lettered.mend()
    assert (lettered.replay().waiting, lettered.ids()) == (1, [1, 2, 3])
    lettered.mend(mended=False)
    lettered.round()
    lettered.mend()
    assert (lettered.replay().waiting, lettered.ids()) == (0, [1, 2, 3, 9])


@ONE
def test_dead_letters_of_a_table_that_was_made_anew_are_refused(lettered: Lettered) -> None:
    lettered.source.describe(id="another")
    with pytest.raises(TableChanged, match=r"its id was .* and is 'another'"):
        lettered.replay()


@ONE
def test_without_dead_letters_there_is_nothing_to_replay(
    tmp_path: Path, lake_config: LakeConfig, engine: LocalEngine
) -> None:
    fresh = Lettered(LinesTable(tmp_path / "logs", "t").create(), lake_config, engine)
    assert summarize_dead_letters(lake_config) is None
    with pytest.raises(TableNotFound, match="has no dead letters"):
        fresh.replay()


@ONE
def test_what_a_lost_table_of_replays_would_double_is_refused(lettered: Lettered) -> None:
    lettered.mend()
    lettered.replay()
    for folder in Path(lettered.config.warehouse).rglob(replayed_table(lettered.config.table).table):
        shutil.rmtree(folder)
    with pytest.raises(WatermarkLost, match="holds 1 replays, and the table of replays knows 0"):
        lettered.replay()
    assert lettered.ids() == [1, 2, 3]


@ONE
def test_old_changes_of_a_key_are_not_replayed(lettered: Lettered) -> None:
    lettered.source.describe(primary_key=["id"])
    with pytest.raises(FeatureNotSupported, match="an old change would undo newer ones"):
        lettered.replay()


_CHILD = """
import sys
from laketier.registry import configure, open_log_source
from laketier.dead_letters.replay import replay
root, *keys = sys.argv[1:]
log = open_log_source("lines", {"path": root}, name="lines", origin="the test").open("t")
replay(configure(dict(key.split("=", 1) for key in keys)), log)
"""


@pytest.mark.parametrize(
    "lake_config",
    ["localfile", *(pytest.param(name, marks=pytest.mark.deep) for name in ("delta", "iceberg", "lance"))],
    indirect=True,
)
@pytest.mark.parametrize("point", [failpoints.REPLAY_CHOSEN])
def test_a_replay_under_sigkill(lettered: Lettered, point: str) -> None:
    lettered.mend()
    config = lettered.config
    keys = {"format": config.format, "warehouse": config.warehouse, "table": config.table, "pipeline": config.pipeline}
    name, at, hit = point.partition("@")
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(lettered.source.root), *(f"lake.{key}={keys[key]}" for key in keys)],
        env={**os.environ, VARIABLE: f"{name}=kill{at}{hit}"}, timeout=120, check=False,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL
    lettered.replay()
    assert (lettered.ids(), lettered.states()) == ([1, 2, 3], {1: REPLAYED, 2: OPEN, 3: REPLAYED})


def _decoded(log: TableLog, records: list[BadRecord]) -> tuple[list[dict[str, Any]], list[BadRecord]]:
    bad: list[BadRecord] = []
    batches = list(log.decode(records, on_bad_record=bad.append))
    assert all(batch.schema == log.table.schema for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()], bad


def test_records_of_a_topic_are_decoded_as_they_were_read(broker: KafkaBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [
        b'{"id": 1}', {"key": b"k", "value": b'{"id": 2, "more": 0}', "timestamp": 7_000}, b"poison",
        {"key": b"gone", "value": None},
    ])  # fmt: skip
    added = {f"include-{what}": "true" for what in ("key", "timestamp", "partition", "offset")}
    strict = {**json_options(id="int64"), **added, "unknown-fields": "fail"}
    _, bad = read_with_bad(source_at(broker.bootstrap).open(topic, strict))
    assert [each.offset for each in bad] == [1, 2, 3]
    lenient = source_at(broker.bootstrap).open(topic, {**json_options(id="int64"), **added, "tombstones": "skip"})
    found, still = _decoded(lenient, bad)
    as_read, _ = read_with_bad(lenient)
    assert found == [row for row in as_read if row["_offset"] == 1]
    assert found[0]["_key"] == b"k"
    (poison,) = still
    assert replace(poison, error=bad[1].error) == bad[1]
    with pytest.raises(FeatureNotSupported, match="headers of records, which dead letters do not hold"):
        _decoded(source_at(broker.bootstrap).open(topic, {**strict, "include-headers": "true"}), bad)


def test_a_time_that_no_table_holds_is_a_bad_record(broker: KafkaBroker, topic: str) -> None:
    """A producer says when a record is; a round would fail for ever where the lake table keeps microseconds."""
    produce(broker.bootstrap, topic, [
        {"value": b'{"id": 1}', "timestamp": 7_000}, {"value": b'{"id": 2}', "timestamp": 2**62},
        {"value": b'{"id": 3}', "timestamp": 253_402_300_799_999}, b"poison",
        {"value": b'{"id": 5}', "timestamp": 253_402_300_800_000},
    ])  # fmt: skip
    options = {**json_options(id="int64"), "include-timestamp": "true"}
    rows, bad = read_with_bad(source_at(broker.bootstrap).open(topic, options))
    assert [row["id"] for row in rows] == [1, 3]
    assert [each.offset for each in bad] == [1, 3, 4]
    assert "column '_timestamp': " in bad[0].error
    assert "no time of the years 1 to 9999" in bad[0].error
    plain, bad = read_with_bad(source_at(broker.bootstrap).open(topic, json_options(id="int64")))
    assert [row["id"] for row in plain] == [1, 2, 3, 5], "a time that is no column does no harm"
    assert [each.offset for each in bad] == [3]


@pytest.mark.parametrize(
    ("format", "lines"),
    [("json", [b'{"id": 1}', b'{"id": 2, "more": 0}', b"poison"]), ("csv", [b"1", b'"2', b"x"])],
)
def test_lines_of_files_are_decoded_as_they_were_read(tmp_path: Path, format: str, lines: list[bytes]) -> None:
    land_bytes(tmp_path, "a", b"".join(line + b"\n" for line in lines))
    options = {"format": format, "columns.id": "int64", "header": "false"}
    bad: list[BadRecord] = []
    log = log_of(tmp_path, options)
    assert rows(log, all_of(log), on_bad_record=bad.append) == [{"id": 1}]
    assert [each.value for each in bad] == lines[1:]
    whole = BadRecord(bucket="files", offset=9, error="damaged", value=None)
    mended = log_of(tmp_path, {**options, "extra-columns": "ignore"})
    given = [*bad, replace(bad[0], value=lines[0]), whole]
    found, still = _decoded(mended, given)
    assert found == ([{"id": 2}, {"id": 1}] if format == "json" else [{"id": 1}])
    assert sorted((each.offset, each.value) for each in still if each.value) == [
        (0, value) for value in sorted(lines[2:] if format == "json" else lines[1:])
    ]
    assert [each.error for each in still if each.value is None] == [
        "its bytes were not kept; land the corrected rows in a new file"
    ]
    with pytest.raises(FeatureNotSupported, match="the header says what is in it"):
        _decoded(log_of(tmp_path, {"format": "csv", "columns.id": "int64"}), bad)
