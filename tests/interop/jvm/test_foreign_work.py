"""Rounds of laketier between the work of delta-spark and iceberg-spark: histories from a seed, against a dict."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jvm_lake import JvmLake
from keyed_lines import COLUMNS, KeyedLines
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import IncompatibleTable, Refused
from laketier_verification.lines import LinesTable

SEED = int(os.environ.get("INTEROP_SEED", "11"))
HISTORIES = int(os.environ.get("INTEROP_HISTORIES", "3"))
STEPS = int(os.environ.get("INTEROP_STEPS", "14"))
Rows = dict[int, str]
Act = Callable[["History"], None]


class History:
    """A table that follows a log of changes, and others who work on it. ``rows`` is what it has to hold; ``waiting``
    changes are in the log, and no round has brought them into the table."""

    def __init__(self, lake: JvmLake, folder: Path, choose: random.Random) -> None:
        self.lake, self.choose, self.rows = lake, choose, Rows()
        self.engine = LocalEngine(1)
        log = LinesTable(folder / "logs", "t").create(COLUMNS, buckets=2)
        self.lines = KeyedLines(log, lake.config(pipeline="p"), self.engine)
        self.did: list[str] = []
        self.waiting: list[tuple[str, int, str]] = []
        self.unread = 0

    # -- ours -------------------------------------------------------------------------------------------------------

    def ours(self) -> None:
        """A round by key: inserts, updates, deletes."""
        changes = []
        for key in self.choose.sample(range(40), self.choose.randint(1, 12)):
            op = self.choose.choice(["+I", "+U", "-D"])
            changes.append((op, key, f"ours {len(self.did)}"))
        self.lines.append(*changes)
        self.waiting += changes
        self.lines.round()
        for op, key, name in self.waiting:
            if op == "-D":
                self.rows.pop(key, None)
            else:
                self.rows[key] = name
        self.waiting.clear()

    # -- theirs -----------------------------------------------------------------------------------------------------

    def sql(self, statement: str) -> None:
        self.lake.theirs(statement)

    def update(self) -> None:
        n = self.choose.randint(2, 5)
        self.sql(f"UPDATE {{t}} SET name = 'theirs {len(self.did)}' WHERE id % {n} = 0")
        self.rows |= {key: f"theirs {len(self.did)}" for key in self.rows if key % n == 0}

    def delete(self) -> None:
        n = self.choose.randint(3, 7)
        self.sql(f"DELETE FROM {{t}} WHERE id % {n} = 1")
        self.rows = {key: name for key, name in self.rows.items() if key % n != 1}

    def insert(self) -> None:
        free = next(key for key in range(40) if key not in self.rows)
        self.sql(f"INSERT INTO {{t}} (id, name) VALUES ({free}, 'inserted')")
        self.rows[free] = "inserted"

    def merge(self) -> None:
        self.sql(
            "MERGE INTO {t} t USING (SELECT id, 'merged' AS name FROM range(10, 20)) s ON t.id = s.id "
            "WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name "
            "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
        )
        for key in range(10, 20):
            if key in self.rows and key % 2 == 0:
                del self.rows[key]
            else:
                self.rows[key] = "merged"

    # -- looks ------------------------------------------------------------------------------------------------------

    def check(self, say: str) -> None:
        wanted = sorted(self.rows.items())
        theirs = sorted((row.id, row.name) for row in self.lake.rows.select("id", "name").collect())
        assert theirs == wanted, f"the connector, {say}"
        try:
            ours = sorted((row["id"], row["name"]) for row in self.lines.read())
        except IncompatibleTable as refusal:
            require_said(refusal)
            self.unread += 1
        else:
            assert ours == wanted, f"laketier, {say}"
        library = self.lake.by_library().to_pylist()
        assert sorted((row["id"], row["name"]) for row in library) == wanted, f"the library, {say}"


def require_said(refusal: IncompatibleTable) -> None:
    """It names what the format's page says that laketier does not read."""
    assert "deletion vectors" in str(refusal) or "column mapping" in str(refusal), refusal


def delta_maintenance() -> dict[str, Act]:
    return {
        "optimize": lambda h: h.sql("OPTIMIZE {t}"),
        "zorder": lambda h: h.sql("OPTIMIZE {t} ZORDER BY (name)"),
        "purge": lambda h: h.sql("REORG TABLE {t} APPLY (PURGE)"),
        "vacuum": lambda h: h.sql("VACUUM {t} RETAIN 0 HOURS"),
    }


def iceberg_maintenance() -> dict[str, Act]:
    def call(procedure: str, *arguments: str) -> Act:
        def act(h: History) -> None:
            told = ", ".join([f"table => 'db.{h.lake.name}'", *arguments])
            h.sql(f"CALL laketier.system.{procedure}({told})")

        return act

    return {
        "rewrite data": call("rewrite_data_files", "options => map('rewrite-all', 'true')"),
        "rewrite deletes": call("rewrite_position_delete_files", "options => map('rewrite-all', 'true')"),
        "rewrite manifests": call("rewrite_manifests"),
        "expire": call("expire_snapshots", "older_than => TIMESTAMP '2999-01-01 00:00:00'", "retain_last => 1"),
        "branch": lambda h: h.sql(f"ALTER TABLE {{t}} CREATE OR REPLACE BRANCH b{len(h.did)}"),
        "order": lambda h: h.sql("ALTER TABLE {t} WRITE ORDERED BY name"),
    }


MAINTENANCE: Mapping[str, Callable[[], dict[str, Act]]] = {"delta": delta_maintenance, "iceberg": iceberg_maintenance}
PROPERTIES: Mapping[str, tuple[dict[str, str], ...]] = {
    "delta": ({}, {"delta.enableDeletionVectors": "true"}, {"delta.columnMapping.mode": "name"}),
    "iceberg": (
        {},
        {f"write.{do}.mode": "merge-on-read" for do in ("delete", "update", "merge")},
        {"write.object-storage.enabled": "true", "write.parquet.row-group-size-bytes": "100"},
    ),
}


@pytest.mark.parametrize("number", range(HISTORIES))
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_history(jvm_lake: JvmLake, format: str, tmp_path: Path, kind: int, number: int) -> None:
    """Nobody's row is lost, doubled or old; who refuses says so by name, and then nothing changed."""
    choose = random.Random(f"{SEED} {format} {kind} {number}")
    history = History(jvm_lake, tmp_path, choose)
    history.ours()
    told = ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES[format][kind].items())
    if told:
        history.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({told})")
    theirs: dict[str, Act] = {name: getattr(History, name) for name in ("update", "delete", "insert", "merge")}
    acts = {"ours": History.ours, **theirs, **MAINTENANCE[format]()}
    refused: Counter[str] = Counter()
    for step in range(STEPS):
        name = "ours" if step % 2 == 0 else choose.choice([other for other in acts if other != "ours"])
        history.did.append(name)
        try:
            acts[name](history)
        except IncompatibleTable as refusal:
            # Until somebody purges the table; the changes wait in the log.
            assert name == "ours"
            require_said(refusal)
            refused[type(refusal).__name__] += 1
        except Refused as refusal:
            assert name == "ours"
            refused[type(refusal).__name__] += 1
            history.check(f"refused: {refusal}")
            break
        history.check(f"seed {SEED}, {format} {kind}/{number}, after {history.did}")
    history.engine.close()
    print(
        f"{format} {PROPERTIES[format][kind]} {number}: {len(history.did)} steps, "
        f"refused {dict(refused)}, unread {history.unread}"
    )
    assert len(history.did) > 1
