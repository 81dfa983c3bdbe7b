"""What came of a tiering service: logs of JSON lines beside the lake tables that they went to, read with others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from laketier.config import LakeConfig
from laketier.dead_letters.table import dead_letter_table
from laketier.registry import configure, open_lake
from laketier.spi import TableNotFound
from laketier_verification.faults.oracle import foreign_column, unexplained
from laketier_verification.lines import LinesTable


@dataclass
class Verdict:
    """Of one scenario: rows that were lost, are there more than once, or came from nowhere; and what else is wrong."""

    lost: int = 0
    doubled: int = 0
    alien: int = 0
    rows: int = 0
    dead_letters: int = 0
    leftovers: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.alien or self.wrong)


@dataclass
class Judged:
    """Logs of ``buckets`` buckets each below ``folder``, and the lake beside them. ``bad_every``: not 0 when the logs
    have records that go to the dead letters."""

    format: str
    folder: Path
    lines: Sequence[LinesTable]
    buckets: int
    bad_every: int = 0

    def config(self, table: str) -> LakeConfig:
        return configure(
            {
                "lake.format": self.format,
                "lake.warehouse": str(self.folder / "lake"),
                "lake.table": f"db.{table}",
                "lake.pipeline": f"lab.src.{table}",
            },
            environment={},
        )

    def log_of(self, table: LinesTable) -> tuple[Counter[int], Counter[tuple[str, int]]]:
        """Ids of the rows, and places of the bad records."""
        ids: Counter[int] = Counter()
        bad: Counter[tuple[str, int]] = Counter()
        for bucket in range(self.buckets):
            for offset, line in enumerate((table.folder / f"{bucket}.jsonl").read_text().splitlines()):
                if line == "poison":
                    bad[str(bucket), offset] += 1
                else:
                    ids[json.loads(line)["id"]] += 1
        return ids, bad

    def ids(self, table: str) -> Counter[Any]:
        """What the lake holds, by a reader that is not laketier."""
        try:
            return Counter(foreign_column(self.format, open_lake(self.config(table)).load_table(), "id"))
        except TableNotFound:
            return Counter()

    def judge(self, but: Sequence[str] = (), *, files: bool = True) -> Verdict:
        """Every table against its log, except some. ``files``: also that none leaked."""
        verdict = Verdict()
        for table in self.lines:
            if table.name not in but:
                self._judge_rows(verdict, table.name, *self.log_of(table))
                if files:
                    self._judge_files(verdict, table.name)
        return verdict

    def _judge_rows(self, verdict: Verdict, name: str, should: Counter[int], bad: Counter[tuple[str, int]]) -> None:
        found = self.ids(name)
        verdict.rows += found.total()
        verdict.lost += (should - found).total()
        verdict.doubled += sum(count for value, count in (found - should).items() if value in should)
        verdict.alien += sum(count for value, count in found.items() if value not in should)
        if not bad:
            return
        info = open_lake(self._dead_letters(name)).load_table()
        columns = (foreign_column(self.format, info, column) for column in ("bucket", "offset"))
        # Two reads of one version, in the same order.
        dead_letters = Counter(zip(*columns, strict=True))
        verdict.dead_letters += dead_letters.total()
        if dead_letters != bad:
            verdict.wrong.append(f"{name}: dead letters lost {bad - dead_letters}, more {dead_letters - bad}")

    def _judge_files(self, verdict: Verdict, name: str) -> None:
        for config in [self.config(name), *([self._dead_letters(name)] if self.bad_every else [])]:
            lake = open_lake(config)
            left = unexplained(self.format, lake.storage, lake.load_table())
            verdict.leftovers += len(left.unreferenced)
            if left.built and (left.unexplained or left.endangered):
                verdict.wrong.append(f"{name}: leaked {left.unexplained[:3]}, endangered {left.endangered[:3]}")

    def _dead_letters(self, name: str) -> LakeConfig:
        config = self.config(name)
        return replace(config, table=dead_letter_table(config.table))
