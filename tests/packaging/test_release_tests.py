"""`make test-all` goes on where it ended, and remembers nothing that was not tested."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from workspace import ROOT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_tests", ROOT / "scripts" / "release_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["release_tests"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(script: ModuleType, tmp_path: Path) -> Any:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "source").write_text("1")
    git(folder, "init", "-q")
    commit(folder)
    return script.Checkout(folder)


@pytest.fixture
def remembered(script: ModuleType, tmp_path: Path) -> Any:
    return script.Remembered(tmp_path / "state")


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def counting(tmp_path: Path, **ends: int) -> tuple[dict[str, list[str]], Any]:
    """Pieces that end with the codes given, and how often each ran."""
    script = "import sys; open(sys.argv[1], 'a').write('x'); sys.exit(int(sys.argv[2]))"
    pieces = {name: [sys.executable, "-c", script, str(tmp_path / name), str(code)] for name, code in ends.items()}

    def runs() -> dict[str, int]:
        return {name: len((tmp_path / name).read_text()) if (tmp_path / name).exists() else 0 for name in ends}

    return pieces, runs


def test_what_was_green_at_this_commit_is_not_run_again(
    script: ModuleType, checkout: Any, remembered: Any, tmp_path: Path
) -> None:
    pieces, runs = counting(tmp_path, a=0, b=1, c=0)
    assert script.run(pieces, checkout, remembered) == ["b"]
    assert runs() == {"a": 1, "b": 1, "c": 1}, "one that fails keeps nothing back"
    assert script.run(pieces, checkout, remembered) == ["b"]
    assert runs() == {"a": 1, "b": 2, "c": 1}
    assert script.run(pieces, checkout, remembered, fresh=True) == ["b"]
    assert runs() == {"a": 2, "b": 3, "c": 2}
    lines = script.listed(pieces, checkout.commit(), remembered)
    assert ["done" in line.split("/")[0] for line in lines[:3]] == [True, False, True]
    assert lines[-1].startswith("2 done, 1 left, at ")


def test_another_commit_is_tested_anew(script: ModuleType, checkout: Any, remembered: Any, tmp_path: Path) -> None:
    pieces, runs = counting(tmp_path, a=0)
    script.run(pieces, checkout, remembered)
    (checkout.folder / "source").write_text("2")
    commit(checkout.folder)
    script.run(pieces, checkout, remembered)
    assert runs() == {"a": 2}


def test_a_tree_with_changes_is_remembered_for_nothing(
    script: ModuleType, checkout: Any, remembered: Any, tmp_path: Path
) -> None:
    pieces, runs = counting(tmp_path, a=0)
    (checkout.folder / "new").write_text("not committed")
    for _ in range(2):
        assert script.run(pieces, checkout, remembered) == []
    assert runs() == {"a": 2}
    assert "1 left, in a tree with changes" in script.listed(pieces, checkout.commit(), remembered)[-1]
    (checkout.folder / "new").unlink()
    assert "1 left, at " in script.listed(pieces, checkout.commit(), remembered)[-1]


def test_a_tree_that_changes_under_a_piece_is_not_remembered(
    script: ModuleType, checkout: Any, remembered: Any
) -> None:
    pieces = {"a": [sys.executable, "-c", "open('source', 'w').write('3')"]}
    assert script.run(pieces, checkout, remembered) == []
    git(checkout.folder, "checkout", "-q", "source")
    assert remembered.seconds("a", checkout.commit()) is None


def test_a_page_that_a_piece_writes_is_no_change(script: ModuleType, checkout: Any, remembered: Any) -> None:
    for page in script.WRITTEN:
        (checkout.folder / page).parent.mkdir(parents=True, exist_ok=True)
        (checkout.folder / page).write_text("old")
    commit(checkout.folder)
    pieces = {"a": [sys.executable, "-c", f"for page in {script.WRITTEN!r}: open(page, 'w').write('new')"]}
    script.run(pieces, checkout, remembered)
    assert remembered.seconds("a", checkout.commit()) is not None


def test_what_a_failed_run_leaves_is_not_green(script: ModuleType, checkout: Any, remembered: Any) -> None:
    remembered.keep("a", checkout.commit(), 1)
    assert script.run({"a": ["false"]}, checkout, remembered, fresh=True) == ["a"]
    assert remembered.seconds("a", checkout.commit()) is None
    (remembered.folder / "a.json").write_text('{"commit": "')
    assert remembered.seconds("a", checkout.commit()) is None


def test_the_pieces_are_targets_of_make(script: ModuleType) -> None:
    targets = {line.partition(":")[0] for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()}
    assert {command[1] for command in script.PIECES.values()} <= targets
    assert {command[0] for command in script.PIECES.values()} == {"make"}
    with pytest.raises(SystemExit):
        script.main(["lnit"])
