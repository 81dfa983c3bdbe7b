"""A tiering service over logs of changes, to be harmed: the lake must hold the newest row of each key, and no other."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from laketier.registry import open_lake
from laketier.spi import TableNotFound
from laketier_verification.faults.oracle import foreign_column
from laketier_verification.faults.service_lab import Lab
from laketier_verification.lines import LinesTable

_COLUMNS = {"id": "int64", "text": "string", "op": "string"}
_KEYS = 200


class KeyedLab(Lab):
    """Each row's text is written once in the whole log, so it says which change of its key it is."""

    def __init__(self, format: str, folder: Path, **settings: Any) -> None:
        self._draw = random.Random(3)
        super().__init__(format, folder, **settings)

    def _logs(self, folder: Path, tables: int, buckets: int) -> Sequence[LinesTable]:
        made = [LinesTable(folder / "logs", f"t{number}").create(_COLUMNS, buckets) for number in range(tables)]
        for table in made:
            table.describe(primary_key=["id"], change_column="op")
        return made

    def feed(self, rows: int = 5) -> None:
        for table in self.lines:
            for bucket in range(self.buckets):
                lines = []
                for _ in range(rows):
                    self._ids += 1
                    key = self._draw.randrange(_KEYS // self.buckets) * self.buckets + bucket
                    op = self._draw.choice(("+I", "+U", "+U", "-D"))
                    lines.append(json.dumps({"id": key, "text": f"{key}:{self._ids}", "op": op}))
                table.append_raw(*lines, bucket=bucket)

    def log_of(self, table: LinesTable) -> tuple[Counter[Any], Counter[tuple[str, int]]]:
        newest: dict[int, str | None] = {}
        for bucket in range(self.buckets):
            for line in (table.folder / f"{bucket}.jsonl").read_text().splitlines():
                change = json.loads(line)
                newest[change["id"]] = None if change["op"] == "-D" else change["text"]
        return Counter(text for text in newest.values() if text is not None), Counter()

    def ids(self, table: str) -> Counter[Any]:
        try:
            return Counter(foreign_column(self.format, open_lake(self.config(table)).load_table(), "text"))
        except TableNotFound:
            return Counter()
