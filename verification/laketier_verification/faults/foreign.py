"""What a replay costs after others have committed very often:
``python -m laketier_verification.faults foreign --format delta``.

Two tables get one epoch of ours each. Then another writer commits 10 times to the one and 10,000 times to the other,
and cleans up as such writers do: at the end ``--retain`` snapshots (log entries, versions) are left, and the one with
our epoch is long gone. Then our epoch is replayed on both in turn: opened, decided, staged and committed. It must be
recognised each time, and cost no more on the second table than on the first. New processes replay it too, as after a
crash: what one remembers of a table must not be what makes it cheap.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from laketier.tiering import RoundOutcome
from laketier_verification.faults.foreign_read import NAMES, ForeignReader
from laketier_verification.faults.housekeeping import THEIRS, Foreigner, create_for, foreigner_for
from laketier_verification.faults.marked import MarkedTable, marks_of, rows_of
from laketier_verification.faults.races import write_json

FEW = 10
LIMIT = 1.5
OUR_ROWS = 7
NEWCOMERS = 8


@dataclass
class Replays:
    """Medians in ms, of ``repetitions`` replays on each table in turn."""

    format: str
    commits: int
    few: int = FEW
    repetitions: int = 0
    retained: list[int] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    wall_ms: list[float] = field(default_factory=list)
    cpu_ratio: float = 0.0
    wall_ratio: float = 0.0
    first_cpu_ms: list[float] = field(default_factory=list)
    """The first replay of a new process, without its start: medians of a few processes."""
    process_cpu_ms: list[float] = field(default_factory=list)
    """The whole of such a process."""
    library_cpu_ms: list[float] = field(default_factory=list)
    """What the other writer's own library takes to open the table once: a replay opens it four times."""
    recognised: int = 0
    foreign_seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def prepare(format: str, warehouse: Path, commits: int, retain: int, seconds: float) -> tuple[MarkedTable, int, int]:
    """Our epoch, then foreign commits, for ``seconds`` at most. The table, how many, and what is retained of them."""
    table, other = create_for(format, str(warehouse))
    try:
        table.append(0, rows_of(0, "ours", OUR_ROWS))
        done = _commit(other, commits, retain, time.monotonic() + seconds)
        return table, done, other.retained()
    finally:
        other.close()


def _commit(other: Foreigner, commits: int, retain: int, deadline: float) -> int:
    """Cleaned up every ``retain`` commits, the last time ``retain`` commits before the end."""
    for number in range(commits):
        if number and (commits - number) % (retain - 1) == 0:
            other.compact()
            other.expire(1)
            print(f"{number} of {commits} foreign commits", file=sys.stderr, flush=True)
            if time.monotonic() > deadline:
                return number
        other.append(number)
    return commits


def run(
    format: str,
    commits: int,
    folder: Path,
    *,
    repetitions: int,
    retain: int,
    seconds: float,
    newcomers: int = NEWCOMERS,
) -> Replays:
    started = time.monotonic()
    few, few_done, few_retained = prepare(format, folder / "few", FEW, retain, seconds)
    many, many_done, many_retained = prepare(format, folder / "many", commits, retain, seconds)
    result = Replays(format, many_done, few_done, repetitions, [few_retained, many_retained])
    result.foreign_seconds = round(time.monotonic() - started, 1)
    cpu: tuple[list[float], list[float]] = ([], [])
    wall: tuple[list[float], list[float]] = ([], [])
    for repetition in range(-3, repetitions):  # three to warm up
        for index, table in enumerate((few, many)):
            before, since = time.process_time(), time.perf_counter()
            outcome = table.append(0, rows_of(0, "ours", OUR_ROWS)).outcome
            spent, passed = time.process_time() - before, time.perf_counter() - since
            if outcome is RoundOutcome.ALREADY_THERE:
                result.recognised += repetition >= 0
            else:
                result.wrong.append(f"a replay after {(few_done, many_done)[index]} commits ended with {outcome.name}")
            if repetition >= 0:
                cpu[index].append(spent * 1000)
                wall[index].append(passed * 1000)
    result.cpu_ms = [round(statistics.median(values), 2) for values in cpu]
    result.wall_ms = [round(statistics.median(values), 2) for values in wall]
    for table in (few, many) if newcomers else ():
        first, whole = _newcomers(table, newcomers)
        result.first_cpu_ms.append(first)
        result.process_cpu_ms.append(whole)
    result.library_cpu_ms = [_look(table, repetitions) for table in (few, many)]
    result.cpu_ratio = round(result.cpu_ms[1] / result.cpu_ms[0], 2)
    result.wall_ratio = round(result.wall_ms[1] / result.wall_ms[0], 2)
    for table, done in ((few, few_done), (many, many_done)):
        _check(table, done, result)
    if max(result.cpu_ratio, result.wall_ratio) > LIMIT:
        result.wrong.append(f"a replay costs more than {LIMIT} times as much after {many_done} commits")
    return result


def _newcomers(table: MarkedTable, times: int) -> tuple[float, float]:
    command = [sys.executable, "-m", "laketier_verification.faults.newcomer", table.format, table.warehouse]
    answers = [json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(times)]
    first, whole = ([answer[key] for answer in answers] for key in ("first", "process"))
    return round(statistics.median(first), 2), round(statistics.median(whole), 2)


def _look(table: MarkedTable, repetitions: int) -> float:
    other = foreigner_for(table)
    try:
        before = time.process_time()
        for _ in range(repetitions):
            other.look()
        return round((time.process_time() - before) * 1000 / repetitions, 2)
    finally:
        other.close()


def _check(table: MarkedTable, commits: int, result: Replays) -> None:
    reader = ForeignReader(table.format, table.warehouse, str(table.location))
    try:
        found = marks_of(reader.read())
    finally:
        reader.close()
    expected = {(0, "ours"): OUR_ROWS} | {(number, THEIRS): 1 for number in range(commits)}
    if found != expected:
        result.wrong.append(f"after {commits} foreign commits the rows are not what was committed")


def report(result: Replays) -> str:
    return (
        f"{result.format}: {result.few} and {result.commits} foreign commits in {result.foreign_seconds:.0f} s, "
        f"retained {result.retained[0]} and {result.retained[1]}; {result.recognised} of {2 * result.repetitions} "
        f"replays recognised\n"
        f"  one replay, CPU: {result.cpu_ms[0]} and {result.cpu_ms[1]} ms (x {result.cpu_ratio}); "
        f"wall: {result.wall_ms[0]} and {result.wall_ms[1]} ms (x {result.wall_ratio}); wrong: {len(result.wrong)}\n"
        f"  the first of a new process, CPU: {result.first_cpu_ms[0]} and {result.first_cpu_ms[1]} ms; the whole "
        f"process: {result.process_cpu_ms[0]} and {result.process_cpu_ms[1]} ms\n"
        f"  one open by {NAMES[result.format]}, CPU: {result.library_cpu_ms[0]} and {result.library_cpu_ms[1]} ms"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", required=True, choices=sorted(NAMES))
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=25)
    parser.add_argument("--retain", type=int, default=100, help="snapshots or log entries at the end, at most")
    parser.add_argument("--seconds", type=float, default=3600, help="stop committing after this long")
    parser.add_argument("--json", type=Path, help="where the figures go; artifacts/faults/ by default")


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="laketier-foreign-") as folder:
        result = run(
            arguments.format,
            arguments.commits,
            Path(folder),
            repetitions=arguments.repetitions,
            retain=arguments.retain,
            seconds=arguments.seconds,
        )
    print(report(result))
    for line in result.wrong:
        print(f"  WRONG: {line}")
    write_json(arguments.json, f"foreign-{arguments.format}", dict(vars(result)))
    return 1 if result.wrong else 0
