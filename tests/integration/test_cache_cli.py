"""``laketier cache status | warm | clear``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from laketier.cli.app import main
from laketier.tables import metadata_cache
from laketier.tables.metadata import forget_process_cache
from laketier_verification.lakes import OURS, append, lake_at, rows_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKETIER_CACHE_DIR", str(tmp_path / "cache"))
    forget_process_cache()
    return tmp_path / "cache"


@pytest.fixture
def laketier(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> tuple[int, str]:
        forget_process_cache()
        monkeypatch.setattr(sys, "argv", ["laketier", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().out

    return run


@pytest.fixture(params=OURS)
def words(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The options of a warehouse of two tables that nothing is kept of."""
    for name in ("db.t", "db.u"):
        append(lake_at(tmp_path / "lake", request.param, name), rows_of(1))
    metadata_cache().clear()
    return ["-f", request.param, "-w", str(tmp_path / "lake")]


def test_a_warehouse_is_warmed_shown_and_forgotten(laketier: Any, words: list[str], folder: Path) -> None:
    assert json.loads(laketier("cache", "status", "--json")[1])["tables"] == []
    code, out = laketier("cache", "warm", *words, "--json")
    assert (code, json.loads(out)) == (
        0,
        [{"table": name, "error": None, "kept": True} for name in ("db.t", "db.u")],
    )
    shown = json.loads(laketier("cache", "status", "--json")[1])
    assert shown["folder"] == str(folder / "tables-1")
    assert [each["table"] for each in sorted(shown["tables"], key=lambda each: each["table"])] == ["db.t", "db.u"]
    assert {each["format"] for each in shown["tables"]} == {words[1]}
    assert {each["columns"] for each in shown["tables"]} == {2}
    assert shown["bytes"] == sum(path.stat().st_size for path in (folder / "tables-1").iterdir()) > 0
    assert "2 tables" in laketier("cache", "status")[1]
    assert laketier("cache", "clear", "db.t", *words) == (0, "1 tables forgotten\n")
    assert laketier("cache", "clear", "db.t", *words) == (0, "0 tables forgotten\n")
    assert [each["table"] for each in json.loads(laketier("cache", "status", "--json")[1])["tables"]] == ["db.u"]
    assert laketier("cache", "clear", *words, "--json") == (0, '{\n  "forgotten": 1\n}\n')
    laketier("cache", "warm", "db.t", *words)
    assert laketier("cache", "clear", "--all") == (0, "1 tables forgotten\n")
    assert list((folder / "tables-1").iterdir()) == []


def test_a_table_that_is_not_there_is_said(laketier: Any, tmp_path: Path) -> None:
    append(lake_at(tmp_path / "lake", "localfile"), rows_of(1))
    code, out = laketier("cache", "warm", "db.missing", "-f", "localfile", "-w", str(tmp_path / "lake"), "--json")
    (found,) = json.loads(out)
    assert code == 1
    assert "there is no table db.missing" in found["error"]
    assert found["kept"] is False


def test_without_a_folder_it_says_so(laketier: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(lake_at(tmp_path / "lake", "localfile"), rows_of(1))
    monkeypatch.setenv("LAKETIER_CACHE_DIR", "")
    code, out = laketier("cache", "warm", "db.t", "-f", "localfile", "-w", str(tmp_path / "lake"))
    assert code == 0
    assert "db.t: not kept" in out
    assert "nowhere" in laketier("cache", "status")[1]
    assert json.loads(laketier("cache", "status", "--json")[1])["folder"] is None


def test_what_others_put_there_is_shown_without_harm(laketier: Any, words: list[str], folder: Path) -> None:
    laketier("cache", "warm", *words)
    (folder / "tables-1" / f"{'0' * 64}.json").write_bytes(b"\x1b[2J\0not ours")
    (folder / "tables-1" / "notes.txt").write_text("kept")
    assert len(json.loads(laketier("cache", "status", "--json")[1])["tables"]) == 2
    laketier("cache", "clear", "--all")
    assert [path.name for path in (folder / "tables-1").iterdir()] == ["notes.txt"]
