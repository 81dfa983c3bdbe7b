"""A lake table that rounds fill from the table under test, each in a process that may be killed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from laketier.config import LakeConfig
from laketier.dead_letters.records import each_once, scan_dead_letters
from laketier.registry import configure, open_lake
from laketier.rounds import LogRound, LogRoundSettings, run_log_task
from laketier.spi import BadRecord, LogOffsets, ScanRequest, TableLog, TableNotFound
from laketier.tiering import pipelines
from laketier_conformance.expect import NotShown
from laketier_conformance.lake import Lake
from laketier_conformance.lake import Table as LakeTable
from laketier_source_conformance.children import Processes
from laketier_source_conformance.harness import Row
from laketier_source_conformance.reads import first_of
from laketier_source_conformance.system import ORIGIN, Table, ordered

_PIPELINE = "conformance.t"


def config_of(lake_format: str, warehouse: str) -> LakeConfig:
    """The configuration of the lake table."""
    options = {
        "lake.format": lake_format,
        "lake.warehouse": warehouse,
        "lake.table": "db.t",
        "lake.pipeline": _PIPELINE,
    }
    return configure(options, environment={}, origin=ORIGIN)


def run_rounds(log: TableLog, config: LakeConfig, settings: LogRoundSettings, most: int) -> int:
    """Rounds until there is nothing left, ``most`` of them; how many were published. In the process of a driver."""
    for number in range(most):
        made = LogRound(log, config, settings)
        tasks = made.plan()
        if not tasks:
            return number
        made.finish([run_log_task(task) for task in tasks])
    raise AssertionError(f"rounds go nowhere: after {most} of them there are offsets left to read")


class Tiered:
    """Of one table."""

    def __init__(self, table: Table, lake_format: str | None, processes: Processes) -> None:
        self._table, self._processes = table, processes
        self._installed = lake_format
        self._warehouse = str(table.system.harness.folder.with_name("tiered"))

    @property
    def _format(self) -> str:
        if self._installed is None:
            raise NotShown("a lake table", "no format is installed, as laketier's extra `localfile` brings one")
        return self._installed

    @property
    def config(self) -> LakeConfig:
        """Of the lake table."""
        return config_of(self._format, self._warehouse)

    def run(self, rows: int | None, most: int, *, failpoints: str | None = None, dead_letters: bool = False) -> int:
        """Rounds of about so many rows until there is nothing left, by a driver of its own. How many were published.
        Raises `ChildDied` where it was killed."""
        offsets = None if rows is None else self._offsets_of(rows)
        return int(self._asked("rounds", offsets, most, failpoints, dead_letters)["rounds"])

    def _offsets_of(self, rows: int) -> int:
        """Offsets need not be dense: where one is the place in a file, a row takes many."""
        bounds = self._table.log().bounds().values()
        width = sum(each.latest - first_of(each) for each in bounds)
        return max(rows, rows * width // max(len(self._table.rows), 1))

    @property
    def awaited(self) -> list[str]:
        """The rows that the lake table has to have, as `ordered` gives them: of a log of changes, without the column
        that tells what kind of change each is."""
        change = self._table.log().table.change_column
        rows = [{name: each for name, each in row.items() if name != change} for row in self._table.rows]
        return ordered(rows)

    def points(self) -> Sequence[str]:
        """The failpoints that the rounds of all that is there pass, in their order."""
        return [str(point) for point in self._asked("points", None, 5, None, False)["points"]]

    def _asked(self, do: str, offsets: int | None, most: int, failpoints: str | None, dead_letters: bool) -> Any:
        request: dict[str, Any] = {
            **self._table.named,
            "format": self._format,
            "warehouse": self._warehouse,
            "offsets": offsets,
            "most": most,
            "dead_letters": dead_letters,
        }
        return self._processes.ask(do, **request, **({} if failpoints is None else {"failpoints": failpoints}))

    @property
    def _lake(self) -> LakeTable:
        return Lake(self._format, self._warehouse, {}).table("db.t")

    @property
    def rows(self) -> list[Row]:
        """The rows of the lake table."""
        try:
            found: list[Row] = self._lake.read().to_pylist()
        except TableNotFound:
            return []
        return found

    def rows_of_others(self) -> list[Row] | None:
        """The same by pyarrow alone. None where the files of the table are no plain Parquet."""
        paths = [split.plain_parquet for split in self._lake.source.plan(ScanRequest()).splits]
        tables: list[pa.Table] = [pyarrow.parquet.ParquetFile(path).read() for path in paths if path is not None]
        if len(tables) < len(paths):
            return None
        return [row for each in tables for row in each.to_pylist()]

    def position(self) -> LogOffsets | None:
        """Where the lake table has read up to."""
        watermark = pipelines.show(open_lake(self.config).current_state(), _PIPELINE)
        source = None if watermark is None else watermark.token.source
        return None if source is None else LogOffsets.from_text(source.end)

    def dead_letters(self) -> list[BadRecord]:
        """The bad records that rounds took aside."""
        return [each.record for each in each_once(scan_dead_letters(self.config) or ())]
