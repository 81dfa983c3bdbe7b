"""A process has one connection to the database that notes each commit. Its children use it, too."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_a_process_that_forks"
SAYS = "Keep a connection by the number of the process, and open one in a child"


@cache
def connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("CREATE TABLE IF NOT EXISTS commits (number INTEGER PRIMARY KEY, rows INTEGER)")
    return connection


class NotingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        notes = connected(f"{self.table.location}.notes")
        notes.execute("INSERT OR IGNORE INTO commits VALUES (?, ?)", (done.snapshot_id, done.rows))
        return done


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("keeps-a-connection-in-its-children", committer=NotingCommitter)
