"""The crash windows of the tiering service: ``python -m faults service --format delta``.

Two workers (``laketier serve``) share a state database, with short leases, while rows are appended to the logs of a few
tables. One of them is killed at each failpoint in turn, or stopped until its leases are taken over and then let go on;
the state database is lost, tables of the source are made anew, snapshots are expired by others. In the end a reader
that is not laketier counts: each row of each log must be in its lake table, once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from faults.foreign_read import NAMES
from faults.races import write_json
from faults.service_lab import Lab, Verdict
from laketier.sources import failpoints
from laketier.tiering.failpoints import PUBLISH_AFTER, PUBLISH_BEFORE

KILLS = (
    failpoints.LEASED,
    failpoints.PLANNED,
    failpoints.STAGED,
    PUBLISH_BEFORE,
    PUBLISH_AFTER,
    failpoints.COMMITTED,
    failpoints.FINISHED,
)
ZOMBIES = (failpoints.PLANNED, failpoints.STAGED, PUBLISH_BEFORE)
_NEW_IDS = 1_000_000_000


@dataclass(frozen=True)
class Scenario:
    """``script`` harms a lab, and judges it."""

    name: str
    script: Callable[[Lab], Verdict]
    lab: dict[str, Any] = field(default_factory=dict)


def killed(point: str, hit: int = 4) -> Scenario:
    """One worker is killed there; another takes over, and it comes back."""

    def script(lab: Lab) -> Verdict:
        lab.produce()
        armed = lab.start(f"{point}=kill@{hit}")
        lab.start()
        lab.until(lambda: armed.process.poll() is not None, f"the worker did not get to {point}")
        assert armed.process.returncode == -signal.SIGKILL, armed.text[-2000:]
        lab.start()
        lab.until_tiered()
        lab.drain()
        return lab.judge()

    bad = {"bad_every": 7} if point == failpoints.DEAD_LETTERS else {}
    return Scenario(f"killed at {point}", script, bad)


def zombie(point: str) -> Scenario:
    """One worker is stopped there, its leases are taken over and rounds published, then it goes on."""

    def script(lab: Lab) -> Verdict:
        lab.produce()
        sleeper, flag = lab.pausing(point)
        lab.until(flag.exists, f"the worker did not get to {point}")
        with lab.stopped(sleeper):
            lab.start()
            lab.until_tiered()
            lab.free(flag)
        lab.until_tiered()
        lab.drain()
        return lab.judge()

    return Scenario(f"zombie at {point}", script)


def _recreated(point: str) -> Scenario:
    """A table of the source is made anew while a round of it stands at ``point``: nothing of the new one may be taken
    for the old one's, and the others go on."""

    def script(lab: Lab) -> Verdict:
        lab.unfed.add("t0")
        lab.produce()
        old = lab.lines[0]
        old.append(1_000_001, 1_000_002)
        _, flag = lab.pausing(point)
        lab.until(flag.exists, f"the worker did not get to {point}")
        should, _ = lab.log_of(old)
        shutil.rmtree(old.folder)
        old.create(buckets=lab.buckets)
        old.append(*range(_NEW_IDS, _NEW_IDS + 10))
        lab.free(flag)
        lab.start()
        told = {"RECREATED", "STOPPED"}
        lab.until(
            lambda: told <= {status.table.state for status in lab.tables() if status.table.source_table == "t0"},
            "the new table was not told from the old one",
        )
        lab.drain(but=["t0"])
        verdict = lab.judge(but=["t0"])
        found = lab.ids("t0")
        if found - should:
            verdict.wrong.append(f"t0 has {found - should} of the new table, or twice")
        return verdict

    return Scenario(f"source table made anew at {point}", script)


def _state_lost(lab: Lab) -> Verdict:
    lab.produce()
    lab.start()
    lab.start()
    for _ in range(3):
        lab.until_tiered()
    lab.kill()
    before = min(lab.fences().values())
    lab.lose_state()
    again = lab.start()
    lab.start()
    lab.until_tiered()
    lab.drain()
    verdict = lab.judge()
    if min(lab.fences().values()) <= before:
        verdict.wrong.append(f"fences went from {before} to {lab.fences()}")
    if "goes on with fence" not in again.text + lab.workers[-1].text:
        verdict.wrong.append("nobody was told that the state was lost")
    return verdict


def _expired(lab: Lab) -> Verdict:
    from faults.housekeeping import DeltaForeigner, foreigner_for
    from faults.marked import MarkedTable
    from laketier.spi import TablePath

    lab.produce()
    lab.start()
    lab.start()
    lab.until_tiered()
    lab.until_tiered()
    lab.kill()
    for lines in lab.lines:
        table = MarkedTable(lab.format, str(lab.folder / "lake"), path=TablePath("db", lines.name))
        other = foreigner_for(table)
        try:
            if isinstance(other, DeltaForeigner):
                import deltalake

                deltalake.DeltaTable(other.location).alter.set_table_properties(other.properties)
            other.compact()
            other.compact()
            other.expire(1)
        finally:
            other.close()
    lab.start()
    lab.start()
    lab.until_tiered()
    lab.drain()
    return lab.judge()


def _troubled(lab: Lab) -> Verdict:
    """t0 is poisoned, the target of t1 is broken, the source of t2 hangs: the others must not notice."""
    but = ["t0", "t1", "t2"]
    lab.unfed |= set(but)
    poisoned, broken, hanging = lab.lines[:3]
    poisoned.append_raw("poison")
    broken.append(1)
    hanging.append(1)
    (lab.folder / "lake" / "db").mkdir(parents=True)
    for name in ("t1", "t1.lance"):
        (lab.folder / "lake" / "db" / name).write_text("not a table")
    path = hanging.folder / "0.jsonl"
    path.unlink()
    os.mkfifo(path)
    lab.produce()
    lab.start()
    lab.start()
    for _ in range(3):
        lab.until_tiered(but)
    states = {status.table.source_table: status.table for status in lab.tables()}
    path.unlink()
    path.touch()
    lab.drain(but)
    verdict = lab.judge(but)
    if states["t0"].state != "STOPPED" or not states["t1"].error or states["t2"].last_tiered_at is not None:
        verdict.wrong.append(f"they were not troubled: {[(s.name, s.state, s.error) for s in states.values()]}")
    return verdict


def drained(point: str) -> Scenario:
    """SIGTERM while rounds stand at ``point``: they end, the rest is given back, the exit code is 0."""

    def script(lab: Lab) -> Verdict:
        lab.feed()
        worker, flag = lab.pausing(point)
        lab.until(flag.exists, f"the worker did not get to {point}")
        worker.send(signal.SIGTERM)
        lab.free(flag)
        verdict = Verdict()
        if code := worker.end():
            verdict.wrong.append(f"the exit code is {code}")
        for status in lab.tables():
            if status.table.state not in ("SCHEDULED", "PENDING"):
                verdict.wrong.append(f"{status.table.name} was left {status.table.state}")
        if point == failpoints.STAGED and not any(status.table.rounds_total for status in lab.tables()):
            verdict.wrong.append("no round under way was ended")
        lab.start()
        lab.drain()
        judged = lab.judge()
        judged.wrong += verdict.wrong
        return judged

    return Scenario(f"SIGTERM at {point}", script)


SCENARIOS: Sequence[Scenario] = (
    *(killed(point) for point in KILLS),
    killed(failpoints.DEAD_LETTERS, hit=2),
    *(zombie(point) for point in ZOMBIES),
    _recreated(failpoints.PLANNED),
    _recreated(failpoints.STAGED),
    Scenario("state database lost", _state_lost),
    Scenario("snapshots expired by others", _expired),
    Scenario("poisoned, broken and hanging tables", _troubled),
    drained(failpoints.PLANNED),
    drained(failpoints.STAGED),
)


def play(scenario: Scenario, format: str, folder: Path, **lab: Any) -> Verdict:
    """Run one; whatever goes wrong is in the verdict."""
    made = Lab(format, folder, **(scenario.lab | lab))
    try:
        return scenario.script(made)
    except Exception as error:  # noqa: BLE001 - a table that can't be read is a result, and so is a hang
        return Verdict(wrong=[f"{type(error).__name__}: {error}"])
    finally:
        made.close()


def main(arguments: argparse.Namespace) -> int:
    results: dict[str, Any] = {}
    failed = 0
    for scenario in SCENARIOS:
        if not fnmatch(scenario.name, arguments.only):
            continue
        started = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="laketier-service-"))
        verdict = play(scenario, arguments.format, folder)
        seconds = round(time.monotonic() - started, 1)
        results[scenario.name] = asdict(verdict) | {"seconds": seconds}
        failed += not verdict.clean
        good = "ok" if verdict.clean else "FAILED"
        print(
            f"{arguments.format}: {scenario.name}: {good}: {verdict.rows} rows, lost {verdict.lost}, doubled "
            f"{verdict.doubled}, alien {verdict.alien}, dead letters {verdict.dead_letters}, orphans "
            f"{verdict.leftovers}, {seconds} s",
            flush=True,
        )
        for line in verdict.wrong[:10]:
            print(f"  WRONG: {line}", flush=True)
        if verdict.clean or not arguments.keep:
            shutil.rmtree(folder)
        else:
            print(f"  kept: {folder}", file=sys.stderr)
    document = {"format": arguments.format, "reader": NAMES[arguments.format], "failed": failed, "scenarios": results}
    write_json(arguments.json, f"service-{arguments.format}", document)
    return 1 if failed else 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", required=True, choices=sorted(NAMES))
    parser.add_argument("--only", default="*", help="scenarios whose name fits, as in a shell")
    parser.add_argument("--keep", action="store_true", help="leave the folders of those that failed")
    parser.add_argument("--json", type=Path, help="where the figures go; artifacts/faults/ by default")


def command(argv: Sequence[str] | None = None) -> int:
    """The command line; the exit code."""
    parser = argparse.ArgumentParser(
        f"python -m faults {Path(__file__).stem}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    return main(parser.parse_args(argv))


if __name__ == "__main__":
    raise SystemExit(command())
