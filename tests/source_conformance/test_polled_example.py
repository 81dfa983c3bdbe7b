"""The example of a source, which polls tables of a database, is what the suite of sources asks for."""

from __future__ import annotations

import sqlite3
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import (
    BadRecord,
    ConfigError,
    LogOffsets,
    LogRange,
    StorageError,
    UnsupportedType,
)
from source_runs import offered, run_sources

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sources"
QUICK = ("test_late.py", "test_expired.py", "test_histories.py", "test_tables.py")


def outcomes(tmp_path: Path, *words: str) -> set[str]:
    offers = offered(tmp_path, "polled", "polled", "polled_harness:PolledHarness")
    run = run_sources(tmp_path, "polled", ["--log-lake=localfile", *words], path=(offers, EXAMPLES))
    assert run.code == 0, run.output
    return set(run.outcomes())


def test_most_rules_hold(tmp_path: Path) -> None:
    assert outcomes(tmp_path, *(f"--log-test={each}" for each in QUICK)) == {"passed", "refused"}


@pytest.mark.deep
def test_no_rule_is_broken(tmp_path: Path) -> None:
    assert outcomes(tmp_path) == {"passed", "refused"}


def polled(tmp_path: Path, *rows: str, columns: str = "text TEXT, n INTEGER, at TEXT") -> sqlite3.Connection:
    """A database with a table of these rows, as SQL has them."""
    db = sqlite3.connect(tmp_path / "app.sqlite", isolation_level=None)
    db.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, {columns})")
    for row in rows:
        db.execute(f"INSERT INTO t (text, n, at) VALUES ({row})")
    return db


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)


def log_of(tmp_path: Path, stamp_by: str = "at", name: str = "t") -> Any:
    module = import_module("polled")
    return module.PolledSource(tmp_path / "app.sqlite").open(name, module.TableOptions(stamp_by=stamp_by))


@pytest.mark.parametrize("change", ["UPDATE t SET text = 'paid'", "ALTER TABLE t ADD COLUMN more TEXT"])
def test_a_row_that_changes_or_a_column_more_is_no_other_history(tmp_path: Path, change: str) -> None:
    db, end = polled(tmp_path, "'open', 1, '09:00'"), LogOffsets({"rows": 2})
    stamp = log_of(tmp_path).stamp(end)
    db.execute(change)
    assert log_of(tmp_path).stamp(end) == stamp is not None
    db.execute("UPDATE t SET at = '09:01'")
    assert log_of(tmp_path).stamp(end) != stamp
    assert log_of(tmp_path, stamp_by="").stamp(end) is None


def test_a_value_that_its_column_can_not_hold_is_a_bad_record(tmp_path: Path) -> None:
    """pyarrow makes 3 of 3.5, and Python's sqlite3 ends the query at text that is no UTF-8."""
    polled(tmp_path, "'a', 3, ''", "'b', 3.5, ''", "CAST(x'ff' AS TEXT), 4, ''", "x'63', 5, ''", "'e', 6, ''")
    log, bad = log_of(tmp_path), list[BadRecord]()
    (split,) = log.plan(LogRange(LogOffsets({"rows": 1}), LogOffsets({"rows": 6})))
    (rows,) = log.read(split, on_bad_record=bad.append)
    assert (rows["n"].to_pylist(), [each.offset for each in bad]) == ([3, 6], [2, 3, 4])


def test_a_table_that_can_not_be_polled_is_refused(tmp_path: Path) -> None:
    db = polled(tmp_path, columns="text VARCHAR(20)")
    with pytest.raises(UnsupportedType, match=r"text VARCHAR\(20\)"):
        log_of(tmp_path, "")
    db.execute("CREATE TABLE other (id INTEGER PRIMARY KEY, autoincrement_at TEXT)")
    with pytest.raises(ConfigError, match="stamp-by: nothing"):
        log_of(tmp_path, "nothing", "other")
    db.execute("INSERT INTO other DEFAULT VALUES")
    with pytest.raises(StorageError, match="the ids of 'other' are not kept"):
        log_of(tmp_path, "", "other").bounds()
