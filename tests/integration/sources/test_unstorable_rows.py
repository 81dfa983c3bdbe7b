"""Records that are rows, and that a format can't store: taken aside as unreadable ones are, on every format."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_logs import json_options, produce, source_at, whole
from laketier.config import LakeConfig
from laketier.dead_letters import ahead, failpoints
from laketier.dead_letters.records import scan_dead_letters
from laketier.dead_letters.replay import replay
from laketier.kit.failpoints import VARIABLE, observed
from laketier.registry import configure, open_lake, open_log_source
from laketier.rounds import LogRound, LogRoundResult, LogRoundSettings, OnBadRecordPolicy, run_log_task, splits
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import (
    BadRecord,
    ConfigError,
    FeatureNotSupported,
    LogSplit,
    OpenFilesSlot,
    ScanRequest,
    TableLog,
    UnstorableRows,
)
from laketier.tables import prepare_table
from laketier.tables.scan import scan
from laketier_kafka.mock_broker import KafkaBroker
from laketier_verification.lines import CutLog, LinesTable
from landing import all_of, land_bytes, log_of

DEAD, DROP, FAIL = (LogRoundSettings(on_bad_record=OnBadRecordPolicy(name)) for name in ("dead-letter", "drop", "fail"))
FAR = 253_402_300_800
"""Seconds from 1970 to the year 10000."""


@dataclass(frozen=True)
class Case:
    """``good`` and ``bad``: values of the column ``v``, of type ``kind``."""

    kind: str
    good: tuple[Any, ...]
    bad: tuple[Any, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    """The lake's column is not null."""


FORMATS = ("delta", "iceberg", "lance", "localfile")
CASES: dict[str, tuple[str, Case]] = {
    "delta-folder": ("delta", Case("string", ("a", None), ("", "x" * 300), {"lake.partition-by": "v"})),
    "delta-overflow": ("delta", Case("timestamp[ms]", (0, -5), (2**62, -(2**62)))),
    "delta-partition-moment": ("delta", Case("timestamp[s]", (0,), (FAR,), {"lake.partition-by": "v"})),
    "delta-bucket": ("delta", Case("string", ("a", "b"), (None,), {"lake.bucket-by": "bucket(4, v)"})),
    "iceberg-hour": ("iceberg", Case("timestamp[us]", (0, None), (FAR * 10**6,), {"lake.partition-by": "hour(v)"})),
    "iceberg-overflow": ("iceberg", Case("timestamp[s]", (0, -5), (2**62, -(2**62)))),
    "iceberg-partition-moment": ("iceberg", Case("timestamp[s]", (0,), (FAR,), {"lake.partition-by": "v"})),
    "localfile-folder": ("localfile", Case("string", ("a", None), ("", "x" * 300), {"lake.partition-by": "v"})),
    "localfile-bucket": ("localfile", Case("string", ("a", "b"), (None,), {"lake.bucket-by": "bucket(4, v)"})),
    "localfile-overflow": ("localfile", Case("timestamp[s]", (0, -5), (2**62, -(2**62)))),
    "localfile-json": ("localfile", Case("timestamp[s]", (0,), (FAR, -FAR), {"lake.localfile.file-format": "json"})),
    "localfile-csv": ("localfile", Case("date32", (0,), (2_932_897,), {"lake.localfile.file-format": "csv"})),
    **{f"{name}-null": (name, Case("string", ("a",), (None,), strict=True)) for name in FORMATS},
}


@dataclass
class Tiered:
    """A log with rows that the lake table can't store, in turn with others."""

    source: LinesTable
    config: LakeConfig
    engine: LocalEngine
    case: Case
    written: int = 0

    def append(self, *values: Any) -> None:
        lines = [json.dumps({"id": number, "v": value}) for number, value in enumerate(values, self.written)]
        self.written += len(values)
        self.source.append_raw(*lines)

    def opened(self) -> TableLog:
        source = open_log_source("lines", {"path": str(self.source.root)}, name="lines", origin="the test")
        return source.open(self.source.name)

    def round(self, settings: LogRoundSettings = DEAD, log: TableLog | None = None) -> LogRoundResult:
        made = LogRound(log or self.opened(), self.config, settings)
        return made.finish(self.engine.run(list(made.plan())))

    def ids(self) -> list[int]:
        lake = open_lake(self.config)
        _, batches = scan(lake.source(lake.load_table()), ScanRequest(columns=("id",)))
        return sorted(row["id"] for batch in batches for row in batch.to_pylist())

    def letters(self) -> list[int]:
        """Their offsets, which are the ids of their rows."""
        found = [each.record for each in scan_dead_letters(self.config) or ()]
        assert all(json.loads(record.value or b"")["id"] == record.offset for record in found)
        return sorted(record.offset for record in found)

    def data_files(self) -> int:
        """Staged ones, too."""
        paths = [path for path in Path(self.config.warehouse).rglob("*") if path.is_file()]
        return sum(path.suffix in (".parquet", ".lance") or path.parent.name == "__in_progress" for path in paths)


def _tiered(tmp_path: Path, engine: LocalEngine, name: str) -> Tiered:
    chosen, case = CASES[name]
    values = {"lake.format": chosen, "lake.warehouse": str(tmp_path / "lake"), "lake.table": "db.t"}
    config = configure({**values, "lake.pipeline": "tests.lines.t", **case.options})
    source = LinesTable(tmp_path / "logs", "t").create({"id": "int64", "v": case.kind})
    if case.strict:
        schema = pa.schema([("id", pa.int64()), pa.field("v", pa.type_for_alias(case.kind), nullable=False)])
        prepare_table(open_lake(config), schema)
    return Tiered(source, config, engine, case)


@pytest.fixture(params=CASES)
def tiered(request: pytest.FixtureRequest, tmp_path: Path, engine: LocalEngine) -> Tiered:
    return _tiered(tmp_path, engine, request.param)


ONE_EACH = ("delta-folder", "iceberg-hour", "lance-null", "localfile-folder")


@pytest.fixture(params=ONE_EACH)
def one_each(request: pytest.FixtureRequest, tmp_path: Path, engine: LocalEngine) -> Tiered:
    """One of each format."""
    return _tiered(tmp_path, engine, request.param)


def test_rows_that_a_format_cannot_store_are_dead_letters_and_the_others_are_stored_once(tiered: Tiered) -> None:
    good, bad = tiered.case.good, tiered.case.bad
    tiered.append(*good, *bad, *good, bad[0])
    done = tiered.round()
    number, first = len(good), len(good) + len(bad)
    assert (done.bad, done.rows) == (len(bad) + 1, 2 * number)
    assert tiered.ids() == [*range(number), *range(first, first + number)]
    assert tiered.letters() == [*range(number, first), first + number]
    tiered.append(*good)
    assert (tiered.round().bad, len(tiered.ids()), len(tiered.letters())) == (0, 3 * number, len(bad) + 1)


def test_what_was_staged_to_find_them_is_deleted(one_each: Tiered) -> None:
    one_each.append(*one_each.case.good, *one_each.case.bad, *one_each.case.good)
    assert one_each.round(DROP).bad == len(one_each.case.bad)
    twin = replace(one_each, config=replace(one_each.config, warehouse=f"{one_each.config.warehouse}-of-others"))
    if twin.case.strict:
        return
    twin.source.create({"id": "int64", "v": twin.case.kind})
    twin.append(*twin.case.good, *twin.case.good)
    twin.round(DROP)
    assert one_each.data_files() == twin.data_files()


def test_a_round_that_was_killed_after_its_letters_chooses_the_same_ones(one_each: Tiered) -> None:
    good, bad = one_each.case.good, one_each.case.bad
    one_each.append(*good, *bad)
    made = LogRound(one_each.opened(), one_each.config, DEAD)
    answers = list(one_each.engine.run(list(made.plan())))
    with observed(_kill), pytest.raises(_Killed):
        made.finish(answers)
    letters = one_each.letters()
    assert letters == list(range(len(good), len(good) + len(bad)))
    one_each.append(*bad, *good)
    done = one_each.round(log=CutLog(one_each.opened()))
    assert (done.bad, done.rows) == (2 * len(bad), 2 * len(good))
    assert one_each.letters() == [*letters, *(at + len(bad) for at in letters)], "each once"


def test_letters_of_a_killed_round_are_read_once_and_go_to_the_tasks_of_their_bucket(
    tmp_path: Path, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill with a million of them, all went to each task."""
    tiered = _tiered(tmp_path, engine, "localfile-folder")
    for bucket in (0, 1):
        tiered.source.append_raw('{"id": 1, "v": "a"}', "poison", '{"id": 2, "v": ""}', bucket=bucket)
    made = LogRound(tiered.opened(), tiered.config, DEAD)
    answers = list(engine.run(list(made.plan())))
    with observed(_kill), pytest.raises(_Killed):
        made.finish(answers)
    scans: list[object] = []
    monkeypatch.setattr(ahead, "scan_dead_letters", lambda *a, **k: scans.append(k) or scan_dead_letters(*a, **k))
    monkeypatch.setattr(splits, "WEIGHT_OF_A_TASK", 3)
    again = LogRound(tiered.opened(), tiered.config, DEAD)
    tasks = list(again.plan())
    assert scans == [{"bucket": bucket, "offsets": (0, 3)} for bucket in ("0", "1")]
    assert [({split.bucket for split in task.splits}, len(task.dead_letters_known)) for task in tasks] == [
        ({"0"}, 2),
        ({"1"}, 2),
    ]
    done = again.finish(engine.run(tasks))
    assert (done.bad, done.rows) == (4, 2)
    assert len(list(scan_dead_letters(tiered.config) or ())) == 4


def test_the_error_of_a_table_that_stops_says_where_the_record_is_and_both_ways_out(one_each: Tiered) -> None:
    one_each.append(*one_each.case.good, *one_each.case.bad, *one_each.case.good)
    offset = len(one_each.case.good)
    with pytest.raises(UnstorableRows, match=f"the record at offset {offset} of bucket '0' is a row that") as caught:
        one_each.round(FAIL)
    assert "set on-bad-record to dead-letter or drop" in str(caught.value)
    assert one_each.ids() == []
    assert one_each.round(DROP).bad == len(one_each.case.bad)
    assert len(one_each.ids()) == 2 * offset


@pytest.mark.parametrize("name", ["delta-folder", "localfile-folder"])
def test_they_are_replayed_once_the_table_takes_them(tmp_path: Path, engine: LocalEngine, name: str) -> None:
    tiered = _tiered(tmp_path, engine, name)
    tiered.append("a", "", "b", "x" * 300)
    tiered.source.append_raw("poison")
    tiered.round()
    for dry_run in (True, False):
        done = replay(tiered.config, tiered.opened(), dry_run=dry_run)
        assert (done.replayed, done.rows, done.unfit) == (0, 0, 3)
    assert "can't be stored" in str(done.errors)
    taking = _taking(tiered)
    for dry_run in (True, False):
        done = replay(taking.config, taking.opened(), dry_run=dry_run)
        assert (done.replayed, done.rows, done.unfit) == (2, 2, 1)
    assert taking.ids() == [0, 1, 2, 3]
    assert replay(taking.config, taking.opened()).replayed == 0


def test_of_letters_some_of_which_can_be_stored_those_are_replayed(tmp_path: Path, engine: LocalEngine) -> None:
    tiered = _tiered(tmp_path, engine, "iceberg-hour")
    tiered.source.append_raw('{"id": "1", "v": 0}', f'{{"id": "2", "v": {FAR * 10**6}}}', '{"id": "3", "v": 0}')
    assert tiered.round().bad == 3
    tiered.source.describe(ids_as_text=True)
    done = replay(tiered.config, tiered.opened())
    assert (done.replayed, done.rows, done.unfit, tiered.ids()) == (2, 2, 1, [1, 3])


@pytest.mark.parametrize("name", ["delta-folder", "localfile-folder"])
def test_an_option_that_changes_between_the_letters_and_the_rows_doubles_none(
    tmp_path: Path, engine: LocalEngine, name: str
) -> None:
    tiered = _tiered(tmp_path, engine, name)
    tiered.append("a", "")
    made = LogRound(tiered.opened(), tiered.config, DEAD)
    answers = list(engine.run(list(made.plan())))
    with observed(_kill), pytest.raises(_Killed):
        made.finish(answers)
    taking = _taking(tiered)
    with pytest.raises(ConfigError, match=r"1 dead letters of a killed round can be decoded and stored now.*0:1"):
        taking.round()
    tiered.round()
    assert replay(taking.config, taking.opened()).replayed == 1
    assert taking.ids() == [0, 1]


@pytest.mark.parametrize("name", ["delta-folder", "localfile-folder"])
def test_a_row_that_an_option_makes_unstorable_after_a_kill_is_in_neither_table_no_more(
    tmp_path: Path, engine: LocalEngine, name: str
) -> None:
    """Letters of its range were there, so it was taken to be one of them."""
    tiered = _tiered(tmp_path, engine, name)
    taking = _taking(tiered)
    taking.append("a", "", "")
    tiered.source.append_raw("poison")
    made = LogRound(taking.opened(), taking.config, DEAD)
    answers = list(engine.run(list(made.plan())))
    with observed(_kill), pytest.raises(_Killed):
        made.finish(answers)
    assert tiered.round().bad == 3
    assert tiered.ids() == [0]
    found = sorted(each.record.offset for each in scan_dead_letters(tiered.config) or ())
    assert found == [1, 2, 3]


def test_a_file_that_is_open_across_epochs_keeps_what_it_has(tmp_path: Path, engine: LocalEngine) -> None:
    """The attempt that is refused had it open."""
    tiered = _tiered(tmp_path, engine, "localfile-json")
    values = {"lake.format": "localfile", "lake.warehouse": tiered.config.warehouse, "lake.table": "db.t"}
    options = {**tiered.case.options, "lake.localfile.open-files": "true", "lake.pipeline": "tests.lines.t"}
    tiered.config, slot = configure({**values, **options}), OpenFilesSlot()
    for values_of_epoch in ((0, 0), (0, FAR, 0), (0,), (FAR, 0)):
        tiered.append(*values_of_epoch)
        made = LogRound(tiered.opened(), tiered.config, DEAD, open_files=slot)
        made.finish([run_log_task(task) for task in made.plan()])
        assert not slot.is_empty
    assert (tiered.ids(), tiered.letters()) == ([0, 1, 2, 4, 5, 7], [3, 6])
    slot.close()


def test_rows_of_a_source_that_knows_no_records_are_told_by_their_values(one_each: Tiered) -> None:
    one_each.append(*one_each.case.good, *one_each.case.bad)
    assert one_each.round(log=Unrecorded(one_each.opened())).bad == len(one_each.case.bad)
    found = [each.record for each in scan_dead_letters(one_each.config) or ()]
    assert {record.value for record in found} == {None}
    assert all("can't be stored" in record.error and "'id': " in record.error for record in found)
    assert one_each.ids() == list(range(len(one_each.case.good)))
    done = replay(one_each.config, one_each.opened())
    assert (done.replayed, done.unfit) == (0, len(found)), "nothing is left of them to replay"


def _read_storable(log: TableLog, split: LogSplit, bad: int) -> tuple[list[int], list[BadRecord]]:
    """The ids that are read where ``bad`` is no id that can be stored, and what is told."""

    def find(batch: pa.RecordBatch) -> dict[int, str]:
        assert batch.schema == log.table.schema
        return {at: "no" for at, number in enumerate(batch.column("id").to_pylist()) if number == bad}

    told: list[BadRecord] = []
    batches = list(log.read_storable(split, find, on_bad_record=told.append))
    return [number for batch in batches for number in batch.column("id").to_pylist()], told


def test_a_topic_tells_the_records_of_rows(broker: KafkaBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [b'{"id": 1}', b"poison", {"key": b"k", "value": b'{"id": 2}'}, b'{"id": 3}'])
    log = source_at(broker.bootstrap).open(topic, {**json_options(id="int64"), "include-offset": "true"})
    [split] = [split for split in log.plan(whole(log)) if split.end]
    found, told = _read_storable(log, split, 2)
    assert (found, [(each.offset, each.value, each.key) for each in told]) == (
        [1, 3],
        [(1, b"poison", None), (2, b'{"id": 2}', b"k")],
    )


def test_a_record_of_many_rows_is_left_out_with_all_of_them(broker: KafkaBroker, topic: str) -> None:
    """A replay of it gives them all again."""

    def ipc(*ids: int) -> bytes:
        table, sink = pa.table({"id": pa.array(ids, pa.int64())}), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    produce(broker.bootstrap, topic, [ipc(1, 2), ipc(3, 4, 5), ipc(6)])
    log = source_at(broker.bootstrap).open(topic, {"value-format": "arrow-ipc", "columns.id": "int64"})
    [split] = [split for split in log.plan(whole(log)) if split.end]
    found, told = _read_storable(log, split, 4)
    assert (found, [(each.offset, each.value) for each in told]) == ([1, 2, 6], [(1, ipc(3, 4, 5))])


def test_files_of_lines_tell_the_lines_of_rows(tmp_path: Path) -> None:
    land_bytes(tmp_path, "a.json", b'{"id": 1}\n\nx\n{"id": 2}\n{"id": 3}\n')
    log = log_of(tmp_path)
    found, told = _read_storable(log, log.plan(all_of(log))[0], 2)
    assert (found, [each.value for each in told]) == ([1, 3], [b"x", b'{"id": 2}'])
    assert "line 4 of " in told[1].error
    land_bytes(tmp_path / "p", "a.parquet", _parquet())
    plain = log_of(tmp_path / "p", {"format": "parquet", "columns.id": "int64"})
    with pytest.raises(FeatureNotSupported):
        plain.read_storable(plain.plan(all_of(plain))[0], lambda _: {})


def _parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1]}), sink)
    return bytes(sink.getvalue())


class Unrecorded(CutLog):
    """As of a source that was written before there was `TableLog.read_storable`."""

    read_storable = TableLog.read_storable


_CHILD = """
import sys
from laketier.registry import configure, open_log_source
from laketier.rounds import LogRound, LogRoundSettings, OnBadRecordPolicy, run_log_task, splits

source = open_log_source("lines", {"path": sys.argv[1]}, name="lines", origin="the child")
config = configure(dict(pair.split("=", 1) for pair in sys.argv[2:]))
made = LogRound(source.open("t"), config, LogRoundSettings(on_bad_record=OnBadRecordPolicy.DEAD_LETTER))
made.finish([run_log_task(task) for task in made.plan()])
"""


@pytest.mark.parametrize(
    "one_each",
    ["localfile-folder", *(pytest.param(name, marks=pytest.mark.deep) for name in ONE_EACH if name[:5] != "local")],
    indirect=True,
)
@pytest.mark.parametrize("point", [failpoints.DEAD_LETTERS, pytest.param("write.mid_file", marks=pytest.mark.deep)])
def test_a_round_under_sigkill_leaves_each_letter_and_each_row_once(one_each: Tiered, point: str) -> None:
    good, bad = one_each.case.good, one_each.case.bad
    one_each.append(*good, *bad, *good)
    config = one_each.config
    values = {"lake.format": config.format, "lake.warehouse": config.warehouse, "lake.table": "db.t"}
    settings = [f"{k}={v}" for k, v in {**values, "lake.pipeline": "tests.lines.t", **one_each.case.options}.items()]
    killed = subprocess.run(
        [sys.executable, "-c", _CHILD, str(one_each.source.root), *settings],
        env=os.environ | {VARIABLE: f"{point}=kill"},
        capture_output=True,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert one_each.round().bad == len(bad)
    assert one_each.ids() == sorted({*range(one_each.written)} - set(one_each.letters()))
    assert one_each.letters() == list(range(len(good), len(good) + len(bad)))


class _Killed(BaseException):
    """Nothing on the way catches it."""


def _kill(name: str) -> None:
    if name == failpoints.DEAD_LETTERS:
        raise _Killed


def _taking(tiered: Tiered) -> Tiered:
    """The same table, with an option by which it takes odd values."""
    config = tiered.config
    values = {"lake.format": config.format, "lake.warehouse": config.warehouse, "lake.table": "db.t"}
    odd = {f"lake.{config.format}.odd-partition-values": "accept", "lake.pipeline": "tests.lines.t"}
    return replace(tiered, config=configure({**values, **odd, **tiered.case.options}))
