"""A reader in a process of its own:
``python -m laketier_verification.faults.watcher FORMAT WAREHOUSE LOCATION ours|foreign SCOREBOARD``.

It looks at the table over and over. The writer keeps a scoreboard in shared memory: how many epochs it has begun to
publish, and how many were acknowledged to it. So each look is held against both: it must show every epoch acknowledged
before it, none that was not begun before its end, all of the rows of each, and no less than the look before.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.spi import Leaf, Op, ScanRequest
from laketier.tables.scan import scan
from laketier_verification.faults.asking import Answers, serve
from laketier_verification.faults.foreign_read import ForeignReader
from laketier_verification.faults.marked import MarkedTable

WINDOW = 20
"""Most looks ask for the newest epochs only, as a table of thousands takes long to read. Every `FULL`th reads all."""
FULL = 10
ERRORS = 20
"""So many errors of another project's reader are told; more end it."""
_NUMBERS = struct.Struct("<qqq")


class Scoreboard:
    """Epochs begun, epochs acknowledged, and whether it is over."""

    def __init__(self, path: Path, *, new: bool = False) -> None:
        if new:
            path.write_bytes(bytes(_NUMBERS.size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _NUMBERS.size)

    def set(self, begun: int, acknowledged: int, *, over: bool = False) -> None:
        self._memory[:] = _NUMBERS.pack(begun, acknowledged, over)

    def get(self) -> tuple[int, int, bool]:
        begun, acknowledged, over = _NUMBERS.unpack(self._memory[:])
        return begun, acknowledged, bool(over)

    def close(self) -> None:
        self._memory.close()


def _ours(table: MarkedTable) -> Callable[[int], pa.Table]:
    def look(since: int) -> pa.Table:
        newest = (Leaf("epoch", Op.GE, since),) if since else ()
        schema, batches = scan(table.storage.source(table.info), ScanRequest(filters=newest))
        return pa.Table.from_batches(batches, schema=schema)

    return look


def _foreign(format: str, warehouse: str, location: str) -> Callable[[int], pa.Table]:
    reader = ForeignReader(format, warehouse, location)
    return lambda since: reader.read(since or None)


def _watch(answers: Answers, request: dict[str, Any]) -> dict[str, Any]:
    name, warehouse, location, kind, path = sys.argv[1:6]
    board = Scoreboard(Path(path))
    look = _ours(MarkedTable(name, warehouse)) if kind == "ours" else _foreign(name, warehouse, location)
    looks = distinct = last = 0
    wrong: list[str] = []
    errors: list[str] = []
    answers.say(ready=True)
    longest = 0.0
    while True:
        _, acknowledged, over = board.get()
        since = 0 if looks % FULL == 0 or over else max(last - WINDOW, 0)
        started = time.monotonic()
        try:
            rows = look(since)
        except Exception as error:
            # Of another project's reader an error is told, and is nothing wrong that was seen.
            errors.append(f"{type(error).__name__}: {error}"[:300])
            if kind == "ours" or len(errors) > ERRORS:
                raise
            continue
        longest = max(longest, time.monotonic() - started)
        begun = board.get()[0]
        looks += 1
        ours = rows.filter(pc.field("driver") == "ours")
        counts = Counter(epoch for epoch in ours["epoch"].to_pylist() if epoch >= since)
        seen = max(counts, default=since - 1) + 1
        problems = _judge(counts, since, seen, acknowledged, begun, last)
        # To some readers a commit is atomic: what they see is whole. To others it is once it was acknowledged.
        settled = seen if request["atomic"] else acknowledged
        problems += _partly(counts, settled, request["rows_per_epoch"])
        wrong += [f"look {looks}: {problem}" for problem in problems]
        distinct += seen > last
        last = max(last, seen)
        if over:
            return {
                "looks": looks,
                "states": distinct,
                "epochs": seen,
                "longest_look": round(longest, 3),
                "wrong": wrong[:50],
                "errors": errors,
                "wrong_count": len(wrong),
            }


def _judge(counts: Counter[int], since: int, seen: int, acknowledged: int, begun: int, last: int) -> list[str]:
    problems = []
    if seen < last:
        problems.append(f"went back from {last} to {seen} epochs")
    if seen < acknowledged:
        problems.append(f"saw {seen} epochs, and {acknowledged} were acknowledged")
    if seen > begun:
        problems.append(f"saw {seen} epochs, and {begun} were begun")
    missing = [epoch for epoch in range(since, seen) if epoch not in counts]
    if missing:
        problems.append(f"epochs {missing[:5]} are missing below {seen}")
    return problems


def _partly(counts: Counter[int], settled: int, whole: int) -> list[str]:
    partly = [epoch for epoch, count in counts.items() if epoch < settled and count != whole]
    return [f"epoch {epoch} has {counts[epoch]} of {whole} rows" for epoch in partly[:5]]


if __name__ == "__main__":
    serve({"watch": _watch})
