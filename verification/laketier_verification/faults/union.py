"""Union reads while rounds commit: ``python -m laketier_verification.faults union --format delta --reads 2000``.

A writer appends to a log whose buckets grow in number; another process tiers it, round after round, compacts the lake
table with the format's own library and expires what the lake has held for long. Meanwhile lake and log are read as one:
all of it, or some columns, with filters and limits; at once, or some reads after it was planned. Each read must be just
a prefix of the log: of each bucket what its rows up to the offset that the read says come down to, and this offset must
lie between what was in the log before the read was planned and after. ``--keyed``: a log of changes with a primary key,
whose buckets are the lake's as well in every second table.

After some reads all begins anew with another table, so that the first rounds are met as often as later ones.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laketier.config import LakeConfig
from laketier.registry import configure, load_format, open_log_source
from laketier.rounds import LogRound
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import BucketSpec, Feature, OffsetsExpired, ScanRequest, TableLog, support_of
from laketier.union_read.planning import plan_union
from laketier_verification.faults.asking import Answers, Process, serve
from laketier_verification.faults.foreign_read import NAMES
from laketier_verification.faults.housekeeping import foreigner_for
from laketier_verification.faults.marked import MarkedTable
from laketier_verification.faults.races import write_json
from laketier_verification.faults.union_judge import Plan, Verdict, judge, some_request
from laketier_verification.faults.union_log import WrittenLog
from laketier_verification.lines import LinesTable

READS_PER_TABLE = 200
_KEPT_BACK = 6
_COMPACT_EVERY = 30
_EXPIRE_AFTER = 80
_APPENDS_BEYOND = 20


@dataclass
class Unions:
    """What the reads saw. ``from_both``: found rows to read in either half. ``beside_commits``: a commit of a round
    fell into them. ``expired``: were read so long after they were planned that the log had expired."""

    format: str
    keyed: bool = False
    reads: int = 0
    from_both: int = 0
    beside_commits: int = 0
    expired: int = 0
    tables: int = 0
    rounds: int = 0
    compactions: int = 0
    rows: int = 0
    seconds: float = 0.0
    verdict: Verdict = field(default_factory=Verdict)

    @property
    def wrong(self) -> list[str]:
        """What was wrong, in words."""
        return self.verdict.wrong


@dataclass(frozen=True)
class _Tally:
    """Commits of rounds that were begun, and that ended: files that grow by a byte with each, for any process."""

    folder: Path

    @contextmanager
    def commit(self) -> Iterator[None]:
        self._add("begun")
        yield
        self._add("ended")

    def _add(self, name: str) -> None:
        with (self.folder / name).open("ab") as file:
            file.write(b".")

    def count(self, name: str) -> int:
        path = self.folder / name
        return path.stat().st_size if path.exists() else 0


def config_of(format: str, warehouse: Path) -> LakeConfig:
    return configure(
        {"lake.format": format, "lake.warehouse": str(warehouse), "lake.table": "db.t", "lake.pipeline": "union"}
    )


def log_of(root: Path) -> TableLog:
    source = open_log_source("lines", {"path": str(root)}, name="lines", origin="the checker")
    return source.open("t", {})


def run(format: str, reads: int, folder: Path, *, seed: int = 1, keyed: bool = False) -> Unions:
    """That many reads in all, of as many tables below ``folder`` as that takes."""
    result = Unions(format, keyed)
    started = time.monotonic()
    with Process("laketier_verification.faults.union", format) as tiering:
        while result.reads < reads:
            below = folder / f"table-{result.tables}"
            _one_table(below, tiering, result, min(reads - result.reads, READS_PER_TABLE), random.Random(seed))
            seed += 1
            result.tables += 1
            print(f"{result.reads} of {reads} reads", file=sys.stderr, flush=True)
    result.seconds = round(time.monotonic() - started, 1)
    return result


def _one_table(folder: Path, tiering: Process, result: Unions, reads: int, draw: random.Random) -> None:
    root, tally = folder / "logs", _Tally(folder)
    root.mkdir(parents=True)
    log = WrittenLog(root, result.keyed, random.Random(draw.random()), _aligned(result))
    reader = _Reader(config_of(result.format, folder / "lake"), log, tally, draw, result)
    over = threading.Event()
    writer = threading.Thread(target=log.write, args=(over,))
    tiering.begin("tier", folder=str(folder))
    writer.start()
    try:
        end = result.reads + reads
        while result.reads + len(reader.kept_back) + 1 < end:
            reader.read()
    finally:
        over.set()
        writer.join()
    log.append()  # so the last round has some, however quick the reads were
    (folder / "over").touch()
    answer = tiering.answer()
    if "rounds" not in answer:
        result.wrong.append(f"the rounds ended: {answer}")
    result.rounds += answer.get("rounds", 0)
    result.compactions += answer.get("compactions", 0)
    reader.finish()
    result.rows += sum(log.done().values())


def _aligned(result: Unions) -> BucketSpec | None:
    """Every second table of changes has its log's buckets, in formats that have any."""
    if (
        not result.keyed
        or not result.tables % 2
        or not support_of(load_format(result.format).features, Feature.BUCKETING).full
    ):
        return None
    return BucketSpec(3, ("id",), "iceberg" if result.format == "iceberg" else "fluss")


@dataclass
class _Reader:
    config: LakeConfig
    log: WrittenLog
    tally: _Tally
    draw: random.Random
    result: Unions
    kept_back: list[tuple[Plan, int]] = field(default_factory=list)

    def read(self) -> None:
        """One read: of a new plan, or of one that was held back while rounds went on. Some new ones are held back."""
        if len(self.kept_back) >= _KEPT_BACK:
            self._finish(*self.kept_back.pop(self.draw.randrange(_KEPT_BACK)), kept_back=True)
            return
        plan, since = self._planned()
        while self.draw.random() < 0.3 and len(self.kept_back) < _KEPT_BACK:
            self.kept_back.append((plan, since))
            plan, since = self._planned()
        self._finish(plan, since)

    def finish(self) -> None:
        """The last read, after the last round, of all that is there in both halves; and the held ones."""
        for _ in range(_APPENDS_BEYOND):
            self.log.append()
        self._finish(*self._planned(ScanRequest()))
        for plan, since in self.kept_back:
            self._finish(plan, since, kept_back=True)

    def _planned(self, request: ScanRequest | None = None) -> tuple[Plan, int]:
        least = self.log.done()
        ended = self.tally.count("ended")
        request = request or some_request(self.draw, least)
        scan = plan_union(self.config, log_of(self.log.root), request)
        return Plan(request, scan, least, self.log.begun()), ended

    def _finish(self, plan: Plan, since: int, *, kept_back: bool = False) -> None:
        try:
            found = plan.read()
        except OffsetsExpired:
            if not kept_back:
                raise
            self.result.expired += 1
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, a read must not end so
            self.result.reads += 1
            self.result.wrong.append(f"read {self.result.reads}: {type(error).__name__}: {error}")
            return
        self.result.reads += 1
        self.result.from_both += plan.scan.lake is not None and bool(plan.scan.log_splits)
        self.result.beside_commits += self.tally.count("begun") > since
        judge(plan, found, self.log, f"read {self.result.reads}", self.result.verdict)


def _tier(_: Answers, request: dict[str, Any]) -> dict[str, Any]:
    """Rounds until the file ``over`` is there."""
    folder = Path(request["folder"])
    name, root, tally = sys.argv[1], folder / "logs", _Tally(folder)
    config, engine = config_of(name, folder / "lake"), LocalEngine(2)
    rounds = compactions = 0
    ends: list[dict[str, int]] = []
    for number in itertools.count(1):
        last = (folder / "over").exists()
        made = LogRound(log_of(root), config)
        answers = engine.run(made.plan())
        with tally.commit():
            done = made.finish(answers)
        rounds += done.outcome is not None
        ends.append(dict(done.end))
        if number % _COMPACT_EVERY == 0:
            foreigner = foreigner_for(MarkedTable(name, config.warehouse))
            foreigner.compact()
            foreigner.close()
            compactions += 1
        if number > _EXPIRE_AFTER:
            LinesTable(root, "t").describe(expired=ends[-_EXPIRE_AFTER])
        if last:
            engine.close()
            return {"rounds": rounds, "compactions": compactions}
        time.sleep(0.02)
    raise AssertionError("unreachable")


def report(result: Unions) -> str:
    verdict = result.verdict
    return (
        f"{result.format}{', by key' if result.keyed else ''}: {result.reads} union reads of {result.tables} tables in "
        f"{result.seconds:.0f} s beside {result.rounds} rounds and {result.compactions} compactions, "
        f"{result.from_both} of them from both halves, a commit fell into {result.beside_commits}; {result.rows} rows "
        f"in all, {result.expired} reads too late; gaps: {verdict.gaps}, overlaps: {verdict.overlaps}, strays: "
        f"{verdict.strays}, wrong: {len(result.wrong)}"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", required=True, choices=sorted(NAMES))
    parser.add_argument("--reads", type=int, default=2000)
    parser.add_argument("--keyed", action="store_true", help="a log of changes with a primary key")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where the figures go; artifacts/faults/ by default")


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="laketier-union-") as folder:
        result = run(arguments.format, arguments.reads, Path(folder), seed=arguments.seed, keyed=arguments.keyed)
    print(report(result))
    for line in result.wrong[:20]:
        print(f"  WRONG: {line}")
    name = f"union-{arguments.format}{'-keyed' if arguments.keyed else ''}"
    write_json(arguments.json, name, {**vars(result), "verdict": vars(result.verdict)})
    return 1 if result.wrong else 0


if __name__ == "__main__":
    serve({"tier": _tier})
