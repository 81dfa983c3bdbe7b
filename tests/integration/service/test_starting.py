"""`laketier serve` with something wrong: what is said at the start, and what at the end."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sqlite3
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
import typer

from laketier.cli.app import exit_code
from laketier.cli.serve import TRY_LATER, serve
from laketier.connectors.files.source import LandingZone
from laketier.service.schedule import State
from laketier.service.state import StateStore, Worker
from laketier.service.until_idle import TRIES
from laketier.service.worker import TieringWorker
from laketier.spi import ConfigError, StorageError, host_time
from laketier_verification.lines import LinesTable


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Described:
    """A service of landing zones that is right until a test changes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("orders", "visits"):
            (folder / "drop" / name).mkdir(parents=True)
            (folder / "drop" / name / "a.json").write_text('{"id": 1}\n')
        self.document: dict[str, Any] = {
            "name": "shop",
            "state": f"sqlite:///{folder}/state.db",
            "sources": {"drop": {"type": "files", "options": {"path": str(folder / "drop")}}},
            "defaults": {
                "sink": {"lake.format": "localfile", "lake.warehouse": str(folder / "lake")},
                "read": {"format": "json", "columns": {"id": "int64"}},
                "target": "shop.{table}",
            },
            "tables": [{"source": "drop"}],
        }

    def set(self, path: str, value: Any) -> None:
        *parents, last = path.split("/")
        at: Any = self.document
        for part in parents:
            at = at[int(part) if part.isdigit() else part]
        at[last] = value

    def serve(self, until_idle: bool = True, http: str | None = None, **listen: Any) -> None:
        file = self.folder / "service.yaml"
        file.write_text(json.dumps(self.document))
        serve(
            file,
            engine="local",
            until_idle=until_idle,
            http=http,
            **{"http_token_file": None, **listen},
            log_format="text",
        )

    def states(self) -> dict[str, tuple[State, str]]:
        with StateStore.open(self.document["state"], service="shop") as store:
            return {each.table.name: (each.table.state, each.table.error or "") for each in store.snapshot()}


@pytest.fixture
def described(tmp_path: Path) -> Described:
    return Described(tmp_path)


WRONG = [
    ("sources/drop/type", "filez", r"sources\.drop\.type: no plugin .*Did you mean 'files'"),
    ("sources/drop/options/pth", "x", r"sources\.drop: unknown key 'options.pth'. Did you mean 'options.path'"),
    (
        "sources/drop/options/path",
        "/no/Such/drop",
        r"sources\.drop\.options: .*/no/Such/drop.*Check the source's options",
    ),
    (
        "sources/drop/options",
        {"path": "/no/such", "one-table": True},
        r"tables: no table can be read.*has no table '\.'",
    ),
    ("defaults/sink/lake.format", "localfle", r"sink\.lake\.format: .*Did you mean 'localfile'"),
    ("defaults/sink/lake.formatt", "x", r"unknown key 'lake.formatt'. Did you mean 'lake.format'"),
    ("defaults/read/formt", "json", r"unknown key 'read.formt'. Did you mean 'read.format'"),
    ("defaults/read/columns", {"id": "int46"}, r"read\.columns\.id = 'int46'.*Did you mean 'int64'"),
    ("defaults/target", "shop.{topic}", r"target = 'shop.\{topic\}' does not fit"),
    ("defaults/target", "shop.all", r"drop\.orders and drop\.visits would both go to shop\.all"),
    ("tables/0/include", ["ordres"], r"tables\.0\.include: .*'ordres'. Did you mean 'orders'"),
    ("tables/0/include", ["orders", "x_*"], r"tables\.0\.include: .*'x_\*'. It has orders, visits"),
    ("tables/0/exclude", ["*"], r"tables\.0\.exclude: no table of the source 'drop' is left"),
    ("tables/0/primary-key", ["nope"], r"the primary key has no column 'nope'"),
    ("state", "sqlit:///x", r"state, .*sqlit can't hold"),
    ("lease", "0 s", r"lease is 0 s"),
]


@pytest.mark.parametrize(("path", "value", "said"), WRONG, ids=[f"{path}={value}" for path, value, _ in WRONG])
def test_what_is_wrong_is_said_at_the_start(described: Described, path: str, value: Any, said: str) -> None:
    described.set(path, value)
    with pytest.raises(Exception, match=said) as caught:
        described.serve()
    assert exit_code(caught.value) == 2  # type: ignore[arg-type]
    assert "service.yaml" in str(caught.value)
    assert "lake.warehouse" not in str(caught.value)


def test_all_that_is_wrong_is_said_at_once(described: Described) -> None:
    described.set("sources/x", {"type": "kafak"})
    described.set("state", "sqlite:////proc/no/state.db")
    described.set(
        "tables", [{"source": "drop", "include": ["orderz"]}, {"source": "drop", "sink": {"lake.format": "delt"}}]
    )
    with pytest.raises(ConfigError, match="3 settings are wrong") as caught:
        described.serve()
    lines = str(caught.value).splitlines()[1:]
    for line, said in zip(lines, ("state, ", "sources.x.type: ", "tables.1, "), strict=True):
        assert line.startswith(f"  - {said}")


@pytest.mark.parametrize("made", [False, True])
def test_a_state_that_can_not_be_is_told_with_its_key(described: Described, tmp_path: Path, made: bool) -> None:
    described.set("state", f"sqlite:///{tmp_path}/no/such/state.db")
    if made:
        (tmp_path / "no/such/state.db").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"service\.yaml, state, .*unable to open") as caught:
        described.serve()
    assert exit_code(caught.value) == 2


def test_each_rule_s_own_trouble_is_said_and_that_of_the_defaults_once(described: Described) -> None:
    wrong = {"sink": {"lake.format": "delt"}}
    described.set("tables", [{"source": "drop", "include": ["orders"], **wrong}, {"source": "drop", **wrong}])
    with pytest.raises(ConfigError, match=r"(?s)2 settings are wrong.*tables\.0.*tables\.1"):
        described.serve()
    described.set("tables", [{"source": "drop", "include": ["orders"]}, {"source": "drop"}])
    described.set("defaults/sink/lake.format", "delt")
    with pytest.raises(Exception, match=r"tables\.0") as caught:
        described.serve()
    assert str(caught.value).count("'delt'") == 1


def test_the_token_is_read_once_for_both_listeners(described: Described, tmp_path: Path) -> None:
    """It may come through a pipe, as with `<(…)`."""
    pipe = tmp_path / "token"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("0123456789abcdef",))
    writer.start()
    described.serve(http="127.0.0.1:0", health="127.0.0.1:0", http_token_file=pipe)
    writer.join()


def test_no_source_is_asked_for_what_the_file_tells(described: Described, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source may be silent for its whole time-out."""
    monkeypatch.setattr("laketier.connectors.files.source.LandingZone.list_tables", lambda _: pytest.fail("asked"))
    described.set("defaults/sink/lake.format", "localfle")
    with pytest.raises(Exception, match="Did you mean 'localfile'"):
        described.serve()


def test_sources_are_asked_together_while_the_page_answers(
    described: Described, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits until the other is asked, and looks at what listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    both, real, told = threading.Barrier(2), LandingZone.list_tables, []

    def ask(source: LandingZone) -> Any:
        if len(told) < 2:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
                told.append(answer.read())
            both.wait(30)
        return real(source)

    monkeypatch.setattr(LandingZone, "list_tables", ask)
    described.set("sources/again", described.document["sources"]["drop"])
    described.set("tables", [{"source": "drop"}, {"source": "again", "target": "again.{table}"}])
    described.serve(http=f"127.0.0.1:{port}")
    assert told == [b"ok\n", b"ok\n"]


def test_the_first_discovery_takes_the_list_of_the_check(described: Described, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that answers only once: until idle, all that it named is tiered."""
    real, asked = LandingZone.list_tables, []

    def ask(source: LandingZone) -> Any:
        asked.append(1)
        if len(asked) > 1:
            raise StorageError("the broker did not answer")
        return real(source)

    monkeypatch.setattr(LandingZone, "list_tables", ask)
    described.serve()
    assert {state for state, _ in described.states().values()} == {State.SCHEDULED}
    assert len(described.states()) == 2


def test_who_is_told_to_stop_before_all_is_tiered_says_so(
    described: Described, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def begin(worker: TieringWorker) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        real(worker)

    real = TieringWorker._work
    monkeypatch.setattr(TieringWorker, "_work", begin)
    with pytest.raises(typer.Exit) as ended:
        described.serve()
    assert ended.value.exit_code == 1
    told = capsys.readouterr().err
    assert "2 tables were not tiered" in told
    assert "drop.orders: NEW" in told


def test_a_table_that_is_back_and_can_not_be_opened_did_not_get_there(
    described: Described, capsys: pytest.CaptureFixture[str]
) -> None:
    described.serve()
    rules = described.document["tables"]
    described.set("tables", [{"source": "drop", "include": ["visits"]}])
    described.serve()
    assert described.states()["drop.orders"][0] is State.DROPPED
    described.set("tables", [{**rules[0], "include": ["orders"], "primary-key": ["nope"]}, *rules])
    with pytest.raises(typer.Exit):
        described.serve()
    assert "drop.orders: STOPPED" in capsys.readouterr().err
    assert "the primary key has no column 'nope'" in described.states()["drop.orders"][1]


def test_a_mistyped_format_does_not_wait_for_an_old_state(described: Described) -> None:
    described.serve()
    described.set("defaults/sink/lake.format", "localfle")
    with pytest.raises(Exception, match="Did you mean 'localfile'"):
        described.serve()


def test_two_files_with_one_name_are_told_apart(described: Described) -> None:
    described.serve()
    with StateStore.open(described.document["state"], service="shop") as store:
        store.heartbeat(Worker("w", "there", 1, "0"), [], 120)
    described.set("sources", {"other": described.document["sources"]["drop"]})
    described.set("tables", [{"source": "other"}])
    with pytest.raises(
        ConfigError, match=r"name: the service 'shop' has tables of the source 'drop', which this file lacks"
    ):
        described.serve()
    described.set("name", "office")
    described.set("defaults/target", "office.{table}")
    described.serve()


def _without_the_source(described: Described) -> None:
    described.set("sources", {"other": described.document["sources"]["drop"]})
    described.set("tables", [{"source": "other"}])
    described.set("defaults/target", "other.{table}")


def test_a_worker_that_has_ended_is_not_at_work(described: Described) -> None:
    """The new version of the file lacks a source, and is started right after the old one's worker was done."""
    described.serve()
    _without_the_source(described)
    described.serve()
    assert described.states()["drop.orders"][0] is State.DROPPED


@pytest.mark.parametrize("days", [0, 9])
def test_who_was_last_heard_of_in_the_future_is_not_at_work(described: Described, days: int) -> None:
    described.serve()
    with StateStore.open(
        described.document["state"], service="shop", clock=lambda: host_time() + days * 86_400_000
    ) as ahead:
        ahead.heartbeat(Worker("w", "there", 1, "0"), [], 120)
    _without_the_source(described)
    if days:
        described.serve()
        return
    with pytest.raises(ConfigError, match=r"stop that worker, or wait 120 s if it has died\. If it is another") as told:
        described.serve()
    assert "its tables are then read from the beginning" in str(told.value)


def test_a_table_that_can_not_be_opened_is_in_the_status(
    described: Described, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It is one of several: the others are tiered, and it is told with why, until it is mended."""
    described.set("tables", [{"source": "drop", "include": ["visits"], "read": {"columns": {"id": "int46"}}},
                             {"source": "drop"}])  # fmt: skip
    with pytest.raises(typer.Exit) as ended:
        described.serve()
    assert ended.value.exit_code == 1
    told = capsys.readouterr().err
    assert "1 tables were not tiered" in told
    assert "drop.visits: STOPPED" in told
    states = described.states()
    assert states["drop.orders"] == (State.SCHEDULED, "")
    assert "there is no type 'int46'" in states["drop.visits"][1]
    described.set("tables/0/read/columns/id", "int64")
    described.serve()
    assert described.states()["drop.visits"] == (State.SCHEDULED, "")


def test_a_table_that_fails_is_tried_a_few_times_and_told(
    described: Described, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("laketier.service.schedule.Backoff.wait_ms", lambda *_: 50)
    described.serve()
    lines = LinesTable(tmp_path / "logs", "t").create()
    described.set("sources/more", {"type": "lines", "options": {"path": str(tmp_path / "logs")}})
    read = described.document["defaults"].pop("read")
    described.set("tables", [{"source": "more"}, {"source": "drop", "read": read}])
    described.serve()
    lines.append(1)
    (lines.folder / "0.jsonl").rename(lines.folder / "kept")
    (lines.folder / "0.jsonl").mkdir()
    with pytest.raises(typer.Exit):
        described.serve()
    told = capsys.readouterr().err
    assert "more.t: FAILED" in told
    assert "drop.orders" not in told
    with StateStore.open(described.document["state"], service="shop") as store:
        failed = next(each.table for each in store.snapshot() if each.table.name == "more.t")
    assert failed.failures >= TRIES
    (lines.folder / "0.jsonl").rmdir()
    (lines.folder / "kept").rename(lines.folder / "0.jsonl")
    described.serve()
    assert described.states()["more.t"] == (State.SCHEDULED, "")


def test_a_paused_table_did_not_get_there(described: Described, capsys: pytest.CaptureFixture[str]) -> None:
    described.serve()
    with StateStore.open(described.document["state"], service="shop") as store:
        store.pause("drop.orders")
    with pytest.raises(typer.Exit):
        described.serve()
    assert "drop.orders: PAUSED" in capsys.readouterr().err


def test_what_may_come_is_a_warning_where_somebody_waits(
    described: Described, caplog: pytest.LogCaptureFixture
) -> None:
    """A service that goes on takes tables up as they come."""
    from laketier.config.service import parse_service
    from laketier.service.starting import checked_sources, checked_tables

    described.set("tables/0/include", ["later"])
    described.set(
        "sources/kafka", {"type": "kafka", "options": {"bootstrap-servers": "127.0.0.1:1", "timeout-seconds": 1}}
    )
    service = parse_service(described.document, origin="s.yaml")
    with caplog.at_level(logging.WARNING):
        sources = checked_sources(service, origin="s.yaml")
        checked_tables(service, sources, origin="s.yaml")
    assert set(sources) == {"drop", "kafka"}
    assert "matches 'later'" in caplog.text
    assert "s.yaml, sources.kafka.options: the tables of the source can't be listed" in caplog.text
    with pytest.raises(ConfigError, match="2 settings are wrong"):
        checked_tables(service, sources, origin="s.yaml", strict=True)


_CLOSED = "http://127.0.0.1:1"
_KEYS = {"access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1"}
_AWS = {f"aws_{key}": value for key, value in _KEYS.items()}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("delta", {f"storage.{key}": value for key, value in {**_AWS, "aws_endpoint_url": _CLOSED}.items()}),
        ("iceberg", {"catalog.type": "rest", "catalog.uri": _CLOSED}),
        ("lance", {f"storage.{key}": value for key, value in {**_KEYS, "endpoint": _CLOSED}.items()}),
        ("localfile", {f"storage.{key}": value for key, value in {**_KEYS, "endpoint": _CLOSED}.items()}),
    ],
)
def test_a_lake_that_is_away_may_come_back(
    described: Described, caplog: pytest.LogCaptureFixture, kind: str, options: dict[str, str]
) -> None:
    """Its service would end with the exit code after which no supervisor starts it again."""
    from laketier.config.service import parse_service
    from laketier.service.starting import checked_sources, checked_tables

    lake = {"lake.format": kind, "lake.warehouse": "s3://lake/warehouse"}
    lake |= {f"lake.{kind}.{key}": value for key, value in options.items()}
    described.set("sources/far", {"type": "lake", "options": lake})
    service = parse_service(described.document, origin="s.yaml")
    with caplog.at_level(logging.WARNING):
        sources = checked_sources(service, origin="s.yaml")
        checked_tables(service, sources, origin="s.yaml")
    assert "s.yaml, sources.far.options: the tables of the source can't be listed" in caplog.text


def test_a_key_that_is_there_twice_is_refused(described: Described) -> None:
    file = described.folder / "twice.yaml"
    file.write_text("name: a\nstate: sqlite:///a.db\nstate: sqlite:///b.db\n")
    with pytest.raises(ConfigError, match=r"twice\.yaml:3:1: .*'state' is given twice, first in line 2"):
        serve(file, engine="local", until_idle=True, http=None, http_token_file=None, log_format="text")


@pytest.mark.parametrize("trouble", ["full", "held by another"])
def test_a_state_in_a_file_that_takes_no_writes_for_now_is_for_later(
    described: Described, trouble: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is wrong with the service's file, and a supervisor tries again once there is space."""
    monkeypatch.setattr("laketier.service.state.database._BUSY_SECONDS", 0.01)

    def fill(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 2")

    other = sqlite3.connect(described.folder / "state.db", isolation_level=None)
    if trouble == "full":
        sqlalchemy.event.listen(sqlalchemy.Engine, "connect", fill)
    else:
        other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(typer.Exit) as caught:
            described.serve()
    finally:
        other.close()
        if trouble == "full":
            sqlalchemy.event.remove(sqlalchemy.Engine, "connect", fill)
    assert caught.value.exit_code == TRY_LATER
    assert ("Free space" if trouble == "full" else "locked") in capsys.readouterr().err


def test_a_state_whose_server_is_away_is_for_later(described: Described, capsys: pytest.CaptureFixture[str]) -> None:
    """It may be back in a minute, and a supervisor must not take the file for wrong."""
    described.set("state", "postgresql://u:cAnArYs3cr3t@127.0.0.1:1/d")  # nobody listens on port 1
    with pytest.raises(typer.Exit) as caught:
        described.serve()
    assert caught.value.exit_code == TRY_LATER
    told = capsys.readouterr().err
    assert "StateUnavailable" in told
    assert "the state database did not answer" in told
    assert "Check that the server runs" in told
    assert "cAnArYs3cr3t" not in told
    described.set("defaults/sink/lake.format", "localfle")
    with pytest.raises(ConfigError, match=r"(?s)2 settings are wrong.*state, .*Did you mean 'localfile'"):
        described.serve()
