"""What is told of folders that may be tables of their own."""

from __future__ import annotations

from laketier.tables.folders_apart import folders_told


def told(files: dict[str, list[str]]) -> tuple[str, ...]:
    return folders_told(files.items(), undo="delete it", where="/lake")


def test_names_that_differ_by_case_are_one_column() -> None:
    """A second read with partitions would refuse them."""
    assert not told({"Day=1/a.parquet": ["id", "day"]})
    assert told({"Day=1/a.parquet": ["id"]})[0].startswith("Its folders name Day")


def test_folders_that_may_be_tables_are_told_beside_columns_in_names() -> None:
    found = told({"orders/day=1/a.parquet": ["id"], "customers/day=1/a.parquet": ["id"]})
    assert found[0].startswith("Its folders name day, and no file has such a column")
    assert found[2].startswith("Its files lie in 2 folders, such as customers and orders")
    assert len(told({"day=1/a.parquet": ["id"], "day=2/a.parquet": ["id"]})) == 2
