"""``laketier cache status | warm | clear``."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from laketier.cli.app import main
from laketier.spi.clocks import shifted
from laketier.tables import metadata_cache
from laketier.tables.metadata import forget_process_cache
from laketier.tables.metadata.files import allocated
from laketier.tables.metadata.saving import Saving
from laketier_verification.lakes import OURS, append, lake_at, rows_of

OPTION = {"delta": "checkpoint-interval", "iceberg": "max-open-files", "lance": "split-rows", "localfile": "fold-files"}


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


def made_in(folder: Path, format: str) -> list[str]:
    for name in ("db.t", "db.u"):
        append(lake_at(folder, format, name), rows_of(1))
    metadata_cache().clear()
    return ["-f", format, "-w", str(folder)]


@pytest.fixture(params=OURS)
def words(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The options of a warehouse of two tables that nothing is kept of."""
    return made_in(tmp_path / "lake", request.param)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The same, of local files."""
    return made_in(tmp_path / "lake", "localfile")


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
    assert shown["bytes"] == sum(allocated(path.stat()) for path in (folder / "tables-1").iterdir()) > 0
    assert (shown["problem"], shown["unreadable files"]) == (None, 0)
    assert {each["state"] for each in shown["tables"]} == {"fresh"}
    assert "2 tables" in laketier("cache", "status")[1]
    assert laketier("cache", "clear", "db.t", *words) == (0, "1 tables forgotten\n")
    assert laketier("cache", "clear", "db.t", *words) == (0, "0 tables forgotten\n")
    assert [each["table"] for each in json.loads(laketier("cache", "status", "--json")[1])["tables"]] == ["db.u"]
    assert laketier("cache", "clear", *words, "--json") == (0, '{\n  "forgotten": 1,\n  "left": 0\n}\n')
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
    shown = json.loads(laketier("cache", "status", "--json")[1])
    assert len(shown["tables"]) == 2
    assert shown["unreadable files"] == 1
    assert shown["bytes"] > sum(each["bytes"] for each in shown["tables"])
    assert "1 files there can't be read" in laketier("cache", "status")[1]
    laketier("cache", "clear", "--all")
    assert [path.name for path in (folder / "tables-1").iterdir()] == ["notes.txt"]


def test_what_is_kept_is_said_of_this_table_and_not_of_one_of_its_name(
    laketier: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lake", "other"):
        append(lake_at(tmp_path / name, "localfile"), rows_of(1))
    warm = ("cache", "warm", "db.t", "-f", "localfile", "-w")
    assert json.loads(laketier(*warm, str(tmp_path / "other"), "--json")[1])[0]["kept"] is True
    with monkeypatch.context() as patch:
        patch.setattr("laketier.tables.metadata.disk.replace", Mock(side_effect=OSError("the disk is full")))
        for name in ("lake", "other"):
            assert json.loads(laketier(*warm, str(tmp_path / name), "--json")[1])[0]["kept"] is False


def test_a_file_that_is_about_to_expire_is_written_anew(laketier: Any, files: list[str]) -> None:
    with shifted(-3590_000):
        laketier("cache", "warm", *files)
    laketier("cache", "warm", *files)
    shown = json.loads(laketier("cache", "status", "--json")[1])["tables"]
    assert max(each["age seconds"] for each in shown) < 3000


def test_what_is_not_served_any_more_is_shown_as_such(laketier: Any, files: list[str]) -> None:
    laketier("cache", "warm", *files)
    for shift, state in ((7200_000, "expired"), (-7200_000, "from the future")):
        with shifted(shift):
            shown = json.loads(laketier("cache", "status", "--json")[1])["tables"]
            assert [each["state"] for each in shown] == [state] * 2
            assert state in laketier("cache", "status")[1]


def test_a_warehouse_is_forgotten_whole(
    laketier: Any, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables that were dropped, too, and what was described with other options; and a warehouse that is gone."""
    laketier("cache", "warm", *words)
    laketier("cache", "warm", *words, "-s", f"lake.{words[1]}.{OPTION[words[1]]}=7")
    append(lake_at(tmp_path / "another", words[1]), rows_of(1))
    laketier("cache", "warm", "db.t", "-f", words[1], "-w", str(tmp_path / "another"))
    lake = lake_at(tmp_path / "lake", words[1])
    lake.storage.catalog().drop_table(lake.config.table)
    shutil.rmtree(tmp_path / "lake")
    waits: list[float | None] = []
    flush = Saving.flush
    with monkeypatch.context() as patch:
        patch.setattr(Saving, "flush", lambda self, seconds=None: waits.append(seconds) or flush(self, seconds))
        assert laketier("cache", "clear", *words) == (0, "2 tables forgotten\n"), (
            "each is one, however it was described"
        )
    assert len(waits) == 1, "beside a disk that hangs it waits once, and not for each table"
    shown = json.loads(laketier("cache", "status", "--json")[1])["tables"]
    assert [each["warehouse"] for each in shown] == [f"file://{tmp_path}/another"]


@pytest.mark.parametrize("how", ["others may write", "a link", "a file"])
def test_a_folder_that_cannot_be_used_is_told(laketier: Any, files: list[str], folder: Path, how: str) -> None:
    """Nothing is deleted there, and nobody is told that there is nothing."""
    laketier("cache", "warm", *files)
    assert len(list((folder / "tables-1").iterdir())) == 2
    moved = folder.rename(folder.with_name("moved"))
    if how == "others may write":
        moved.rename(folder).chmod(0o777)
    elif how == "a link":
        folder.symlink_to(moved)
    else:
        folder.write_text("")
    for scope in ((), ("--all",)):
        code, _ = laketier("cache", "clear", *files, *scope)
        assert code == 1
    shown = json.loads(laketier("cache", "status", "--json")[1])
    assert shown["tables"] == []
    assert str(folder) in shown["problem"] or "Not a directory" in shown["problem"]
    assert "nothing is kept there" in laketier("cache", "status")[1]
    where = folder if how == "others may write" else moved
    assert len(list((where / "tables-1").iterdir())) == 2
    assert {each["kept"] for each in json.loads(laketier("cache", "warm", *files, "--json")[1])} == {False}


def test_a_folder_of_odd_bytes_is_shown(laketier: Any, files: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("LAKETIER_CACHE_DIR", os.fsdecode(bytes(tmp_path) + b"/\xff\n\x1b[2J"))
    assert laketier("cache", "warm", *files)[0] == 0
    for form in ((), ("--json",)):
        code, out = laketier("cache", "status", *form)
        assert code == 0
        assert "\x1b" not in out


def test_what_cannot_be_removed_is_told(laketier: Any, files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that can only be read."""
    laketier("cache", "warm", *files)
    monkeypatch.setattr("laketier.tables.metadata.disk.os.unlink", Mock(side_effect=OSError(errno.EROFS, "")))
    for scope, left in (((), 2), (("--all",), 2), (("db.t",), 1)):
        code, out = laketier("cache", "clear", *scope, *files, "--json")
        assert (code, json.loads(out)) == (1, {"forgotten": 0, "left": left})
    assert "2 files are still there" in laketier("cache", "clear", *files)[1]
