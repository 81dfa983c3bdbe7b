"""A log that somebody else wrote, and links that somebody else put there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit import RecordStore
from laketier.spi import IncompatibleTable, OutsideTable, TablePath
from laketier_conformance.hostile import FIXED, PIECES
from laketier_conformance.outside import everything, touched
from laketier_delta.layout import relative_path


def other_table(lake: Any, support: Any) -> Path:
    """With the same pipeline, so that its records have the same names."""
    catalog = lake.storage.catalog()
    descriptor = catalog.load_table(support.PATH).descriptor
    return Path(catalog.create_table(TablePath("db", "other"), descriptor).location)


@pytest.mark.parametrize(
    "path",
    ["../other/x.parquet", "%2e%2e/other/x.parquet", "a/../../x", "file:///laketier-nowhere/x", "/laketier-nowhere/x"],
)
def test_a_forged_add_is_not_read(lake: Any, path: str) -> None:
    """delta-rs reads any path; a clone's absolute ones are refused by their own name."""
    lake.create()
    lake.epoch(0)
    log = Path(lake.uri, "_delta_log")
    add = {"path": path, "partitionValues": {}, "size": 7, "modificationTime": 1, "dataChange": True}
    (log / f"{2:020}.json").write_text(json.dumps({"add": add}) + "\n")
    with pytest.raises((OutsideTable, IncompatibleTable), match=r"outside|not the path"):
        lake.read()


@pytest.mark.parametrize("name", ["_delta_log", "_laketier"])
def test_no_folder_of_a_table_is_another_s(lake: Any, support: Any, name: str) -> None:
    lake.create()
    lake.epoch(0)
    other = other_table(lake, support)
    (other / "_laketier").mkdir(exist_ok=True)
    own = Path(lake.uri, name)
    own.rename(Path(lake.uri, "aside"))
    own.symlink_to(other / name)
    before = everything(other)
    with pytest.raises(OutsideTable, match="symbolic link"):
        lake.epoch(1)
    with pytest.raises(OutsideTable, match="symbolic link"):
        lake.storage.maintenance(lake.table).orphans(2**62)
    assert touched(before, everything(other)) == []


def test_a_factory_refuses_a_log_that_is_another_s(lake: Any, support: Any) -> None:
    """Tasks would stage beside it before a committer looks."""
    lake.create()
    log = Path(lake.uri, "_delta_log")
    log.rename(Path(lake.uri, "aside"))
    log.symlink_to(Path(lake.uri, "aside"))
    with pytest.raises(OutsideTable, match="symbolic link"):
        lake.storage.tiering_factory(lake.table)


def test_records_of_another_table_are_no_orphans(lake: Any, support: Any, tmp_path: Path) -> None:
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / f"{1:016x}.json").write_text("theirs")
    Path(lake.uri, "_laketier", "q").symlink_to(theirs)
    found = RecordStore(pafs.LocalFileSystem(), lake.uri).orphans(lambda pipeline: None, 2**62)
    assert found
    assert not [file for file in found if "/q/" in file.path]


@given(st.one_of(st.sampled_from(FIXED), st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("/".join)))
def test_what_the_log_may_name_is_below_the_table(encoded: str) -> None:
    try:
        path = relative_path(encoded)
    except (OutsideTable, IncompatibleTable):
        return
    assert not path.startswith("/")
    assert not {"", ".", ".."} & set(path.split("/"))
    assert "://" not in path
    assert "\x00" not in path
