"""The suite's own test of bits, for a table whose folder has no files: its rows are in a server, say."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from laketier_conformance.test_bits import test_a_bit_of_a_file_has_another_value as flips


def test_a_folder_without_a_file_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    table: Any = SimpleNamespace(append=lambda *_: None, info=SimpleNamespace(location=str(tmp_path)))

    def nobody(_: int) -> NoReturn:
        raise AssertionError("a process is asked for, and there is nothing to damage")

    flips(table, nobody, lambda *words: told.append(words))
    assert told == [("damaged files", "the table's folder has no file")]
