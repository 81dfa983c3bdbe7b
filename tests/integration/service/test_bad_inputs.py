"""What a user can get wrong of a service file, a broker, a registry and a state database: the command ends with the
exit code of its kind and a message that says what, where and what to do; no traceback, no secret. `pytest -rP` shows
the messages."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import typer

from kafka_logs import produce
from laketier.cli import app as cli
from laketier.cli.serve import TRY_LATER, serve
from laketier.config.service import load_service
from laketier.rounds.configured_logs import open_configured_table
from laketier.service.state import StateStore
from laketier.spi import ConfigError, LaketierError, PluginNotFound, StorageError, TableNotFound
from laketier_kafka.mock_broker import KafkaBroker
from laketier_verification.lines import LinesTable
from laketier_verification.postgresql import PostgreSQL
from schema_registry import SchemaRegistry

SECRET = "hunter2-of-the-tests"
QUICK = {"timeout-seconds": 2}
Change = Callable[[dict[str, Any]], Any]


def good(folder: Path) -> dict[str, Any]:
    return {
        "name": "tests",
        "state": f"sqlite:///{folder}/state.db",
        "sources": {"src": {"type": "lines", "options": {"path": str(folder / "logs")}}},
        "defaults": {"sink": {"lake.format": "localfile", "lake.warehouse": str(folder / "lake")}},
        "tables": [{"source": "src"}],
    }


def written(folder: Path, document: dict[str, Any]) -> Path:
    if not (folder / "logs").exists():
        LinesTable(folder / "logs", "t").create().append(1)
    file = folder / "service.yaml"
    file.write_text(json.dumps(document))
    return file


def serves(file: Path) -> None:
    serve(file, engine="local", until_idle=True, http=None, http_token_file=None, log_format="text")


def told(
    call: Callable[[], object], kind: type[LaketierError], code: int, *says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error, as the command line tells it."""
    with pytest.raises(kind) as caught:
        call()
    error, printed = caught.value, capsys.readouterr()
    message = str(error)
    print(f"exit {cli.exit_code(error)}: {type(error).__name__} {message}")
    assert cli.exit_code(error) == code
    for part in says:
        assert part in message, f"{part!r} is not in: {message}"
    assert error.fix, "it says what to do"
    assert "Traceback" not in message + printed.err
    assert SECRET not in message + repr(error) + printed.err


# -- service.yaml -----------------------------------------------------------------------------------------------------

FILES: dict[str, tuple[Change, type[LaketierError], tuple[str, ...]]] = {
    "an unknown key": (lambda d: d.update(stat="x"), ConfigError, ("unknown key 'stat'", "Did you mean 'state'")),
    "an unknown key of a table": (
        lambda d: d["tables"][0].update({"freshnes": "1 min"}), ConfigError,
        ("tables.0.freshnes", "'tables.0.freshness'"),
    ),
    "a text where a number belongs": (
        lambda d: d["tables"][0].update(priority="high"), ConfigError, ("tables.0.priority", "high"),
    ),
    "a list where a mapping belongs": (lambda d: d.update(sources=["src"]), ConfigError, ("sources",)),
    "no sources": (lambda d: d.pop("sources"), ConfigError, ("sources", "must be set")),
    "no state": (lambda d: d.pop("state"), ConfigError, ("state", "must be set")),
    "a source that is not there": (
        lambda d: d["tables"][0].update(source="srk"), ConfigError, ("'srk' is not one of the sources", "'src'"),
    ),
    "no tables": (lambda d: d.update(tables=[]), ConfigError, ("tables",)),
    "a bad duration": (
        lambda d: d["defaults"].update(freshness="soon"), ConfigError, ("defaults.freshness", "5 min"),
    ),
    "an unknown format": (
        lambda d: d["defaults"]["sink"].update({"lake.format": "dleta"}), PluginNotFound, ("dleta", "delta"),
    ),
    "an unknown kind of source": (
        lambda d: d["sources"]["src"].update(type="kafak"), PluginNotFound, ("kafak", "kafka"),
    ),
    "an unknown option of a source": (
        lambda d: d["sources"]["src"]["options"].update(pth="x"), ConfigError, ("options.pth", "options.path"),
    ),
    "an unknown key of a sink": (
        lambda d: d["defaults"]["sink"].update({"lake.warehous": "x"}), ConfigError,
        ("lake.warehous", "lake.warehouse"),
    ),
    "a source's folder that is not there": (
        lambda d: d["sources"]["src"]["options"].update(path="/no/such"), ConfigError, ("/no/such", "options.path"),
    ),
    "a target that no lake table can have": (
        lambda d: d["defaults"].update(target="{table}"), ConfigError, ("tables.0", "names no database"),
    ),
    "a target with a field that is none": (
        lambda d: d["defaults"].update(target="db.{topic}"), ConfigError, ("target = 'db.{topic}' does not fit",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_a_service_file(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change, kind, says = FILES[case]
    document = good(tmp_path)
    change(document)
    file = written(tmp_path, document)
    told(lambda: serves(file), kind, 2, *says, capsys=capsys)


def test_two_tables_for_one_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    LinesTable(tmp_path / "logs", "a").create()
    LinesTable(tmp_path / "logs", "b").create()
    document = good(tmp_path)
    document["defaults"]["target"] = "db.all"
    file = written(tmp_path, document)
    told(lambda: serves(file), ConfigError, 2, "src.a and src.b would both go to db.all", "`target`", capsys=capsys)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: [1", "not YAML"),
        (b"- a\n- b\n", "mapping"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"", "mapping"),
        (b"{}", "must be set"),
    ],
)
def test_what_is_no_service_file(content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "service.yaml"
    file.write_bytes(content)
    told(lambda: serves(file), ConfigError, 2, says, str(file), capsys=capsys)


def test_a_file_that_is_not_there_or_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(lambda: serves(tmp_path / "no.yaml"), ConfigError, 2, "no.yaml", capsys=capsys)
    told(lambda: serves(tmp_path), ConfigError, 2, str(tmp_path), capsys=capsys)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """In another process: root may read everything."""
    file = written(tmp_path, good(tmp_path))
    file.chmod(0)
    tmp_path.chmod(0o755)
    code = (
        "import os, sys\n"
        "from laketier.cli.app import main\n"
        "from laketier.config.service import load_service\n"
        "if os.getuid() == 0: os.setgroups([]); os.setuid(65534)\n"
        "from laketier.spi import ConfigError\n"
        "try: load_service(sys.argv[1])\n"
        "except ConfigError as error: print(error); sys.exit(2)\n"
    )
    for folder in [tmp_path, *tmp_path.parents][:-2]:
        if os.stat(folder).st_uid == os.getuid() and "pytest" in folder.name:
            folder.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    print(done.stdout)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "ermission denied" in done.stdout


def test_the_command_line_prints_no_traceback(tmp_path: Path) -> None:
    document = good(tmp_path)
    document["sources"]["src"]["options"]["pth"] = SECRET
    file = written(tmp_path, document)
    command = [sys.executable, "-c", "from laketier.cli.app import main; main()", "serve", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    print(done.stderr)
    assert done.returncode == 2
    assert done.stderr.startswith("ConfigError ")
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr


# -- the broker and the registry --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as started:
        started.create_topic("events")
        produce(started.bootstrap, "events", [b'{"id": 1}'])
        yield started


@pytest.fixture(scope="module")
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port: int = reserved.getsockname()[1]
    return port


def kafka(folder: Path, bootstrap: str, options: dict[str, Any], read: dict[str, Any] | None = None) -> Path:
    document = good(folder)
    document["sources"] = {"src": {"type": "kafka", "options": {"bootstrap-servers": bootstrap, **QUICK, **options}}}
    document["defaults"]["read"] = {"value-format": "json", "columns": {"id": "int64"}} if read is None else read
    return written(folder, document)


SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "me",
    "sasl.password": SECRET,
}


@pytest.mark.parametrize(
    ("bootstrap", "client", "says"),
    [
        ("127.0.0.1:{closed}", {}, ("127.0.0.1:", "refused", "Check bootstrap-servers")),
        ("no-such-host.invalid:9092", {}, ("no-such-host.invalid", "resolve", "Check bootstrap-servers")),
        ("{open}", {"security.protocol": "SSL"}, ("SSL", "client.ssl.*")),
        ("{open}", SASL, ("SASL", "client.sasl.*")),
    ],
    ids=["nobody at the port", "a host that is none", "TLS to a plain port", "SASL to a broker without"],
)
def test_a_broker(
    bootstrap: str, client: dict[str, Any], says: tuple[str, ...], broker: KafkaBroker, closed_port: int,
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    place = bootstrap.format(closed=closed_port, open=broker.bootstrap)
    file = kafka(tmp_path, place, {"client": {**client, "ssl.key.password": SECRET}})
    told(lambda: open_configured_table(file, "src.events"), StorageError, 1, *says, capsys=capsys)


def test_a_topic_that_is_gone(broker: KafkaBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = kafka(tmp_path, broker.bootstrap, {"timeout-seconds": 10})
    told(
        lambda: open_configured_table(file, "src.evens"),
        ConfigError,
        2,
        "no table 'src.evens'",
        "src.events",
        capsys=capsys,
    )
    _, log = open_configured_table(file, "src.events")
    from laketier.rounds.configured_logs import list_configured_tables, open_log, open_sources

    (table,) = [each for each in list_configured_tables(file) if each.name == "events"]
    from dataclasses import replace

    sources = open_sources(load_service(file), origin=str(file))
    told(lambda: open_log(replace(table, name="gone"), sources), TableNotFound, 2, "'gone'", capsys=capsys)
    log.close()


AVRO = {"value-format": "avro"}


@pytest.mark.parametrize(
    ("registry", "kind", "code", "says"),
    [
        ("down", StorageError, 1, ("registry did not answer", "Check registry.url")),
        ("401", StorageError, 1, ("registry did not answer", "registry.basic.auth.user.info")),
        ("404", ConfigError, 2, ("no subject 'events-value'", "Register the schema")),
        ("garbage", ConfigError, 2, ("the Avro schema is not JSON", "the registry's subject 'events-value'")),
    ],
)
def test_a_registry(
    registry: str, kind: type[LaketierError], code: int, says: tuple[str, ...], broker: KafkaBroker,
    closed_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with ExitStack() as stack:
        url = f"http://127.0.0.1:{closed_port}"
        if registry != "down":
            made = stack.enter_context(SchemaRegistry(password=SECRET + "x" if registry == "401" else None))
            url = made.url
            if registry == "garbage":
                made.register("events-value", '{"type": "no such type"')
        options = {"timeout-seconds": 10, "registry": {"url": url, "max.retries": "0", "timeout": "2"}}
        if registry == "401":
            options["registry"]["basic.auth.user.info"] = f"reader:{SECRET}"
        file = kafka(tmp_path, broker.bootstrap, options, AVRO)
        told(lambda: open_configured_table(file, "src.events"), kind, code, *says, capsys=capsys)


# -- the state database -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "kind", "code", "says"),
    [
        (f"mysql://me:{SECRET}@db/x", ConfigError, 2, ("mysql can't hold the service's state", "sqlite:///FILE")),
        ("nonsense", ConfigError, 2, ("URL can't be read", "sqlite:///FILE")),
        ("sqlite://", ConfigError, 2, ("can't be held in memory", "Name a file")),
        (f"oracle+cx://me:{SECRET}@db/x", ConfigError, 2, ("oracle can't hold",)),
        ("sqlite:////no/such/folder/s.db", ConfigError, 2, ("did not answer", "folder exists")),
        (
            f"postgresql://me:{SECRET}@127.0.0.1:1/x?sslmod=require", ConfigError, 2, ("sslmod",),
        ),
    ],
)  # fmt: skip
def test_a_state_url(
    url: str, kind: type[LaketierError], code: int, says: tuple[str, ...], closed_port: int, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    document = {**good(tmp_path), "state": url.format(closed=closed_port)}
    file = written(tmp_path, document)
    told(lambda: serves(file), kind, code, *says, capsys=capsys)


@pytest.mark.parametrize(
    ("place", "says", "is_unknown"),
    [
        ("127.0.0.1:{closed}/x", "refused", False),
        ("no-such-host.invalid/x?connect_timeout=2", "no-such-host.invalid", True),
    ],
)
def test_postgresql_that_does_not_answer_may_come_back(
    place: str, says: str, is_unknown: bool, closed_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(
        tmp_path, {**good(tmp_path), "state": f"postgresql://me:{SECRET}@{place.format(closed=closed_port)}"}
    )
    with pytest.raises(typer.Exit) as ended:
        serves(file)
    assert ended.value.exit_code == TRY_LATER
    told = capsys.readouterr().err
    assert all(part in told for part in ("did not answer", says, "Check that the server runs"))
    assert ("Check how the host is written in the URL" in " ".join(told.split())) is is_unknown
    assert SECRET not in told
    assert "Traceback" not in told


def test_postgresql_without_its_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    file = written(tmp_path, {**good(tmp_path), "state": f"postgresql://me:{SECRET}@127.0.0.1/x"})
    told(lambda: serves(file), ConfigError, 2, "can't be reached", "laketier[server,postgresql]", capsys=capsys)


def test_postgresql_that_refuses(server: PostgreSQL, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = server.url().replace(server.password, SECRET)
    file = written(tmp_path, {**good(tmp_path), "state": wrong})
    told(lambda: serves(file), ConfigError, 2, "password authentication failed", f":{server.port}", capsys=capsys)
    file = written(tmp_path, {**good(tmp_path), "state": server.url("nowhere")})
    told(lambda: serves(file), ConfigError, 2, 'database "nowhere" does not exist', capsys=capsys)
    assert server.password not in capsys.readouterr().out


@pytest.mark.parametrize("case", ["a folder", "no database", "of a newer laketier", "damaged"])
def test_a_sqlite_file(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, state = written(tmp_path, good(tmp_path)), tmp_path / "state.db"
    says: tuple[str, ...] = ("did not answer",)
    if case == "a folder":
        state.mkdir()
    elif case == "no database":
        state.write_bytes(b"this is not a database, and long enough to be looked at as one " * 20)
        says = ("state database", "not a database")
    else:
        StateStore.open(f"sqlite:///{state}").close()
        with sqlite3.connect(state) as connection:
            if case == "damaged":
                connection.execute("DROP TABLE tiering_tables")
                says = ("no such table", "whole")
            else:
                connection.execute("UPDATE alembic_version SET version_num = '9999'")
                says = ("of a newer laketier", "9999", "Update laketier here")
        connection.close()
    told(lambda: serves(file), ConfigError, 2, *says, capsys=capsys)
