"""The real table, as drivers, readers and strangers handle it: each time by a fresh handle."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa

from laketier.cli.demo.verify import evaluate
from laketier.maintenance.orphans import Collection, collect_orphans
from laketier.registry import load_format
from laketier.spi import (
    AddColumn,
    Feature,
    LakeStoragePlugin,
    ScanRequest,
    SnapshotNotFound,
    Watermark,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
    support_of,
    unpack,
)
from laketier.tiering import RoundResult, TieringRound, write_task
from laketier_conformance.harness import Harness
from laketier_conformance.lake import QUICK, Lake, finished, read_plan
from laketier_verification.machine.model import Round, Row, added_column, batch_of, schema_with, values_of


@dataclass(frozen=True)
class FoundLake(Lake):
    """Its plugin was looked for once: that takes longer than everything else that a step does."""

    found: LakeStoragePlugin

    @property
    def plugin(self) -> LakeStoragePlugin:
        return self.found


class Subject:
    """One table of a format, in a warehouse of its own."""

    def __init__(self, format: str, folder: Path) -> None:
        self._harness = Harness.of(format)
        self._warehouse = self._harness.setup(folder)
        self.lake = FoundLake(format, self._warehouse.location, self._warehouse.options, _plugin(format))
        self.table = self.lake.create(schema_with(0))

    def close(self) -> None:
        self._harness.teardown(self._warehouse)

    def has(self, feature: Feature) -> bool:
        return support_of(self.lake.plugin.features, feature).full

    # -- drivers ----------------------------------------------------------------------------------------------------

    def stage(self, round: Round, added: int) -> list[WriteResult]:
        """All tasks of a round, through the messages that an engine would carry."""
        factory = self.table.factory
        results = []
        for index, ids in enumerate(round.tasks):
            context = WriterInitContext(attempt=new_attempt_id(), split_index=index, mode=round.mode)
            message = write_task(factory, [batch_of(ids, added)] if ids else [], context)
            results.append(unpack(factory.write_result_serializer, message))
        return results

    def commit(self, round: Round, results: Sequence[WriteResult]) -> RoundResult:
        return self._tiering(round).commit(results)

    def run(self, round: Round, added: int, *, looks_first: bool = True) -> RoundResult:
        """The whole round by a new driver. One that ``looks_first`` stages nothing for an epoch that is done."""
        if looks_first:
            tiering = self._tiering(round)
            if tiering.begin().name == "DONE":
                return tiering.confirm_done()
            tiering.close()
        return self.commit(round, self.stage(round, added))

    def _tiering(self, round: Round) -> TieringRound:
        return TieringRound(self.table.factory, token=round.token, mode=round.mode, policy=QUICK)

    def begin(self, round: Round) -> None:
        tiering = self._tiering(round)
        try:
            tiering.begin()
        finally:
            tiering.close()

    # -- people and strangers ---------------------------------------------------------------------------------------

    def add_column(self, number: int) -> None:
        self.lake.storage.catalog().alter_table(self.table.path, [AddColumn(added_column(number))])

    def collect_orphans(self) -> Collection:
        # Files and horizon are told apart by milliseconds, and a file system's clock may lag behind by some.
        time.sleep(0.02)
        return collect_orphans(self.lake.storage, self.table.info, grace=timedelta(0))

    # -- readers ----------------------------------------------------------------------------------------------------

    def read(self, snapshot_id: int | None = None) -> tuple[int | None, Counter[Row]]:
        """The snapshot that was read, and its rows."""
        source = self.table.source
        plan = source.plan(ScanRequest(snapshot_id=snapshot_id))
        return plan.snapshot_id, rows_in(finished(read_plan(source, plan), plan, None))

    def can_read(self, snapshot_id: int) -> bool:
        try:
            self.table.source.plan(ScanRequest(snapshot_id=snapshot_id))
        except SnapshotNotFound:
            return False
        return True

    def watermarks(self, pipelines: Sequence[str]) -> dict[str, Watermark | None]:
        committer = self.table.committer()
        try:
            state = committer.open()
            return {pipeline: state.watermark(pipeline) for pipeline in pipelines}
        finally:
            committer.close()

    def read_elsewhere(self) -> tuple[str, Counter[int]] | None:
        """The ids that another reader sees, by a line that the plugin prints for people; None where it prints none."""
        open_with = getattr(self.lake.plugin, "open_with", None)
        lines = {} if open_with is None else open_with(self.table.info)
        for tool in ("deltalake", "pyiceberg", "pylance", "Polars"):
            if tool in lines:
                return tool, Counter(evaluate(lines[tool])["id"].to_pylist())
        return None


@cache
def _plugin(format: str) -> LakeStoragePlugin:
    return load_format(format)


def rows_in(table: pa.Table) -> Counter[Row]:
    """The rows of a table. A row with a value that does not follow from its id is an error here already."""
    rows: Counter[Row] = Counter()
    for found in table.to_pylist():
        known = {name: value for name, value in found.items() if value is not None}
        row = (known["id"], sum(name.startswith("added_") for name in known))
        assert known == values_of(row), f"a row was changed: {known}"
        rows[row] += 1
    return rows
