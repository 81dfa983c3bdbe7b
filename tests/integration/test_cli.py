"""The command line on real tables: what it prints, and its exit codes."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import feather_lake.plugin
import pyarrow as pa
import pytest
import typer

from laketier import open_writer
from laketier.cli.app import app, exit_code, main
from laketier.cli.service import require_server
from laketier.kit.failpoints import observed
from laketier.spi import (
    ConfigError,
    CorruptTable,
    Feature,
    NotBegun,
    OutsideTable,
    StorageError,
    Token,
    host_time,
    unsupported,
)
from laketier.spi.clocks import shifted
from laketier.tiering import RoundOutcome, TieringRound
from laketier.tiering.failpoints import ORPHANS_SELECTED
from laketier.tiering.horizon import raise_horizon
from laketier_verification.lakes import OURS, append, ids, lake_at, rows_of


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Answer]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """The command, in this process: starting one for each call would take most of the time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["laketier", *words])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        return Answer(int(ended.value.code or 0), out, err)

    return call


@pytest.fixture
def table(tmp_path: Path) -> tuple[str, ...]:
    """Words that name a table with epochs 0 and 1 of pipeline p."""
    lake = lake_at(tmp_path / "lake", "localfile")
    append(lake, rows_of(1, 2), epoch=0)
    append(lake, rows_of(3), epoch=1)
    return "db.t", "-f", "localfile", "-w", str(tmp_path / "lake")


def test_status_shows_table_and_watermark(cli: Cli, table: tuple[str, ...]) -> None:
    answer = cli("status", *table, "-s", "lake.pipeline=p", "--json").json()
    assert answer["table"] == "db.t"
    assert answer["snapshot"] == 2
    assert answer["columns"] == {"id": "int64", "name": "string"}
    assert (answer["watermark"]["run"], answer["watermark"]["epoch"]) == ("run", 1)
    assert answer["rounds refused"] is None
    assert "duckdb" in answer["open with"]["DuckDB"]
    text = cli("status", *table, "-s", "lake.pipeline=p").out
    assert "pipeline p at epoch 1 of run run" in " ".join(text.split())


def test_status_without_a_table_lists_them(cli: Cli, table: tuple[str, ...]) -> None:
    assert cli("status", *table[1:]).out.split() == ["db.t"]


def test_settings_come_from_a_file_too(cli: Cli, table: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(f"lake: {{format: localfile, warehouse: {tmp_path / 'lake'}, table: db.t}}\n")
    assert cli("read", "-c", "lake.yaml", "--count").out == "3\n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), [1, 2, 3]),
        (("--where", "id >= 2"), [2, 3]),
        (("--where", "id in 1,3"), [1, 3]),
        (("--where", "id > 1", "--where", "name != n3"), [2]),
        (("--where", "name is null"), []),
        (("-s", "lake.snapshot-id=1"), [1, 2]),
    ],
)
def test_read(cli: Cli, table: tuple[str, ...], words: tuple[str, ...], found: list[int]) -> None:
    rows = cli("read", *table, "--columns", "id", "--json", *words).json()
    assert sorted(row["id"] for row in rows) == found
    assert cli("read", *table, "--count", *words).out == f"{len(found)}\n"


@pytest.mark.parametrize("format", [*OURS, "feather"])
def test_history_of_every_format(cli: Cli, tmp_path: Path, format: str) -> None:
    lake = lake_at(tmp_path / "lake", format)
    append(lake, rows_of(1, 2), epoch=0)
    append(lake, rows_of(3), epoch=1)
    answer = cli("history", "db.t", "-f", format, "-w", str(tmp_path / "lake"), "-n", "2", "--json").json()
    assert len(answer) == 2
    for snapshot, rows in zip(answer, ([1, 2, 3], [1, 2]), strict=True):
        assert ids(lake_at(tmp_path / "lake", format)) == [1, 2, 3]
        at = cli("read", "db.t", "-f", format, "-w", str(tmp_path / "lake"), "--json",
                 "-s", f"lake.snapshot-id={snapshot['snapshot_id']}").json()  # fmt: skip
        assert sorted(row["id"] for row in at) == rows
    if format != "feather":
        assert [(s["rows"], s["pipeline"], s["epoch"]) for s in answer] == [(1, "p", 1), (2, "p", 0)]


def test_adopt_names_other_pipelines_of_its_run(cli: Cli, table: tuple[str, ...]) -> None:
    run = cli("pipeline", "show", *table, "-p", "p", "--json").json()["run"]
    told = cli("pipeline", "adopt", *table, "-p", "q", "--epoch", "1", "--run", run, "-y")
    assert f"p goes on in run {run} as well. If both read the same input, all rows come twice." in told.err
    assert cli("pipeline", "adopt", *table, "-p", "p", "--epoch", "1", "--run", "other", "-y").err == ""


def test_a_pipeline_that_the_table_does_not_know_is_told_with_those_that_it_knows(
    cli: Cli, table: tuple[str, ...]
) -> None:
    told = cli("pipeline", "show", *table, "-p", "q")
    assert (told.code, told.out) == (0, "pipeline q never published here\nThese did: p\n")
    assert cli("pipeline", "show", *table, "-p", "q", "--json").json() is None


def test_the_ways_out_of_a_refusal(cli: Cli, table: tuple[str, ...]) -> None:
    assert cli("pipeline", "show", *table, "-p", "p", "--json").json()["epoch"] == 1
    assert cli("pipeline", "adopt", *table, "-p", "p", "--epoch", "7", "--run", "new", "-y", "--json").json() | {
        "committed_at": 0
    } == {"pipeline": "p", "run": "new", "epoch": 7, "fence": 0, "content": None, "rows": 0, "committed_at": 0,
          "snapshot": None, "forgotten": False, "renamed_to": None}  # fmt: skip
    assert cli("pipeline", "rewind", *table, "-p", "p", "--epoch", "3", "-y").code == 0
    assert cli("pipeline", "show", *table, "-p", "p", "--json").json()["epoch"] == 3
    assert cli("pipeline", "forget", *table, "-p", "p", "-y").code == 0
    assert cli("pipeline", "show", *table, "-p", "p", "--json").json()["forgotten"] is True
    assert cli("read", *table, "--count").out == "3\n"


def test_a_pipeline_goes_on_under_another_name(
    cli: Cli, table: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("pipeline", "rename", *table, "-p", "p", "--to", "q")
    looked = cli(*words, "--dry-run", "--json").json()
    assert looked == {"dry_run": True, "renamed": [{"table": "db.t", "old": "p", "new": "q", "found": "to close"}]}
    assert cli(*words, "--dry-run").out == "db.t: p would go on as q\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert cli(*words).code == 1
    assert cli("pipeline", "show", *table, "-p", "p", "--json").json()["forgotten"] is False
    assert cli(*words, "-y").out == "db.t: p goes on as q\n"
    assert cli("pipeline", "show", *table, "-p", "p", "--json").json()["renamed_to"] == "q"
    assert "(goes on as q)" in cli("pipeline", "show", *table, "-p", "p").out
    assert cli("pipeline", "show", *table, "-p", "q", "--json").json()["epoch"] == 1
    assert cli(*words, "-y", "--json").json()["renamed"][0]["found"] == "done"
    refused = cli("pipeline", "rename", *table, "-p", "p", "--to", "a b", "-y")
    assert (refused.code, "is not a pipeline id" in refused.err) == (2, True)
    unknown = cli("pipeline", "rename", *table, "-p", "nobody", "--to", "r", "-y")
    assert (unknown.code, "does not know pipeline 'nobody'" in unknown.err) == (3, True)


def test_setting_a_watermark_asks_first(cli: Cli, table: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert cli("pipeline", "forget", *table, "-p", "p").code == 1
    assert cli("pipeline", "show", *table, "-p", "p", "--json").json()["forgotten"] is False


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("read", "db.t", "-f", "localfiel", "-w", "lake"), 2, "Did you mean 'localfile'"),
        (("read", "db.none", "-f", "localfile", "-w", "lake"), 2, "TableNotFound"),
        (("read", "db.t", "-f", "localfile", "-w", "lake", "--where", "idd > 1"), 2, "no column 'idd'"),
        (("read", "db.t", "-f", "localfile", "-w", "lake", "--where", "id > x"), 2, "is not int64"),
        (("read", "db.t", "-f", "localfile", "-w", "lake", "-s", "lake.snapshot"), 2, "is not KEY=VALUE"),
        (("read", "db.t", "-f", "localfile", "-w", "lake", "-s", "lake.snpshot-id=1"), 2, "'lake.snapshot-id'"),
        (("read", "-c", "none.yaml"), 2, "does not exist"),
        (("pipeline", "forget", "db.t", "-f", "localfile", "-w", "lake", "-p", "q", "-y"), 3, "does not know"),
        (("run", "none.yaml"), 2, "does not exist"),
        (("conformance", "none"), 2, "no plugin"),
        (("conformance", "feather", "--report", "."), 2, "no report can be written to"),
        (("conformance",), 2, "or --source and that of a source"),
        (("conformance", "feather", "--source", "lines"), 2, "'feather' and the source 'lines' are named"),
        (("conformance", "--source", "line"), 2, "Did you mean 'lines'"),
        ((), 2, "Usage"),
    ],
)
def test_errors_say_what_to_do_and_have_a_code(
    cli: Cli, table: tuple[str, ...], words: tuple[str, ...], code: int, says: str
) -> None:
    answer = cli(*words)
    assert answer.code == code, answer
    assert says in answer.err + answer.out


def test_formats_names_all_and_what_they_lack(cli: Cli) -> None:
    found = {entry["format"]: entry for entry in cli("formats", "--json").json()}
    assert set(OURS) <= found.keys()
    assert all(entry["error"] is None for entry in found.values())
    assert found["lance"]["features"]["partitioning"]
    assert found["delta"]["features"]["partitioning"] == ""


def test_a_broken_plugin_is_listed_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "broken_plugin.py").write_text("import not_there")
    info = tmp_path / "broken_lake-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-lake\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[laketier.formats]\nbroken = broken_plugin\n")
    code = "import sys; sys.path.insert(0, '.'); from laketier.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "formats", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = {entry["format"]: entry for entry in json.loads(done.stdout)}
    assert "No module named 'not_there'" in found["broken"]["error"]
    assert found["localfile"]["error"] is None


@pytest.mark.parametrize("command", ["orphans", "open-files", "repair"])
def test_what_a_format_does_not_maintain_is_told_by_its_name(
    cli: Cli, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(feather_lake.plugin.FEATURES, Feature.ORPHAN_COLLECTION, unsupported("it is kept small"))
    lake = lake_at(tmp_path / "w", "feather")
    append(lake, rows_of(1, 2))
    refused = cli("maintain", command, "db.t", "-f", "feather", "-w", str(tmp_path / "w"))
    assert refused.code != 0
    assert "feather does not support orphan-collection, because it is kept small" in refused.err


def test_every_command_has_help_with_an_example(cli: Cli) -> None:
    groups = ["demo", "formats", "run", "read", "status", "history", "doctor", "conformance"]
    commands = [(name,) for name in groups] + [
        ("pipeline", name) for name in ("show", "adopt", "rewind", "forget", "rename")
    ]
    commands += [("maintain", name) for name in ("orphans", "open-files", "repair")]
    for command in commands:
        answer = cli(*command, "--help")
        assert answer.code == 0
        assert "Example: " in answer.out, command


def test_version(cli: Cli) -> None:
    assert cli("--version").out.startswith("laketier ")


def test_what_others_stumble_over_is_found_and_mended_only_when_told(cli: Cli, tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake", "iceberg")
    words = ("db.t", "-f", "iceberg", "-w", str(tmp_path / "lake"))
    append(lake, rows_of(1, 2), epoch=0)
    append(lake, rows_of(3), epoch=1)
    assert cli("maintain", "repair", *words).out == "nothing to repair\n"
    newest = max((tmp_path / "lake/db/t/metadata").glob("*.metadata.json"), key=lambda path: path.name)
    document = json.loads(newest.read_text())
    document["snapshot-log"][0]["timestamp-ms"] += 3_600_000
    newest.write_text(json.dumps(document))
    found = json.loads(cli("doctor", *words, "--json").out)
    assert [f["subject"] for f in found if "maintain repair" in f["fix"]] == ["table"] * 2
    listed = cli("maintain", "repair", *words)
    assert listed.code == 1
    assert "snapshot log run backwards once" in listed.out
    again = cli("maintain", "repair", *words).out
    # It tells the time, too.
    assert re.sub(r"\d", "", again) == re.sub(r"\d", "", listed.out), "looking changes nothing"
    assert "repaired: times in the snapshot log" in cli("maintain", "repair", *words, "--apply").out
    assert cli("maintain", "repair", *words, "--json").json() == {"findings": [], "left": []}
    assert not any("repair" in finding["fix"] for finding in cli("doctor", *words, "--json").json())
    assert ids(lake) == [1, 2, 3]
    assert cli("status", *words, "-s", "lake.pipeline=p", "--json").json()["watermark"]["epoch"] == 1


def test_orphans_are_listed_and_deleted_only_when_told(cli: Cli, table: tuple[str, ...], tmp_path: Path) -> None:
    staged = tmp_path / "lake/db/t/__in_progress" / "part-00000-dead-0000.parquet.inprogress"
    staged.write_bytes(b"dead")
    old = time.time() - 90_000
    os.utime(staged, (old, old))
    assert "no orphans" in cli("maintain", "orphans", *table).out
    listed = cli("maintain", "orphans", *table, "--older-than", "24h")
    assert staged.name in listed.out
    assert "nothing was changed" in listed.out
    assert staged.exists()
    deleted = cli("maintain", "orphans", *table, "--older-than", "24h", "--delete", "--json").json()
    assert [(file["kind"], file["bytes"], file["deleted"]) for file in deleted["files"]] == [("data", 4, True)]
    assert not staged.exists()
    assert cli("read", *table, "--count").out.strip() == "3"


def test_what_another_collection_deleted_is_not_claimed(cli: Cli, table: tuple[str, ...], tmp_path: Path) -> None:
    """A collector that stood still meanwhile said that it had deleted them."""
    staged = tmp_path / "lake/db/t/__in_progress" / "part-00000-dead-0000.parquet.inprogress"
    staged.write_bytes(b"dead")
    old = time.time() - 90_000
    os.utime(staged, (old, old))
    with observed(lambda point: staged.unlink() if point == ORPHANS_SELECTED else None):
        said = cli("maintain", "orphans", *table, "--older-than", "24h", "--delete").out
    assert "gone: 1, 4 bytes, deleted here or by another collection meanwhile" in said


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("name in ('n1', 'n3')", [1, 3]),
        ("name IN (n1, n3)", [1, 3]),
        ("id <> 2", [1, 3]),
        ("id == 2", [2]),
        ("name = 'n''2'", []),
        ("name IS NOT NULL", [1, 2, 3]),
        ("name starts with n", [1, 2, 3]),
    ],
)
def test_comparisons_as_people_write_them(cli: Cli, table: tuple[str, ...], where: str, kept: list[int]) -> None:
    assert [row["id"] for row in cli("read", *table, "--where", where, "--json").json()] == kept


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("name = 'n1' and name = 'n2'", "more than one comparison"),
        ("id is null or id = 1", "more than one comparison"),
        ("id = 1 and id = 2", "more than one comparison"),
        ("name in ('n1' 'n2')", "more than one comparison"),
        ("id =", "the value is missing"),
        ("id in (1,)", "a value of the list is missing"),
        ("name = null", "is null"),
        ("name like 'n%'", "starts with"),
        ("ID = 1", "Did you mean 'id'?"),
        ("id = soon", "'soon' is not int64"),
    ],
)
def test_a_comparison_that_is_none_is_refused_whole(cli: Cli, table: tuple[str, ...], where: str, says: str) -> None:
    """Never read in part: rows would be missing from the answer without a word."""
    refused = cli("read", *table, "--where", where)
    assert (refused.code, refused.out) == (2, "")
    assert says in refused.err


def test_a_moment_is_told_with_its_zone(cli: Cli, table: tuple[str, ...]) -> None:
    now = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    for text in (now.isoformat(), now.isoformat().replace("+00:00", "Z"), str(int(now.timestamp() * 1000))):
        assert cli("read", *table, "-s", f"lake.as-of={text}", "--count").out.strip() == "3"
    there = now.astimezone(timezone(timedelta(hours=-5))).isoformat()
    assert cli("read", *table, "-s", f"lake.as-of={there}", "--count").out.strip() == "3"
    naive = cli("read", *table, "-s", "lake.as-of=2026-11-22T06:00:00", "--count")
    assert (naive.code, "has no time zone" in naive.err) == (2, True)
    assert "is no moment" in cli("read", *table, "-s", "lake.as-of=yesterday", "--count").err


@pytest.mark.parametrize("format", OURS)
def test_status_lists_all_pipelines(cli: Cli, tmp_path: Path, format: str) -> None:
    lake = lake_at(tmp_path / "lake", format)
    words = ("db.t", "-f", format, "-w", str(tmp_path / "lake"))
    append(lake, rows_of(1))
    assert cli("status", *words, "--json").json()["pipelines"] == {}
    append(lake, rows_of(2), epoch=0)
    factory = lake.tiering_factory(lake.load_table())
    TieringRound(factory, token=Token("q.2", "r", 0)).commit([])
    raise_horizon(factory, lake.load_table().table_uuid, 1)
    found = cli("status", *words, "--json").json()
    assert {name: mark["epoch"] for name, mark in found["pipelines"].items()} == {"p": 0, "q.2": 0}
    assert "pipeline q.2 at epoch 0" in cli("status", *words).out


def test_a_table_that_a_service_has_not_is_told_with_the_command_that_lists_them(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "my service.yaml"
    drop = {"type": "files", "options": {"path": str(tmp_path)}}
    sink = {"lake.format": "localfile", "lake.warehouse": str(tmp_path / "lake")}
    tables = [{"source": "drop", "sink": sink, "target": "shop.{table}", "freshness": "1 min"}]
    state = f"sqlite:///{tmp_path / 'state.db'}"
    file.write_text(json.dumps({"name": "s", "state": state, "sources": {"drop": drop}, "tables": tables}))
    told = cli("service", "rounds", str(file), "orders")
    assert (told.code, f"`laketier service status '{file}'` lists them." in told.err) == (2, True)


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ({"alembic"}, "alembic is not installed"),
        ({"alembic", "sqlalchemy"}, "alembic and sqlalchemy are not installed"),
        ({"jinja2"}, "jinja2 is not installed"),
    ],
)
def test_what_the_service_lacks(monkeypatch: pytest.MonkeyPatch, missing: set[str], says: str) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else found(name))
    with pytest.raises(ConfigError, match=says):
        require_server()


def test_errors_are_json_where_json_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    refused = cli("status", "db.none", "-f", "localfile", "-w", str(tmp_path), "--json")
    told = refused.json()["error"]
    assert (refused.code, told["exit_code"], told["type"]) == (2, 2, "TableNotFound")
    assert told["message"] in refused.err
    assert cli("status", "db.none", "-f", "localfile", "-w", str(tmp_path)).out == ""


def test_what_is_no_error_of_ours_is_json_as_well(
    cli: Cli, table: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    aborted = cli("maintain", "horizon", *table, "--lower", "--json")
    assert (aborted.code, aborted.json()["error"]["type"]) == (1, "Aborted")
    assert "aborted" in aborted.err

    def broken(*_: object) -> None:
        raise ValueError("nobody foresaw password=hunter2hunter2")

    monkeypatch.setattr("laketier.cli.maintain.show_horizon", broken)
    monkeypatch.setattr(sys, "argv", ["laketier", "maintain", "horizon", *table, "--json"])
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    told = json.loads(capfd.readouterr().out)["error"]
    assert (told["type"], told["exit_code"]) == ("ValueError", 1)
    assert "hunter2" not in told["message"]


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (CorruptTable("a manifest is damaged"), 2),
        (ConfigError("the catalog has another address"), 2),
        (OutsideTable("a folder is a link"), 3),
        (StorageError("the storage did not answer"), 4),
        (ValueError("of a library"), 4),
        (None, 4),
    ],
)
def test_a_commit_that_did_not_begin_ends_as_its_cause_does(cause: Exception | None, code: int) -> None:
    """Whoever tries again for each code 4 would do so for ever where a person is needed."""
    error = NotBegun("a step before the commit failed")
    error.__cause__ = cause
    assert exit_code(error) == code


@pytest.mark.parametrize("text", ["99999999999d", "9" * 5000 + "h", "36501d"])
def test_a_duration_of_ages_is_refused(cli: Cli, table: tuple[str, ...], text: str) -> None:
    refused = cli("maintain", "orphans", *table, "--older-than", text, "--json")
    assert (refused.code, refused.json()["error"]["type"]) == (2, "ConfigError")
    assert cli("maintain", "orphans", *table, "--older-than", "36500d", "--json").code == 0


def test_a_column_may_have_an_operator_in_its_name(cli: Cli, tmp_path: Path) -> None:
    names = ["Check In", "Sign-In date", "a", "a in"]
    lake = lake_at(tmp_path / "lake", "localfile")
    append(lake, pa.record_batch({"id": [1, 2]} | {name: [1, 2] for name in names}), epoch=0)
    for where in [*(f"{name} = 2" for name in names), "a in (2, 3)", "a in in (2, 3)"]:
        found = cli("read", "db.t", "-f", "localfile", "-w", str(tmp_path / "lake"), "--where", where, "--json").json()
        assert [row["id"] for row in found] == [2], where


def test_a_suite_that_gave_no_verdict_is_no_success(cli: Cli) -> None:
    listed = cli("conformance", "feather", "--", "--collect-only", "-q", "-p", "no:cacheprovider")
    assert (listed.code, "without the verdict conformant (it is none)" in listed.err) == (1, True)
    for own in ("--lake-report=x", "--lake-format=delta"):
        assert cli("conformance", "feather", "--", own).code == 2


def test_tests_that_are_asked_for_are_a_success_and_no_verdict(cli: Cli, tmp_path: Path) -> None:
    """By the name of one, and of a file."""
    report = tmp_path / "feather.json"
    named = str(tmp_path / "{format}.json")
    words = ("--test", "test_serializer.py::test_a_result_travels_unchanged", "--test", "test_indexing.py")
    ran = cli("conformance", "feather", "--report", named, *words, "--", "-q", "-p", "no:cacheprovider")
    told = json.loads(report.read_text())
    assert (ran.code, told["as_asked"], told["verdict"], told["conformant"]) == (0, True, "partial", False), ran.err
    some = cli("conformance", "feather", *words, "--", "-q", "-p", "no:cacheprovider", "-k", "travels")
    assert some.code == 1


def test_a_source_is_proven_with_options_of_pytest(cli: Cli) -> None:
    """What follows `--` is no format, so the command that a failure names may have options there, too."""
    words = ("conformance", "--source", "lines", "--test", "test_tables.py::test_tables_are_listed", "--")
    ran = cli(*words, "-q", "-p", "no:cacheprovider", "--log-harness=lines_log.harness:LinesHarness")
    assert ran.code == 0, ran.err
    refused = cli(*words, "--log-lake=deltaa")
    assert (refused.code, "Did you mean 'delta'" in refused.err) == (4, True), refused.err


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("status", "--tabel"), "laketier status"),
        (("pipeline", "shw"), "laketier pipeline"),
        (("read", "t", "--limit", "few"), "laketier read"),
    ],
)
def test_a_call_that_is_wrong_is_json_as_well(cli: Cli, words: tuple[str, ...], where: str) -> None:
    refused = cli(*words, "--json")
    told = refused.json()["error"]
    assert (refused.code, told["exit_code"], told["where"]) == (2, 2, where)
    assert told["fix"] == f"{where} --help"
    assert told["message"].split()[0] in refused.err
    assert cli(*words).out == ""


HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31mb\u202ec"


def test_control_characters_are_shown_and_not_sent(cli: Cli, tmp_path: Path) -> None:
    """In rows, in names of columns, in errors; and JSON has them escaped, so that they come out as they were."""
    lake = lake_at(tmp_path / "lake", "localfile")
    batch = pa.record_batch({"id": [1], f"n{HOSTILE}": [HOSTILE]})
    append(lake, batch, epoch=0)
    words = ("db.t", "-f", "localfile", "-w", str(tmp_path / "lake"))
    answers = [
        cli("read", *words),
        cli("status", *words),
        cli("read", *words, "--where", f"{HOSTILE} = 1"),
        cli("read", *words, "--json"),
        cli("status", *words, "--json"),
        cli("pipeline", "show", *words, "-p", f"x{HOSTILE}"),
        cli("status", "db.t", "-f", "localfile", "-w", f"ftp://{HOSTILE}"),
    ]
    for answer in answers:
        assert not set("\x1b\x07\x9b\u202e") & set(answer.out + answer.err)
    assert "\\x1b" in answers[0].out
    assert answers[3].json() == [{"id": 1, f"n{HOSTILE}": HOSTILE}]


def test_a_collection_by_a_clock_ten_days_ahead_stops_nobody(cli: Cli, table: tuple[str, ...], tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake", "localfile")
    staged = tmp_path / "lake/db/t/__in_progress" / "part-00000-dead-0000.parquet.inprogress"
    staged.write_bytes(b"dead")
    os.utime(staged, (time.time() - 400_000,) * 2)
    with shifted(10 * 86_400_000):
        assert cli("maintain", "orphans", *table, "--delete").code == 0
    assert not staged.exists()
    assert append(lake, rows_of(4), epoch=2).outcome is RoundOutcome.PUBLISHED
    assert "from before" in cli("maintain", "horizon", *table).out
    assert cli("maintain", "horizon", *table, "--json").json()["ahead"] == 0
    assert "were collected" in next(
        f["finding"] for f in cli("doctor", *table, "--json").json() if f["subject"] == "orphans"
    )


def test_a_horizon_in_the_future_is_seen_and_lowered(cli: Cli, table: tuple[str, ...], tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake", "localfile")
    info = lake.load_table()
    assert cli("maintain", "horizon", *table).out.strip() == "orphans were never collected"
    raise_horizon(lake.tiering_factory(info), info.table_uuid, host_time() + 10 * 86_400_000)
    seen = cli("doctor", *table)
    assert seen.code == 2
    assert f"`laketier maintain horizon --lower db.t -f localfile -w {tmp_path / 'lake'}`" in seen.out
    assert "10d ahead" in cli("maintain", "horizon", *table).out
    refused = cli("pipeline", "forget", *table, "-p", "laketier-orphans", "--yes")
    assert (refused.code, "maintain horizon" in refused.err) == (2, True)
    assert "10d ahead" in cli("maintain", "horizon", *table).out
    assert cli("maintain", "horizon", *table, "--lower", "--yes").code == 0
    assert cli("maintain", "horizon", *table, "--json").json()["ahead"] == 0
    again = cli("maintain", "horizon", *table, "--lower", "--yes")
    assert (again.code, "no horizon that lies in the future" in again.err) == (2, True)


def test_a_short_grace_needs_a_word(cli: Cli, table: tuple[str, ...]) -> None:
    refused = cli("maintain", "orphans", *table, "--older-than", "23h", "--delete")
    assert (refused.code, "--no-other-writers" in refused.err) == (2, True)
    assert cli("maintain", "orphans", *table, "--older-than", "0s", "--delete", "--no-other-writers").code == 0
    assert "is not a duration" in cli("maintain", "orphans", *table, "--older-than", "soon").err


def test_open_files_are_listed_and_finished_only_when_told(cli: Cli, tmp_path: Path) -> None:
    words = ("db.t", "-f", "localfile", "-w", str(tmp_path / "lake"))
    keys = {"lake.format": "localfile", "lake.warehouse": str(tmp_path / "lake"), "lake.table": "db.t"}
    keys |= {"lake.localfile.open-files": "true", "lake.localfile.file-format": "json"}
    schema = pa.schema([("id", pa.int64())])
    for pipeline in ("clicks", "views"):
        open_writer({**keys, "lake.pipeline": pipeline}, schema).write(0, [pa.record_batch([[1, 2]], schema=schema)])
    command = ("maintain", "open-files", *words)
    listed = cli(*command)
    assert listed.code == 0
    assert "2 open files, 4 rows\nnothing was changed" in listed.out
    assert [file["pipeline"] for file in cli(*command, "--json").json()["left"]] == ["clicks", "views"]
    done = cli(*command, "--pipeline", "clicks", "--finish")
    assert (done.code, "1 finished" in done.out) == (0, True)
    (left,) = cli(*command, "--json").json()["files"]
    assert (left["pipeline"], left["rows"], left["epoch"]) == ("views", 2, 0)
    assert cli(*command, "--finish", "--json").json()["left"] == []
    assert cli(*command).out == "no open files\n"
    assert len(list((tmp_path / "lake/db/t").glob("part-*.json"))) == 2


def test_each_number_has_an_end(cli: Cli, table: tuple[str, ...]) -> None:
    """Formats, Arrow and databases count in 64 bits: beyond that each raised an error of its own."""
    ends: dict[str, Any] = {}

    def look(command: Any, name: str) -> None:
        for inner, each in getattr(command, "commands", {}).items():
            look(each, f"{name} {inner}")
        ends.update({f"{name} {each.name}": each.max for each in command.params if each.min in (0, 1)})

    look(typer.main.get_command(app), "laketier")
    assert len(ends) > 10
    assert [name for name, end in ends.items() if end is None] == []
    assert cli("read", *table, "--limit", str(2**63)).code == 2
    assert cli("read", *table, "--limit", str(2**63 - 1), "--json").code == 0


BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""As commands run: what could not be written waits in a stream until Python ends."""


def _to(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", "from laketier.cli.app import main; main()"]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {command}', "sh", *words, "--version"],
        cwd=folder,
        env=BUFFERED,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_result_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    ended = _to(">/dev/full", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("StorageError standard output can't be written, because No space left on device.")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_an_error_that_nobody_can_be_told_keeps_its_code(table: tuple[str, ...], tmp_path: Path) -> None:
    words = [sys.executable, "-c", "from laketier.cli.app import main; main()", "status", "db.none", *table[1:]]
    told = subprocess.run(["sh", "-c", 'exec "$@" 2>/dev/full', "sh", *words], cwd=tmp_path, env=BUFFERED, timeout=120)
    assert told.returncode == 2


def test_streams_that_are_closed_are_opened_onto_nothing(tmp_path: Path) -> None:
    """The next file that is opened would be called as they are, and a library's lines would go into it."""
    script = (
        "import os, sys; from laketier.cli.shown import fill_closed; fill_closed(); f = open('rows', 'w'); "
        "sys.exit(f.fileno() > 2 and None not in (sys.stdin, sys.stdout, sys.stderr) and not sys.stdout.isatty())"
    )
    ended = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", script], cwd=tmp_path)
    assert ended.returncode == 1
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        assert _to(closed, tmp_path).returncode == 0


_INTERRUPTED = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's script begins what is beside it without

class Interrupting:
    @staticmethod
    def find_spec(name, *_):
        if name == "laketier.cli.app":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting)
from laketier.cli.console import main
main()
"""


def test_ctrl_c_while_the_command_is_imported_is_no_error() -> None:
    process = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (-signal.SIGINT, "")


_INTERRUPTED_COMMAND = """
from laketier.cli.app import app, main

@app.command()
def wait(json: bool = False):
    raise KeyboardInterrupt

main()
"""


def test_ctrl_c_within_a_command_is_told() -> None:
    command = [sys.executable, "-c", _INTERRUPTED_COMMAND, "wait", "--json"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (130, "interrupted\n")
    assert json.loads(process.stdout)["error"]["exit_code"] == 130


_SENDING = """
import logging, sys
from laketier.cli.app import app, main

@app.command()
def send():
    from py4j import java_gateway
    exec(compile("import logging; logging.error('Exception while sending command.')", java_gateway.__file__, "exec"))
    logging.error("another")

main()
"""


@pytest.mark.parametrize(("verbose", "shown"), [(False, 1), (True, 2)])
def test_what_py4j_logs_and_raises_is_told_once(verbose: bool, shown: int) -> None:
    command = [sys.executable, "-c", _SENDING, *(["--verbose"] if verbose else []), "send"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr.count("ERROR root")) == (0, shown)
