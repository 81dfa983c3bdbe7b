"""Folders of which not all files count."""

from __future__ import annotations

import pytest

from laketier.kit.foreign_tables import mark_among

_ID = "01923f3a-1b2c-7d3e-8f40-123456789abc"


@pytest.mark.parametrize(
    "mark",
    [
        "_delta_log",
        "_spark_metadata",
        ".hoodie",
        "_versions",
        "_laketier_manifests",
        "metadata/00000-a.metadata.json",
        "metadata/v1.gz.metadata.json",
        "metadata/v1.metadata.json.gz",
        "snapshot/snapshot-1",
        "base_0000012",
        "base_0000012_v0000042",
        "delta_0000001_0000001",
        "delta_0000001_0000001_0000",
        "delete_delta_0000001_0000001_0000",
        f"ducklake-{_ID}.parquet",
        f"ducklake-{_ID}-delete.parquet",
    ],
)
def test_what_only_tables_have_is_found(mark: str) -> None:
    for above in ("", "inner/k=1/"):
        assert mark_among(["a.parquet", f"{above}{mark}"]) == f"{above}{mark}"
    assert mark_among([f"_old/{mark}"]) is None


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
        "base_2026/a.parquet",
        "delta_1_2/a.parquet",
        "base_0000012.parquet",
        "ducklake-export.parquet",
        "k=_delta_log/a.parquet",
    ],
)
def test_what_others_have_is_not(name: str) -> None:
    assert mark_among([name]) is None
