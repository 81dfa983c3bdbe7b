"""`laketier dead-letter`: what people see of bad records, and another try at them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from laketier.cli.app import app
from laketier.cli.serve import _engine
from laketier.config.service import load_service
from laketier.service.state import StateStore
from laketier.service.tables import ServiceTables
from laketier.service.worker import TieringWorker, WorkerSettings
from laketier.spi import ConfigError, TableNotFound
from laketier_verification.lines import LinesTable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A service whose tables `t` and `clean` were tiered once."""
    LinesTable(tmp_path / "logs", "clean").create().append(1)
    source = LinesTable(tmp_path / "logs", "t").create()
    source.append(1)
    source.append_raw('{"id": "2"}', "[red]poison[/]", "\x1b[2J", '{"id": "5"}')
    with (source.folder / "0.jsonl").open("ab") as log:
        log.write(b"\xff\xfe\n")
    sink = {"lake.format": "localfile", "lake.warehouse": str(tmp_path / "lake")}
    document = {
        "name": "tests",
        "state": f"sqlite:///{tmp_path}/state.db",
        "sources": {"src": {"type": "lines", "options": {"path": str(tmp_path / "logs")}}},
        "defaults": {"target": "db.{table}", "sink": sink, "on-bad-record": "dead-letter"},
        "tables": [{"source": "src"}],
    }
    path = tmp_path / "service.yaml"
    path.write_text(json.dumps(document))
    described = load_service(path)
    with StateStore.open(described.state, service=described.name) as store, _engine("local", described) as (engine, *_):
        tables = ServiceTables(described, store, origin="the test")
        tables.discover()
        assert TieringWorker(store, tables, engine, WorkerSettings(until_idle=True)).run()
        tables.close()
    return path


def _said(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["dead-letter", *map(str, arguments)])
    if done.exception is not None:
        raise done.exception
    return done.output


def _json(*arguments: object) -> Any:
    return json.loads(_said(*arguments, "--json"))


def test_dead_letters_are_listed_shown_and_replayed(file: Path) -> None:
    (of_clean, of_t) = _json("list", file)
    assert (of_clean["table"], of_clean["records"], of_clean["errors"]) == ("src.clean", 0, [])
    assert (of_t["table"], of_t["dead_letters"], of_t["records"]) == ("src.t", "db.t__dead_letters", 5)
    assert (of_t["open"], of_t["replayed"]) == (5, 0)
    shown = _json("show", file, "src.t")
    assert [(each["offset"], each["value"], each["state"]) for each in shown] == [
        (5, "0xfffe", "open"),
        (4, '{"id": "5"}', "open"),
        (3, "0x1b5b324a", "open"),
        (2, "[red]poison[/]", "open"),
        (1, '{"id": "2"}', "open"),
    ]
    assert [each["offset"] for each in _json("show", file, "db.t", "--limit", 2)] == [5, 4]
    assert [each["value"] for each in _json("show", file, "src.t", "--where", "0/2")] == ["[red]poison[/]"]
    assert "value: [red]poison[/]" in _said("show", file, "src.t")

    LinesTable(file.parent / "logs", "t").describe(ids_as_text=True)
    tried = _json("replay", file, "src.t", "--dry-run")
    assert (tried["replayed"], tried["unfit"], _json("list", file)[1]["open"]) == (2, 3, 5)
    assert "src.t: 2 replayed (2 rows), 3 still can't be decoded or stored" in _said("replay", file, "src.t")
    assert {each["offset"]: each["state"] for each in _json("show", file, "src.t")} == {
        1: "replayed", 2: "open", 3: "open", 4: "replayed", 5: "open",
    }  # fmt: skip
    (_, of_t) = _json("list", file)
    assert (of_t["open"], of_t["replayed"]) == (3, 2)
    assert sum(each["records"] for each in of_t["errors"]) == 5
    assert "db.t__dead_letters" in _said("list", file)


@pytest.mark.parametrize("where", ["nonsense", "0/x", "0/-1", "7"])
def test_a_place_that_is_none(where: str) -> None:
    with pytest.raises(ConfigError, match=r"is not BUCKET/OFFSET\. For example --where 0/1234"):
        _said("show", "service.yaml", "src.t", "--where", where)


def test_tables_without_dead_letters_and_tables_that_are_none(file: Path) -> None:
    assert _json("show", file, "src.clean") == []
    assert _json("replay", file, "src.clean")["replayed"] == 0
    document = json.loads(file.read_text())
    document["defaults"]["target"] = "elsewhere.{table}"
    file.write_text(json.dumps(document))
    assert _json("list", file) == []
    assert "No table has dead letters." in _said("list", file)
    for command in ("show", "replay"):
        with pytest.raises(TableNotFound, match="no dead letters"):
            _said(command, file, "src.t")
        with pytest.raises(ConfigError, match=r"no table 'src\.no'"):
            _said(command, file, "src.no")
