"""Locations are made absolute once, from one folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laketier.config.locations import absolute, absolute_database
from laketier.connectors import ParquetFolder
from laketier.registry import configure
from laketier.service.state.database import Database
from laketier.spi import ConfigError

HOME = os.path.expanduser("~")


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("lake", "/base/lake"),
        ("./a/../lake", "/base/lake"),
        ("file:lake", "/base/lake"),
        ("/lake", "/lake"),
        ("file:/lake", "file:/lake"),
        ("file:///lake", "file:///lake"),
        ("~/lake", f"{HOME}/lake"),
        ("s3://bucket/lake", "s3://bucket/lake"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("a b/ä", "/base/a b/ä"),
        ("sqlite:///x.db", "sqlite:////base/x.db"),
    ],
)
def test_a_location_is_absolute(given: str, made: str) -> None:
    assert absolute(given, "/base") == made
    assert absolute(made, "/elsewhere") == made


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("sqlite:///state.db", "sqlite:////base/state.db"),
        ("sqlite+pysqlite:///a/b.db?timeout=3", "sqlite+pysqlite:////base/a/b.db?timeout=3"),
        ("sqlite:////state.db", "sqlite:////state.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("sqlite:///file:x?uri=true", "sqlite:///file:x?uri=true"),
        ("sqlite://", "sqlite://"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("any text", "any text"),
    ],
)
def test_the_file_of_a_database_url_is_absolute(given: str, made: str) -> None:
    assert absolute_database(given, "/base") == made


def test_nothing_is_no_location() -> None:
    with pytest.raises(ConfigError, match="empty"):
        absolute("  ")


def keys(**more: str) -> dict[str, str]:
    return {"lake.format": "iceberg", "lake.warehouse": "lake", "lake.table": "a.b"} | {
        f"lake.iceberg.catalog.{key}": value for key, value in more.items()
    }


def test_a_configuration_means_the_same_after_the_process_went_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = configure(keys(type="sql", uri="sqlite:///c.db"), environment={})
    folder = ParquetFolder("landing")
    database = Database("sqlite:///state.db")
    monkeypatch.chdir("/")
    assert config.warehouse == f"{tmp_path}/lake"
    assert config.format_options["catalog.uri"] == f"sqlite:///{tmp_path}/c.db"
    assert folder.location == f"{tmp_path}/landing"
    with database.write():
        pass
    assert (tmp_path / "state.db").exists()
    database.close()


def test_a_name_that_a_catalog_knows_is_no_folder() -> None:
    assert configure(keys(type="rest", uri="http://c"), environment={}).warehouse == "lake"


def test_a_folder_that_was_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for location in ("lake", "sqlite:///state.db"):
        with pytest.raises(ConfigError, match="the folder that this process works in was removed"):
            absolute(location)
    assert absolute("/lake") == "/lake"
