"""A server has the moment of each commit, in UTC and without a zone. It compares them with moments that have one, and
takes them for those of its session's zone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
from crooked import CrookedPlugin
from feather_lake.plugin import Source
from iceberg_on_postgresql import server

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_conformance.harness import Warehouse

CAUGHT_BY = "test_surroundings.py::test_moments_of_processes_in_other_zones[day]"
SAYS = "the snapshot of a moment, for who lives in"


class Harness:
    def setup(self, folder: Path) -> Warehouse:
        server()  # begun where nobody has moved yet, as it keeps the zone in which it was made
        return Warehouse(str(folder / "warehouse"))


def ask(statement: str, *values: object) -> int | None:
    with psycopg.connect(server().url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS commits (location text, snapshot bigint, at timestamp)")
        row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]


class NotingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        note = "INSERT INTO commits VALUES (%s, %s, clock_timestamp() AT TIME ZONE 'UTC') RETURNING snapshot"
        ask(note, str(self.table.location), done.snapshot_id)
        return done


class AskingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.as_of is not None:
            asked = "SELECT max(snapshot) FROM commits WHERE location = %s AND at <= to_timestamp(%s / 1000.0)"
            found = ask(asked, str(self.table.location), request.as_of)
            if found is None:
                raise spi.SnapshotNotFound("nothing was committed by then", where=str(self.table.location))
            request = replace(request, as_of=None, snapshot_id=found)
        return super().plan(request)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("travels-by-the-zone-of-a-session", source=AskingSource, committer=NotingCommitter)
