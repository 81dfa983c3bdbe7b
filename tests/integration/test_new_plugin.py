"""``laketier new-plugin``: what it makes is conformant as it is, and nothing that exists is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import warmed
from conformance_runs import SUITE, offered
from laketier.cli.app import main
from laketier.cli.new_plugin.distribution import FORMATS, Kind, write_distribution
from laketier.cli.new_plugin.names import names_of

ROOT = Path(__file__).resolve().parents[2]
KINDS = [kind.value for kind in Kind]
QUICK = [
    "test_rounds.py::test_every_row_is_there_with_its_values",
    "test_isolation.py::test_what_is_staged_is_not_visible",
    "test_overwrite.py::test_all_rows_are_replaced",
    "test_declaration.py",
    "test_filters.py::test_whether_a_nested_value_is_null",  # of a format without nested types
    "test_serializer.py::test_the_names_of_replaced_files_travel",  # of one without upserts
    "test_races.py::test_columns_added_side_by_side",  # of one that adds no columns
    "test_catalog.py::test_a_table_made_as_another_one_is_described",  # of one whose tables are in one file
]


def made(tmp_path: Path, kind: str) -> Path:
    folder, _ = write_distribution(names_of("acme-x", Kind(kind).noun), Kind(kind), tmp_path)
    return folder


def suite(project: Path, *words: str) -> tuple[int, str]:
    """The suite, run in the author's folder and so with the author's settings of pytest."""
    offers = offered(
        project.parent / "offers", {"acme-x": "acme_x_lake.plugin"}, {"acme-x": "acme_x_lake.conformance:Harness"}
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(offers), str(project)))}
    said = project.parent / "said"
    code = warmed.run(["-q", "-p", "no:cacheprovider", *words], project, environment, said)
    return code, said.read_text()


@pytest.mark.parametrize("kind", ["database"])
def test_it_keeps_the_contract(kind: str, tmp_path: Path) -> None:
    """A selection; the whole suite, on each kind, is below."""
    project = made(tmp_path, kind)
    tests = [str(SUITE / test) for test in QUICK]
    report = tmp_path / "report.json"
    words = ["--lake-format=acme-x", "--lake-lanes=bare", f"--lake-report={report}", *tests, "tests/test_rounds.py"]
    _, output = suite(project, *words)
    outcomes = {name: result["outcome"] for name, result in json.loads(report.read_text())["results"].items()}
    assert len(outcomes) > 5
    assert set(outcomes.values()) <= {"passed", "refused"}, output
    assert "failed" not in output, output


BEGUN = """
import pyarrow as pa

from laketier.registry import configure, open_lake
from laketier.tables import prepare_table


def test_a_table_is_made(tmp_path):
    (tmp_path / "{file}").touch()
    lake = open_lake(configure({{"lake.format": "acme-x", "lake.warehouse": str(tmp_path), "lake.table": "db.t"}}))
    assert lake.storage.catalog().list_tables() == []
    prepare_table(lake, pa.schema([("id", pa.int64())]))
    assert [str(path) for path in lake.storage.catalog().list_tables()] == ["db.t"]
"""


@pytest.mark.parametrize(("kind", "file"), [("database", "acme-x.sqlite"), ("table-library", "library.sqlite")])
def test_a_table_is_made_where_the_first_creation_was_killed(kind: str, file: str, tmp_path: Path) -> None:
    """The file is there, and nothing is in it. The suite asks this of each file that is made before a sync."""
    project = made(tmp_path, kind)
    (project / "tests" / "test_begun.py").write_text(BEGUN.format(file=file))
    code, output = suite(project, "tests/test_begun.py")
    assert code == 0, output


DAMAGED = """
import pyarrow as pa
import pytest

from laketier.registry import configure, open_lake
from laketier.spi import CorruptTable, ScanRequest
from laketier.tables import prepare_table
from laketier.tiering import TieringRound, write_task

ERRORS = (OSError, FileNotFoundError, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError)


def test_a_damaged_file_is_told(tmp_path, monkeypatch):
    lake = open_lake(configure({"lake.format": "acme-x", "lake.warehouse": str(tmp_path), "lake.table": "db.t"}))
    batch = pa.record_batch({"id": [1]})
    factory = lake.storage.tiering_factory(prepare_table(lake, batch.schema))
    TieringRound(factory).commit_messages([write_task(factory, [batch])])
    source = lake.source(lake.load_table())
    plan = source.plan(ScanRequest())
    for error in ERRORS:
        def damaged(*_, **__):
            raise error("damage")

        monkeypatch.setattr(pa.ipc, "open_file", damaged)
        with pytest.raises(CorruptTable):
            list(source.read(plan.splits[0], plan.schema))
"""


@pytest.mark.parametrize("kind", ["manifest", "table-library"])
def test_whatever_arrow_says_of_a_damaged_file_is_damage(kind: str, tmp_path: Path) -> None:
    """One bit of another value is an integer of a hundred bits, which Arrow says is not implemented."""
    project = made(tmp_path, kind)
    (project / "tests" / "test_damaged.py").write_text(DAMAGED)
    code, output = suite(project, "tests/test_damaged.py")
    assert code == 0, output


FAILED_FIRST = """
import pyarrow as pa
import pytest

from laketier.registry import configure, open_lake
from laketier.spi import CommitterInitContext, NotBegun, WriterInitContext, new_attempt_id
from laketier.tables import prepare_table


@pytest.mark.parametrize("rows", {rows})
def test_a_look_fails(tmp_path, rows):
    lake = open_lake(configure({{"lake.format": "acme-x", "lake.warehouse": str(tmp_path), "lake.table": "db.t"}}))
    batch = pa.record_batch({{"id": pa.array(rows, pa.int64())}})
    factory = lake.storage.tiering_factory(prepare_table(lake, batch.schema))
    with factory.create_writer(WriterInitContext(new_attempt_id())) as writer:
        writer.write(batch)
        result = writer.complete()
    committer = factory.create_committer(CommitterInitContext(new_attempt_id()))
    state = committer.open()
    (tmp_path / "{file}").write_bytes(b"no database" * 1000)
    with pytest.raises(NotBegun):
        committer.publish(state, [result], None)
"""


@pytest.mark.parametrize(
    ("kind", "file", "rows"),
    # Without rows, the library is asked for nothing but its commit, and of that nobody knows.
    [("database", "acme-x.sqlite", [[1], []]), ("table-library", "library.sqlite", [[1]])],
)
def test_a_step_before_the_commit_that_fails_is_told_as_one(
    kind: str, file: str, rows: list[list[int]], tmp_path: Path
) -> None:
    """Its rows are certainly not there, and a batch has nothing by which it could be recognised."""
    project = made(tmp_path, kind)
    (project / "tests" / "test_failed_first.py").write_text(FAILED_FIRST.format(file=file, rows=rows))
    code, output = suite(project, "tests/test_failed_first.py")
    assert code == 0, output


WARNING = """
import warnings

import pytest


def pytest_configure():
    warnings.warn(pytest.PytestDeprecationWarning("a setting is not made"))
"""


def test_other_plugins_of_pytest_may_warn_while_it_starts(tmp_path: Path) -> None:
    """As pytest-asyncio does. Its warning ended pytest before the first test."""
    project = made(tmp_path, "manifest")
    (project / "warns.py").write_text(WARNING)
    code, output = suite(project, "-p", "warns", "tests/test_rounds.py")
    assert (code, "1 passed" in output) == (0, True), output


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", [kind.value for kind in FORMATS])
def test_the_whole_suite_accepts_it(kind: str, tmp_path: Path) -> None:
    """The new plugin's own tests run it."""
    code, output = suite(made(tmp_path, kind))
    assert code == 0, output


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_in_style(kind: str, tmp_path: Path) -> None:
    project = made(tmp_path, kind)
    ruff = [str(Path(sys.executable).with_name("ruff")), "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    # Not the order of imports: ruff can't know there that laketier is somebody else's.
    for words in (["check", "--select", "E,F,W,UP,B,SIM,RET"], ["format", "--check"]):
        done = subprocess.run([ruff[0], *words, *ruff[1:], str(project)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["laketier", "new-plugin", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_it_says_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "acme", "--into", str(tmp_path)) == 0
    out = capsys.readouterr().out
    folder = tmp_path / "laketier-acme"
    assert f"cd {folder}" in out
    assert "pytest" in out
    assert call(monkeypatch, "acme-y", "--into", str(tmp_path), "--json") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["package"] == "acme_y_lake"
    assert all((tmp_path / "laketier-acme-y" / name).is_file() for name in told["files"])
    assert {".gitignore", ".github/workflows/test.yml", "acme_y_lake/plugin.py"} <= set(told["files"])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Acme", "Try 'acme'"),
        ("my_format", "Try 'my-format'"),
        ("../acme", "Try 'acme'"),
        ("a" * 41, "40 characters"),
        ("", "lower-case letter"),
        ("--", "lower-case letter"),
        ("3d", "Try 'd'"),
        ("feather", "is installed already"),
        ("table", "lake.table is a key"),
        ("kafka", "laketier-kafka"),
        ("spark", "laketier-spark"),
        ("on", "lake.format: on"),
    ],
)
def test_a_name_that_can_not_be_is_refused(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "--into", str(tmp_path), "--", name) == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_exists_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "theirs_lake.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert call(monkeypatch, "theirs", "--into", str(tmp_path)) == 2
    assert "would hide another one" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_nothing_is_overwritten(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "laketier-acme"
    {"folder": there.mkdir, "file": there.touch, "link": lambda: there.symlink_to("nowhere")}[kind]()
    assert call(monkeypatch, "acme", "--into", str(tmp_path)) == 2
    assert "was not changed" in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.rglob("*")) == [there]


def test_a_folder_that_is_not_there_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "acme", "--into", str(tmp_path / "no")) == 1
    assert "Make the folder first" in " ".join(capsys.readouterr().err.split())


def test_templates_are_files_of_the_package() -> None:
    """So a wheel has them, as it has all files of a package."""
    assert (files("laketier.cli.new_plugin") / "templates" / "format" / "pyproject.toml.tmpl").is_file()
    assert not [point for point in entry_points(group="laketier.formats") if point.name.startswith("acme")]
