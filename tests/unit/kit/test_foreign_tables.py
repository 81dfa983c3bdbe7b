"""Folders of which not all files count."""

from __future__ import annotations

import pytest

from laketier.kit import foreign_tables
from laketier.kit.foreign_tables import mark_among, taken_for_files

_ID = "01923f3a-1b2c-7d3e-8f40-123456789abc"


@pytest.mark.parametrize(
    "mark",
    [
        "_delta_log/",
        "_spark_metadata/0",
        ".hoodie/",
        "_versions/",
        "_laketier_manifests/",
        "metadata/00000-a.metadata.json",
        "metadata/v1.gz.metadata.json",
        "metadata/v1.metadata.json.gz",
        "metadata/00000-a.gz.metadata.json",
        "base_0000012/bucket_00000",
        "base_0000012_v0000042/",
        "delta_0000001_0000001/",
        "delta_0000001_0000001_0000/",
        "delete_delta_0000001_0000001_0000/",
        f"ducklake-{_ID}.parquet",
        f"ducklake-{_ID}-delete.parquet",
    ],
)
def test_what_only_tables_have_is_found(mark: str) -> None:
    for above in ("", "inner/k=1/"):
        found = mark if mark.endswith(("json", "gz", "parquet")) else mark.partition("/")[0]
        assert mark_among(["a.parquet", f"{above}{mark}"]) == f"{above}{found}"
    assert mark_among([f"_old/{mark}"]) is None


def test_folders_that_only_together_are_those_of_a_table() -> None:
    table = ["snapshot/snapshot-1", "schema/schema-0", "manifest/manifest-list-a-0", "bucket-0/a.parquet"]
    assert mark_among(table) == "snapshot"
    assert mark_among([f"db.db/t/{path}" for path in table]) == "db.db/t/snapshot"
    for at in range(3):
        assert mark_among(table[:at] + table[at + 1 :]) is None


def test_the_same_folders_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing has a hundred thousand files in few folders."""
    entered: list[str] = []
    enter = foreign_tables._enter
    monkeypatch.setattr(foreign_tables, "_enter", lambda *args: (entered.append(args[0]), enter(*args)))
    assert mark_among(f"{folder}/{n}.json" for folder in ("a/b", "_old/c") for n in range(100)) is None
    assert entered == ["a/b/", "_old/c/"]


def test_the_way_out_costs_no_table() -> None:
    told = str(taken_for_files("_delta_log", "s3://b/t"))
    assert "Do not delete '_delta_log'" in told
    assert "remove" not in told


@pytest.mark.parametrize(
    "name",
    [
        "_SUCCESS",
        "_temporary/0/part.parquet",
        "_load_log/a.json",
        "metadata.json",
        "metadata/schema.json",
        "metadata/a.parquet",
        "a.metadata.json",
        "snapshot/a.parquet",
        "snapshot-1",
        "snapshot/snapshot-1",
        "snapshot/snapshot-20261126/part-0.json",
        "metadata/img1.jpg.metadata.json",
        "metadata/v1.metadata.json/a.json",
        "metadata/x/v1.metadata.json",
        "base_0000012",
        "delta_0000001_0000001",
        "base_2026/a.parquet",
        "delta_1_2/a.parquet",
        "base_0000012.parquet",
        "ducklake-export.parquet",
        "k=_delta_log/a.parquet",
    ],
)
def test_what_others_have_is_not(name: str) -> None:
    assert mark_among([name]) is None
