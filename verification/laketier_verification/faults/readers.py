"""Readers during many commits: ``python -m laketier_verification.faults readers --format delta --commits 1000``.

One process commits epochs of several files in several partitions, and now and then compacts and expires as others
would, within what readers need. Two more look at the table all the time: one with our source, one with an engine that
is not ours. Each look must show whole epochs, all of the acknowledged, and never go back.

Plain readers of local files see a commit file by file, as its page says: to them only the epoch under way may be there
in part.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laketier.tiering import RoundOutcome
from laketier_verification.faults.asking import Process
from laketier_verification.faults.foreign_read import NAMES
from laketier_verification.faults.housekeeping import foreigner_for
from laketier_verification.faults.marked import MarkedTable, rows_of
from laketier_verification.faults.races import write_json
from laketier_verification.faults.watcher import Scoreboard

ROWS = {"a": 2, "b": 3}
ATOMIC_FOR_PLAIN_READERS = frozenset({"delta", "iceberg", "lance"})
OPTIONS = {"iceberg": {"expire-in-commit": "true"}}
PROPERTIES = {
    "iceberg": {
        "commit.manifest-merge.enabled": "true",
        "history.expire.max-snapshot-age-ms": "1000",
        "history.expire.min-snapshots-to-keep": "20",
        "write.metadata.delete-after-commit.enabled": "true",
    },
}


@dataclass
class Reading:
    """What the readers saw."""

    format: str
    commits: int
    seconds: float = 0.0
    compactions: int = 0
    rows: int = 0
    readers: dict[str, dict[str, Any]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def run(format: str, commits: int, folder: Path, *, compact_every: int = 100) -> Reading:
    """Commit ``commits`` epochs on a new table below ``folder`` under the eyes of two readers."""
    warehouse = str(folder / "warehouse")
    table = MarkedTable(format, warehouse, OPTIONS.get(format, {}))
    table.create(partitioned=True, properties=PROPERTIES.get(format, {}))
    location = str(table.location)
    board = Scoreboard(folder / "scoreboard", new=True)
    result = Reading(format, commits)
    foreigner = foreigner_for(table)
    with ExitStack() as stack:
        stack.callback(board.close)
        stack.callback(foreigner.close)
        # An empty table of local files has no file that a plain reader could take the schema from.
        _commit(table, 0, board)
        readers = {
            name: stack.enter_context(
                Process(
                    "laketier_verification.faults.watcher",
                    format,
                    warehouse,
                    location,
                    kind,
                    str(folder / "scoreboard"),
                )
            )
            for name, kind in (("laketier", "ours"), (NAMES[format], "foreign"))
        }
        for name, reader in readers.items():
            atomic = name == "laketier" or format in ATOMIC_FOR_PLAIN_READERS
            reader.begin("watch", rows_per_epoch=2 * sum(ROWS.values()), atomic=atomic)
        for reader in readers.values():
            assert reader.answer() == {"ready": True}
        started = time.monotonic()
        for epoch in range(1, commits):
            _commit(table, epoch, board)
            if epoch % compact_every == 0:
                foreigner.compact()
                result.compactions += 1
                print(f"{epoch} of {commits} epochs", file=sys.stderr, flush=True)
        result.seconds = round(time.monotonic() - started, 1)
        board.set(commits, commits, over=True)
        for name, reader in readers.items():
            answer = reader.answer()
            result.readers[name] = answer
            if "looks" not in answer:
                result.wrong.append(f"{name}: {answer}")
            elif answer["wrong_count"] or answer["epochs"] != commits:
                result.wrong += [f"{name}: {line}" for line in answer["wrong"]] or [f"{name}: {answer}"]
    result.rows = table.marks().total()
    if result.rows != commits * 2 * sum(ROWS.values()):
        result.wrong.append(f"the table has {result.rows} rows at the end")
    return result


def _commit(table: MarkedTable, epoch: int, board: Scoreboard) -> None:
    """Two tasks with both partitions each: four files, where the format has partitions."""
    board.set(epoch + 1, epoch)
    tasks = [[_rows(epoch, task, part) for part in ROWS] for task in (0, 1)]
    outcome = table.round(epoch, tasks).outcome
    assert outcome is RoundOutcome.PUBLISHED, outcome
    board.set(epoch + 1, epoch + 1)


def _rows(epoch: int, task: int, part: str) -> Any:
    return rows_of(epoch, "ours", ROWS[part], part, first=task * 100)


def report(result: Reading) -> str:
    head = f"{result.format}: {result.commits} epochs in {result.seconds:.0f} s, {result.compactions} compactions"
    lines = [f"{head}; {result.rows} rows; wrong: {len(result.wrong)}"]
    for name, answer in result.readers.items():
        lines.append(
            f"  {name}: {answer.get('looks')} looks, {answer.get('states')} of them at a new state, the longest took "
            f"{answer.get('longest_look')} s; looks that saw what they must not: {answer.get('wrong_count')}; "
            f"errors: {len(answer.get('errors', []))}"
        )
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", required=True, choices=sorted(NAMES))
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--compact-every", type=int, default=100)
    parser.add_argument("--json", type=Path, help="where the figures go; artifacts/faults/ by default")


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="laketier-readers-") as folder:
        result = run(arguments.format, arguments.commits, Path(folder), compact_every=arguments.compact_every)
    print(report(result))
    for line in result.wrong[:20]:
        print(f"  WRONG: {line}")
    write_json(arguments.json, f"readers-{arguments.format}", dict(vars(result)))
    return 1 if result.wrong else 0
