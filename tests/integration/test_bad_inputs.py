"""What a user can get wrong, per format: each has a message that says what, where and what to do; nothing is lost, and
nothing is half-written. `pytest -rP` shows the messages."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.registry import Lake, configure, open_lake
from laketier.spi import (
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleData,
    IncompatibleTable,
    LaketierError,
    PluginNotFound,
    ScanRequest,
    SnapshotNotFound,
    TableDescriptor,
    TableError,
    TableNotFound,
    TokenMismatch,
    UnsupportedType,
    WatermarkLost,
)
from laketier.tables import prepare_table
from laketier_verification.lakes import OURS, SCHEMA, append, ids, lake_at, rows_of

Case = Callable[[Lake, Path], object]

EVERY_FORMAT: dict[str, tuple[Case, type[LaketierError], str]] = {
    "an extra column": (
        lambda lake, _: append(lake, rows_of(9).append_column("extra", pa.array([1]))),
        IncompatibleTable,
        "mergeSchema",
    ),
    "a column of another type": (
        lambda lake, _: append(lake, pa.record_batch({"id": ["9"], "name": ["x"]})),
        IncompatibleTable,
        "Cast it in the query",
    ),
    "a value that does not fit": (
        lambda lake, _: append(lake, pa.record_batch({"id": pa.array([2**63], pa.uint64()), "name": ["x"]})),
        IncompatibleData,
        "can't hold",
    ),
    "a later epoch of a pipeline that the table does not know": (
        lambda lake, _: append(lake, rows_of(9), epoch=5),
        WatermarkLost,
        "laketier pipeline adopt",
    ),
    "a new checkpoint for an old table": (
        lambda lake, _: (append(lake, rows_of(), epoch=0), append(lake, rows_of(9), epoch=0, run="other")),
        TokenMismatch,
        "laketier pipeline adopt",
    ),
    "a type that no format can hold": (
        lambda lake, _: prepare_table(
            open_lake(configure({**base(lake), "lake.table": "db.other"}, environment={})),
            pa.schema([("x", pa.month_day_nano_interval())]),
        ),
        UnsupportedType,
        "x",
    ),
    "a table that does not exist": (
        lambda lake, _: lake.storage.catalog().load_table(type(lake.config.table)("db", "none")),
        TableNotFound,
        "",
    ),
    "a snapshot that does not exist": (
        lambda lake, _: lake.storage.source(lake.storage.catalog().load_table(lake.config.table)).plan(
            ScanRequest(snapshot_id=123456)
        ),
        SnapshotNotFound,
        "123456",
    ),
    "an unknown column to read": (
        lambda lake, _: lake.storage.source(lake.storage.catalog().load_table(lake.config.table)).plan(
            ScanRequest(columns=("nmae",))
        ),
        ConfigError,
        "nmae",
    ),
    "an option that the format does not have": (
        lambda lake, _: open_lake(
            configure({**base(lake), f"lake.{lake.config.format}.target-file-row": 5}, environment={})
        ),
        ConfigError,
        "unknown key",
    ),
    "an option with a value of another type": (
        lambda lake, _: open_lake(
            configure(
                {**base(lake), f"lake.{lake.config.format}.{ROW_OPTION[lake.config.format]}": "many"}, environment={}
            )
        ),
        ConfigError,
        "is not an integer",
    ),
    "another partitioning for a table that exists": (
        lambda lake, _: prepare_table(
            open_lake(configure({**base(lake), "lake.partition-by": "name"}, environment={})), SCHEMA
        ),
        IncompatibleTable,
        "partition",
    ),
    "a table of the same name with another schema": (
        lambda lake, _: lake.storage.catalog().create_table(
            lake.config.table, TableDescriptor(pa.schema([("other", pa.float64())]))
        ),
        IncompatibleTable,
        "",
    ),
}

ROW_OPTION = {
    "delta": "target-file-rows",
    "iceberg": "target-file-rows",
    "lance": "max-rows-per-file",
    "localfile": "target-file-rows",
}


def base(lake: Lake) -> dict[str, str]:
    config = lake.config
    return {"lake.format": config.format, "lake.warehouse": config.warehouse, "lake.table": str(config.table)}


@pytest.fixture(params=OURS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    opened = lake_at(tmp_path / "lake", request.param)
    append(opened, rows_of(1, 2, 3))
    return opened


@pytest.mark.parametrize("case", EVERY_FORMAT)
def test_a_bad_input_is_refused_and_nothing_changes(lake: Lake, tmp_path: Path, case: str) -> None:
    act, kind, says = EVERY_FORMAT[case]
    before = sorted(path for path in (tmp_path / "lake").rglob("*.parquet"))
    with pytest.raises(kind) as caught:
        act(lake, tmp_path)
    print(f"{case}: {type(caught.value).__name__} {caught.value}")
    assert says in str(caught.value)
    assert ids(lake) == [1, 2, 3]
    assert sorted(path for path in (tmp_path / "lake").rglob("*.parquet")) == before


def test_a_format_that_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(PluginNotFound, match="Did you mean 'iceberg'"):
        lake_at(tmp_path, "icberg")


@pytest.mark.parametrize("format", OURS)
def test_a_table_of_another_format_in_the_way(tmp_path: Path, format: str) -> None:
    """A name clash: whoever comes second is refused, and the first keeps its rows."""
    other = next(name for name in ("localfile", "delta") if name != format)
    first = lake_at(tmp_path, other)
    append(first, rows_of(1, 2))
    second = lake_at(tmp_path, format)
    location = tmp_path / "db" / "t"
    before = sorted(path for path in location.rglob("*") if path.is_file())
    if format == "lance":
        # Its folder has another name (t.lance), so both fit into one warehouse.
        append(second, rows_of(7))
        assert ids(second) == [7]
    else:
        with pytest.raises(TableError) as caught:
            append(second, rows_of(7))
        print(caught.value)
        assert sorted(path for path in location.rglob("*") if path.is_file()) == before
    assert ids(first) == [1, 2]


METADATA = {
    "delta": "db/t/_delta_log/*.json",
    "iceberg": "db/t/metadata/*.metadata.json",
    "lance": "db/t.lance/_versions/*.manifest",
    "localfile": "db/t/_laketier_manifests/*.json",
}


@pytest.mark.parametrize("format", OURS)
def test_damaged_metadata_is_named(tmp_path: Path, format: str) -> None:
    lake = lake_at(tmp_path, format)
    append(lake, rows_of(1, 2))
    files = sorted(tmp_path.glob(METADATA[format]))
    assert files, f"no metadata at {METADATA[format]}: {sorted(map(str, tmp_path.rglob('*')))[:20]}"
    for file in files:
        file.write_bytes(b'{"torn')
    with pytest.raises((CorruptTable, TableError)) as caught:
        append(lake_at(tmp_path, format), rows_of(3))
    print(f"{format}: {type(caught.value).__name__} {caught.value}")
    assert str(tmp_path) in str(caught.value)
    assert "Traceback" not in str(caught.value)


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from laketier_verification.lakes import append, lake_at, rows_of
from laketier.spi import LaketierError
# Once with all rights, elsewhere: whoever loses them may not even read the interpreter's own modules.
append(lake_at(Path({elsewhere!r}), {format!r}), rows_of(1))
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    append(lake_at(Path({warehouse!r}), {format!r}), rows_of(9))
except LaketierError as error:
    print(type(error).__name__, error)
    sys.exit(7)
"""


@pytest.mark.parametrize("format", OURS)
def test_a_warehouse_that_may_not_be_written(format: str) -> None:
    # Not below pytest's own folder, which other users may not enter.
    with tempfile.TemporaryDirectory() as folder:
        assert_refused_without_rights(Path(folder), format)


def assert_refused_without_rights(tmp_path: Path, format: str) -> None:
    lake = lake_at(tmp_path / "lake", format)
    append(lake, rows_of(1, 2))
    for path in ((tmp_path / "lake"), *(tmp_path / "lake").rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    tmp_path.chmod(0o755)
    code = UNPRIVILEGED.format(
        elsewhere=str(tmp_path / "elsewhere"),
        warehouse=str(tmp_path / "lake"),
        format=format,
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 7, done.stderr[-3000:]
    assert str(tmp_path / "lake") in done.stdout
    for path in ((tmp_path / "lake"), *(tmp_path / "lake").rglob("*")):
        path.chmod(0o755)
    assert ids(lake) == [1, 2]


def test_partition_transforms_where_there_are_none(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, "delta", **{"lake.partition-by": "bucket(4, id)"})
    with pytest.raises(FeatureNotSupported, match="partition-transforms"):
        prepare_table(lake, SCHEMA)
