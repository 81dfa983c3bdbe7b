"""Datasets whose files lie elsewhere: Lance follows such a path wherever it leads, and laketier does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from laketier.spi import IncompatibleTable, LakeStorageConfig, ScanRequest, TablePath
from laketier.tables.scan import scan
from laketier_lance.base_paths import refuse_elsewhere
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
SAYS = r"files of the dataset are elsewhere, in .*deep_clone"


def lake(warehouse: Path) -> Any:
    (warehouse / "db").mkdir(parents=True, exist_ok=True)
    return LancePlugin().create_storage(LakeStorageConfig(str(warehouse), LanceOptions()))


@pytest.fixture
def tenant(tmp_path: Path) -> lance.LanceDataset:
    """Another tenant's dataset, which the process may read."""
    return lance.write_dataset(ROWS, str(tmp_path / "tenant" / "theirs.lance"))


def test_a_shallow_clone_is_refused_and_a_deep_one_is_read(tmp_path: Path, tenant: lance.LanceDataset) -> None:
    storage = lake(tmp_path / "w")
    tenant.shallow_clone(str(tmp_path / "w/db/t.lance"), 1)
    with pytest.raises(IncompatibleTable, match=SAYS) as caught:
        storage.catalog().load_table(TablePath("db", "t"))
    assert str(tmp_path / "w/db/t.lance") in str(caught.value)
    assert str(tmp_path / "tenant/theirs.lance") in str(caught.value)
    lance.dataset(str(tmp_path / "w/db/t.lance")).deep_clone(str(tmp_path / "w/db/copy.lance"), 1)
    info = storage.catalog().load_table(TablePath("db", "copy"))
    schema, batches = scan(storage.source(info), ScanRequest())
    assert pa.Table.from_batches(batches, schema).equals(ROWS)


def test_a_place_that_another_program_adds_stops_readers_and_writers(table: Any, tmp_path: Path) -> None:
    """Also while they are at work: with the table as it was when it was loaded."""
    table.append(0, 1)
    staged = table.stage(table.rows(2))
    source = table.storage.source(table.info)
    table.open().add_bases([lance.DatasetBasePath(str(tmp_path / "elsewhere"), name="o")])
    with pytest.raises(IncompatibleTable, match=SAYS):
        table.round(None).commit([staged])
    with pytest.raises(IncompatibleTable, match=SAYS):
        source.plan(ScanRequest())
    with pytest.raises(IncompatibleTable, match=SAYS):
        table.storage.catalog().load_table(table.path)


def test_a_clone_is_listed_and_dropped_alone(tmp_path: Path, tenant: lance.LanceDataset) -> None:
    storage = lake(tmp_path / "w")
    tenant.shallow_clone(str(tmp_path / "w/db/t.lance"), 1)
    assert storage.catalog().list_tables() == [TablePath("db", "t")]
    storage.catalog().drop_table(TablePath("db", "t"))
    assert storage.catalog().list_tables() == []
    assert lance.dataset(tenant.uri).to_table() == ROWS


def test_branches_name_the_dataset_itself(table: Any) -> None:
    """Lance makes a branch as a shallow clone within the dataset."""
    table.append(0, 1)
    branch = table.open().create_branch("b", None)
    assert [base.path for base in branch.base_paths().values()] == [table.location]
    refuse_elsewhere(branch, table.location)
    table.append(1, 2)
    assert sorted(table.ids()) == [1, 2]


class _Based:
    """What Lance says of base paths, in spellings of stores that no test can reach."""

    def __init__(self, path: str) -> None:
        self.path = path

    def base_paths(self) -> dict[int, lance.DatasetBasePath]:
        return {1: lance.DatasetBasePath(self.path)}


@pytest.mark.parametrize(
    ("location", "path", "is_within"),
    [
        ("/w/t.lance", "/w/t.lance", True),
        ("/w/t.lance", "/w/t.lance/more", True),
        ("/w/t.lance", "file:///w/t.lance/a%20b", True),
        ("/w/t.lance", "/w/t.lance2", False),
        ("/w/t.lance", "/w/t.lance/../other.lance", False),
        ("/w/t.lance", "file:///etc", False),
        ("/w/t.lance", "file://host/w/t.lance", False),
        ("/w/t.lance", "s3://b/w/t.lance", False),
        ("s3://b/w/t.lance", "s3://b/w/t.lance/tree/x", True),
        ("s3://b/w/t.lance", "S3://b/w/t.lance", True),
        ("s3://b/w/t.lance", "s3://b/w/t.lance/../other.lance", False),
        ("/w/t.lance", "file:///w/t.lance/x\\..\\..\\other.lance", False),
        ("/w/t.lance", "file:///w/t.lance/%2E%2e/other.lance", False),
        ("s3://b/w/t.lance", "s3://b/w/t.lance/", True),
        ("s3://b/w/t.lance", "s3://b/w/t.lance/tree/a..b", True),
        ("s3://b/w/t.lance", "s3://b/w/t.lance/%2e%2E/other.lance", False),
        ("s3://b/w/t.lance", "s3://b/w/t.lance/.%2e", False),
        ("s3://b/w/t.lance", "s3://b/w/t.lance/.\t./other.lance", False),
        ("s3://b/w/t.lance", "s3://b/w/t.lance/x\\..\\..\\other.lance", False),
        ("s3://b/w/../t.lance", "s3://b/w/../t.lance", True),
        ("s3://b/w/t.lance", "s3://c/w/t.lance", False),
        ("s3://b/w/t.lance", "/b/w/t.lance", False),
        ("s3://b/w/t.lance", "file:///etc", False),
    ],
)
def test_what_lies_within_a_dataset(location: str, path: str, is_within: bool) -> None:
    based: Any = _Based(path)
    if is_within:
        refuse_elsewhere(based, location)
    else:
        with pytest.raises(IncompatibleTable, match=SAYS):
            refuse_elsewhere(based, location)


@pytest.mark.parametrize("step", ["x\\..\\..", "%2e%2e", ".\t.", "x/%2E%2e/%2e%2E"])
def test_no_spelling_of_a_step_leads_out(tmp_path: Path, step: str) -> None:
    """Each was followed by Lance to the folder beside the dataset."""
    where = tmp_path / "w/db/t.lance"
    base = lance.DatasetBasePath(f"file://{where}/{step}/elsewhere", name="o")
    lance.write_dataset(ROWS, str(where), initial_bases=[base], target_bases=["o"])
    assert [file for file in tmp_path.rglob("*.lance") if file.is_file() and where not in file.parents]
    with pytest.raises(IncompatibleTable, match="files of the dataset are elsewhere"):
        lake(tmp_path / "w").catalog().load_table(TablePath("db", "t"))


def test_a_link_within_a_dataset_leads_out(tmp_path: Path) -> None:
    (tmp_path / "t.lance").mkdir()
    (tmp_path / "t.lance" / "more").symlink_to(tmp_path)
    based: Any = _Based(str(tmp_path / "t.lance" / "more"))
    with pytest.raises(IncompatibleTable, match=SAYS):
        refuse_elsewhere(based, str(tmp_path / "t.lance"))
