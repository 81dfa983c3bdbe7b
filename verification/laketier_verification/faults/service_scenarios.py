"""How workers of the tiering service are harmed, scenario by scenario. See `service`."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from laketier.service import failpoints
from laketier.service.schedule import State
from laketier.tiering.failpoints import PUBLISH_AFTER, PUBLISH_BEFORE
from laketier_verification.faults.service_judge import Verdict
from laketier_verification.faults.service_lab import Lab
from laketier_verification.faults.topics_lab import TopicsLab

KILLS = (
    failpoints.LEASED,
    failpoints.PLANNED,
    failpoints.STAGED,
    PUBLISH_BEFORE,
    PUBLISH_AFTER,
    failpoints.COMMITTED,
    failpoints.FINISHED,
)
ZOMBIES = (failpoints.PLANNED, failpoints.STAGED, PUBLISH_BEFORE, PUBLISH_AFTER)
_NEW_IDS = 1_000_000_000


@dataclass(frozen=True)
class Scenario:
    """``script`` harms a lab, and judges it. ``server``: the state is in a PostgreSQL server, not in a file.
    ``broker``: the logs are topics of a real Kafka. ``keyed``: they are logs of changes."""

    name: str
    script: Callable[[Lab], Verdict]
    lab: dict[str, Any] = field(default_factory=dict)
    server: bool = False
    broker: bool = False
    keyed: bool = False


def keyed(scenario: Scenario) -> Scenario:
    """The same with logs of changes."""
    return replace(scenario, name=f"by key: {scenario.name}", keyed=True)


def killed(*points: str, hit: int = 4) -> Scenario:
    """One worker is killed at each of these in turn, and comes back, while another works on and takes over."""

    def script(lab: Lab) -> Verdict:
        lab.produce()
        for point in points:
            armed = lab.start(f"{point}=kill@{hit}")
            lab.until(armed.is_over, f"the worker did not get to {point}")
            assert armed.process.returncode == -signal.SIGKILL, armed.text[-2000:]
            if point == points[0]:
                lab.start()
        lab.start()
        lab.until_tiered()
        lab.drain()
        return lab.judge()

    bad = {"bad_every": 7} if failpoints.DEAD_LETTERS in points else {}
    name = "killed at each failpoint in turn" if points == KILLS else f"killed at {', '.join(points)}"
    return Scenario(name, script, bad)


def zombies(*points: str) -> Scenario:
    """At each of these in turn one worker is stopped, its leases are taken over and rounds published, then it goes on;
    another works all the time."""

    def script(lab: Lab) -> Verdict:
        lab.produce()
        for point in points:
            sleeper, flag = lab.pausing(point)
            lab.until(flag.exists, f"the worker did not get to {point}")
            with lab.stopped(sleeper):
                if point == points[0]:
                    lab.start()
                lab.until_tiered()
                lab.free(flag)
        lab.until_tiered()
        lab.drain()
        verdict = lab.judge()
        if not any("Fenced" in worker.text or "the lease was lost" in worker.text for worker in lab.workers):
            verdict.wrong.append("no zombie was refused")
        return verdict

    return Scenario("zombies" if points == ZOMBIES else f"zombie at {', '.join(points)}", script)


def _recreated(point: str) -> Scenario:
    """A table of the source is made anew while a round of it stands at ``point``: nothing of the new one may be taken
    for the old one's, and the others go on."""

    def script(lab: Lab) -> Verdict:
        lab.produce()
        lab.start()
        lab.until_tiered()
        lab.workers[0].end()
        lab.quiet()
        old = lab.lines[0]
        old.append(_NEW_IDS - 1)
        lab.unfed.add(old.name)
        _, flag = lab.pausing(point)
        lab.until(
            lambda: flag.exists() and lab.state_of(old.name) is State.TIERING, f"the worker did not get to {point}"
        )
        lab.produce()
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
        if found - should or not found:
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
    if "continues with fence" not in again.text + lab.workers[-1].text:
        verdict.wrong.append("nobody was told that the state was lost")
    return verdict


def server_restarted(lab: Lab) -> Verdict:
    """The state's server crashes while rounds are staged, and comes back once they are committed and nobody could be
    told."""
    assert lab.server is not None
    lab.produce()
    staged, flag = lab.pausing(failpoints.STAGED)
    lab.until(flag.exists, "the worker staged nothing")
    other = lab.start()
    lab.until(lambda: " serves" in other.text, "the other worker did not start")
    lab.server.stop()
    lab.free(flag)
    lab.until(lambda: "could not be stored" in staged.text, "the worker did not miss the database")
    lab.server.start()
    lab.until_tiered()
    lab.drain()
    return lab.judge()


def last_commits_lost(lab: Lab) -> Verdict:
    """The state's server fails over, twice, and forgets rounds, leases and fences of the last seconds. The workers work
    on."""
    assert lab.server is not None
    lab.produce()
    lab.start()
    lab.start()
    lab.until_tiered()
    for _ in range(2):
        lab.server.keep()
        lab.until_tiered()
        lab.server.lose_last_commits()
        lab.until_tiered()
    told = "\n".join(worker.text for worker in lab.workers)
    lab.drain()
    verdict = lab.judge()
    if "continues with fence" not in told:
        verdict.wrong.append("no fence was raised")
    return verdict


def broker_restarted(lab: Lab) -> Verdict:
    """The broker is killed while rounds are planned and not yet read, and again while they are staged."""
    assert isinstance(lab, TopicsLab)
    lab.produce()
    lab.start()
    for point in (failpoints.PLANNED, failpoints.STAGED):
        paused, flag = lab.pausing(point)
        lab.until(flag.exists, f"the worker did not get to {point}")
        lab.broker.kill()
        lab.free(flag)
        lab.until(partial(paused.says, "failed: "), "the worker did not miss the broker")
        lab.broker.start()
        lab.until_tiered()
    lab.drain()
    return lab.judge()


def _expired(lab: Lab) -> Verdict:
    from laketier.spi import TablePath
    from laketier_verification.faults.housekeeping import DeltaForeigner, foreigner_for
    from laketier_verification.faults.marked import MarkedTable

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
    return lab.judge(files=False)  # what others replaced is theirs to clean up


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
    with path.open("a"):  # what hung goes on, and finds nothing
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
    killed(*KILLS),
    killed(failpoints.DEAD_LETTERS, failpoints.DEAD_LETTERS, failpoints.STAGED, hit=2),
    zombies(*ZOMBIES),
    keyed(killed(*KILLS)),
    keyed(zombies(*ZOMBIES)),
    _recreated(failpoints.PLANNED),
    _recreated(failpoints.STAGED),
    Scenario("state database lost", _state_lost),
    Scenario("state server restarted in mid-round", server_restarted, server=True),
    Scenario("state server forgets its last commits", last_commits_lost, server=True),
    Scenario("broker restarted in mid-round", broker_restarted, {"tables": 3}, broker=True),
    Scenario("snapshots expired by others", _expired),
    Scenario("poisoned, broken and hanging tables", _troubled),
    drained(failpoints.PLANNED),
    drained(failpoints.STAGED),
)
