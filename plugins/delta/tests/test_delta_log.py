"""What laketier reads of the Delta log itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from laketier.spi import Passthrough
from laketier_delta.altering import take_back
from laketier_delta.delta_log import COMMIT_ID, PUBLISH, DeltaLog
from laketier_delta.location import Location
from laketier_delta.log_version import log_bytes
from laketier_delta.table_features import advice


def log_of(folder: Path, *infos: dict[str, Any], first: int = 0) -> DeltaLog:
    """Entries with these infos, from this version."""
    (folder / "_delta_log").mkdir()
    log = DeltaLog(pafs.LocalFileSystem(), str(folder))
    for version, info in enumerate(infos, first):
        Path(log.path(version)).write_text(json.dumps({"commitInfo": info}), encoding="utf-8")
    return log


def of(operation: str, **parameters: Any) -> dict[str, Any]:
    return {"operation": operation, "operationParameters": parameters}


@pytest.mark.parametrize(
    ("info", "resets"),
    [
        (of("CREATE OR REPLACE TABLE"), True),
        (of("create or replace table as select"), True),
        (of("RESTORE", version=1), True),
        (of("RESTORE", version="1"), True),
        (of("RESTORE", version=2), False),
        (of("RESTORE", version=3), False),
        (of("RESTORE", timestamp="2026-11-26"), True),
        (of("RESTORE", version=None), True),
        (of("RESTORE", version="x"), True),
        (of("RESTORE", version=float("inf")), True),
        ({"operation": "RESTORE"}, True),
        ({"operation": "RESTORE", "operationParameters": "version=1"}, True),
        (of("CLONE", source="delta.`/lake/other`", sourceVersion=7), True),
        (of("STREAMING UPDATE", outputMode="Complete", epochId="3"), True),
        (of("STREAMING UPDATE", outputMode="Append", epochId="3"), False),
        (of("STREAMING UPDATE"), False),
        (of("WRITE", mode="Overwrite"), True),
        (of("WRITE", mode="overwrite", predicate="[]"), True),
        (of("WRITE", mode="overwrite", predicate=""), True),
        (of("WRITE", mode="overwrite", predicate="id = 1"), False),
        (of("WRITE", mode="append"), False),
        (of("WRITE"), False),
        (of("DELETE", mode="overwrite"), False),
        ({"operation": "WRITE", "operationParameters": ["overwrite"]}, False),
        ({}, False),
        ({**of("WRITE", mode="overwrite"), COMMIT_ID: "ours"}, False),
    ],
)
def test_what_takes_rows_back(tmp_path: Path, info: dict[str, Any], resets: bool) -> None:
    """Of version 3, that version 2 had."""
    log = log_of(tmp_path, {}, {}, {}, info, {})
    assert log.last_reset(2, 4) == (3 if resets else None)
    assert log.last_reset(3, 4) is None, "what is before the range does not count"


def test_the_newest_reset_is_told(tmp_path: Path) -> None:
    log = log_of(tmp_path, {}, of("REPLACE TABLE"), of("REPLACE TABLE"), {})
    assert log.last_reset(0, 3) == 2
    assert log.last_reset(0, 1) == 1


def test_a_search_ends_where_the_log_was_cleaned_up(tmp_path: Path) -> None:
    log = log_of(tmp_path, of("REPLACE TABLE"), {COMMIT_ID: "c"}, {}, first=5)
    assert log.last_reset(-1, 7) == 5
    assert log.find_commit("c", -1, 7) is True
    assert log.find_commit("d", 4, 7) is False
    assert log.find_commit("d", 3, 7) is None
    assert log.find_commit("d", 7, 7) is False, "no version came since"
    assert log.find_commit("c", 7, 0) is False, "the table was dropped and made anew"
    assert log.find_commit("c", 6, 7) is False
    assert [version for version, _ in log.newest_first(7)] == [7, 6, 5]


def test_the_entry_of_a_commit_is_taken_back_and_no_other(tmp_path: Path) -> None:
    log = log_of(tmp_path, {PUBLISH: "theirs"}, {PUBLISH: "ours"}, first=3)
    location = Location(str(tmp_path), Passthrough())
    for version in (3, 4, 5):
        take_back(location, version, "ours")
    assert (log.commit_info(3), log.commit_info(4)) == ({PUBLISH: "theirs"}, None)


def test_what_a_handle_holds_is_guessed_by_its_log(lake: Any, support: Any) -> None:
    lake.create()
    for epoch in range(3):
        lake.epoch(epoch, support.ids(epoch))
    location = Location(lake.uri, Passthrough())
    log = Path(lake.uri, "_delta_log")
    sizes = [(log / f"{version:020}.json").stat().st_size for version in range(4)]
    assert log_bytes(location, 3) == 10 * sum(sizes)
    assert log_bytes(location, 1) == 10 * sum(sizes[:2])
    lake.table.handle.create_checkpoint()
    assert log_bytes(location, 3) == 10 * (log / f"{3:020}.checkpoint.parquet").stat().st_size
    (log / "_last_checkpoint").unlink()
    (log / f"{1:020}.json").unlink()
    assert log_bytes(location, 3) == 10 * (sum(sizes) - sizes[1]), "one that was cleaned up meanwhile counts nothing"
    assert log_bytes(location, 2000) is None
    assert log_bytes(Location("s3://bucket/t", Passthrough()), 3) is None


OTHER = "Write to a table without it, and read this one with the engine that made it, for example Spark."
ALL = {
    *("checkpointProtection", "columnMapping", "typeWidening", "typeWidening-preview", "v2Checkpoint"),
    *("vacuumProtocolCheck", "inCommitTimestamp", "rowTracking", "domainMetadata"),
}


@pytest.mark.parametrize("features", [[], ["foo"], ["rowTracking", "clustering"]])
def test_a_feature_that_nobody_drops_needs_another_table(features: list[str]) -> None:
    assert advice(features) == OTHER


def test_features_are_dropped_in_an_order_that_works() -> None:
    """Those that came with others go after them, and those of old versions forget the history."""
    drop = "ALTER TABLE … DROP FEATURE"
    assert advice(["domainMetadata", "rowTracking", "inCommitTimestamp"]) == (
        f"Run with Spark: {drop} inCommitTimestamp; {drop} rowTracking; {drop} domainMetadata."
    )
    history = advice(["v2Checkpoint", "domainMetadata", "columnMapping"])
    begin = (
        f"{drop} domainMetadata; {drop} columnMapping TRUNCATE HISTORY; {drop} v2Checkpoint TRUNCATE HISTORY. Without"
    )
    assert history.startswith(f"Run with Spark: {begin}")
    assert history.endswith("before the second.")
    assert advice(ALL).startswith("Run with Spark")
