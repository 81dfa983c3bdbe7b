"""The suite's own test of bits, for a table whose folder has no files: its rows are in a server, say."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from laketier_conformance.outside import in_parts
from laketier_conformance.test_bits import test_a_bit_of_a_file_has_another_value as flips


@pytest.mark.parametrize("location", ["warehouse", "acme://127.0.0.1:1/db"])
def test_a_folder_without_a_file_is_told(tmp_path: Path, location: str) -> None:
    """The files of a server that runs are not the table's, though `setup` may have put them there."""
    told: list[tuple[str, str]] = []
    if location != "warehouse":
        (tmp_path / "of-the-server").write_bytes(b"wal")
    info, lake = SimpleNamespace(location=f"{tmp_path}/none"), SimpleNamespace(location=location)
    table: Any = SimpleNamespace(append=lambda *_: None, info=info, lake=lake)

    def nobody(_: int) -> NoReturn:
        raise AssertionError("a process is asked for, and there is nothing to damage")

    flips(table, tmp_path, nobody, lambda *words: told.append(words))
    assert told == [("damaged files", "no file of the table is in the folder that `setup` got")]


def test_parts_of_a_database_are_one_file() -> None:
    """Its log and its shared memory; not the files of a folder that has its name, and no long list of versions."""
    versions = [f"t.{number}" for number in range(9)]
    there = {f"w/{name}" for name in ("lake.db", "lake.db-wal", "lake.db.x/1", "t", "t1", *versions)}
    assert in_parts({"w/lake.db-wal", "w/lake.db"}, there) == ["w/lake.db"]
    assert in_parts({"w/lake.db-wal"}, there) == ["w/lake.db"]
    assert sorted(in_parts({"w/lake.db", "w/lake.db.x/1", "w/t1"}, there)) == ["w/lake.db", "w/lake.db.x/1", "w/t1"]
    assert len(in_parts({f"w/{name}" for name in versions}, there)) == 9
