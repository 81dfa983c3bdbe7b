"""Other tools, and hosts with a cache of their own, change a table under a process that keeps its description."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.config import LakeConfig
from laketier.registry import Lake, open_lake
from laketier.spi import ScanRequest
from laketier.tables import described, metadata_cache, open_source, opened
from laketier.tables.metadata import forget_process_cache
from laketier.tables.scan import scan
from laketier_verification.lakes import append, lake_at, rows_of


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LAKETIER_CACHE_DIR", str(tmp_path / "cache"))
    forget_process_cache()
    yield
    metadata_cache().flush()
    forget_process_cache()


def delta_rs_adds(location: str, lake: Lake) -> None:
    from deltalake import DeltaTable, Field
    from deltalake.schema import PrimitiveType

    DeltaTable(location).alter.add_columns([Field("more", PrimitiveType("string"))])


def pyiceberg_renames(location: str, lake: Lake) -> None:
    """And gives the old name to another column, so that a stale schema would show the wrong one."""
    from pyiceberg.types import StringType

    table = lake.load_table().handle
    with table.update_schema() as update:
        update.rename_column("name", "more")
    with table.update_schema() as update:
        update.add_column("name", StringType())


def pylance_renames(location: str, lake: Lake) -> None:
    import lance

    lance.dataset(location).alter_columns({"path": "name", "name": "more"})
    lance.dataset(location).add_columns(pa.schema([("name", pa.string())]))


def another_host_adds(location: str, lake: Lake) -> None:
    program = (
        "import sys, pyarrow as pa; from laketier_verification.lakes import lake_at; "
        "from laketier.spi import AddColumn; "
        "from laketier.tables import opened; lake = lake_at(sys.argv[1], 'localfile'); opened(lake); "
        "lake.storage.catalog().alter_table(lake.config.table, [AddColumn(pa.field('more', pa.string()))])"
    )
    command = [sys.executable, "-c", program, lake.config.warehouse]
    subprocess.run(command, check=True, env={"LAKETIER_CACHE_DIR": f"{lake.config.warehouse}-cache"})


TOOLS: dict[str, tuple[Callable[[str, Lake], None], list[dict[str, object]]]] = {
    "delta": (delta_rs_adds, [{"id": 1, "name": "n1", "more": None}]),
    "iceberg": (pyiceberg_renames, [{"id": 1, "name": None, "more": "n1"}]),
    "lance": (pylance_renames, [{"id": 1, "name": None, "more": "n1"}]),
    "localfile": (another_host_adds, [{"id": 1, "name": "n1", "more": None}]),
}


def read(config: LakeConfig) -> list[dict[str, object]]:
    schema, batches = scan(open_source(config), ScanRequest())
    return pa.Table.from_batches(list(batches), schema).to_pylist()


@pytest.mark.parametrize("format", TOOLS)
def test_what_another_tool_did_to_the_columns_is_seen(tmp_path: Path, format: str) -> None:
    """By readers that allow a description of an hour ago, too: it may be old, and never says which column is which."""
    change, expected = TOOLS[format]
    lake = lake_at(tmp_path / "lake", format)
    append(lake, rows_of(1))
    configs = [replace(lake.config, pipeline=None, metadata_cache_max_age=age) for age in (0, 3600)]
    for config in configs:
        opened(open_lake(config)), described(open_lake(config))
        read(config)
    beside = open_lake(replace(configs[0], metadata_cache=False))
    change(beside.load_table().location.removeprefix("file://"), beside)
    for config in configs:
        assert read(config) == expected
    for look in (opened, described):
        assert set(look(open_lake(configs[0])).schema.names) == {"id", "name", "more"}
