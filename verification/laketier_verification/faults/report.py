"""What runs showed: kept as JSON, and written down as a page."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from laketier_verification.faults.matrix import Result
from laketier_verification.faults.open_files import LANES
from laketier_verification.faults.points import CRASH_POINTS

_SPARK = ("batch", "split", "stream")
_FIELDS = {field.name for field in fields(Result)}


def load(path: Path) -> list[Result]:
    """The results of the runs before; none where there is no file."""
    if not path.exists():
        return []
    return [Result(**{key: value for key, value in one.items() if key in _FIELDS}) for one in _read(path)["results"]]


def save(path: Path, results: Sequence[Result], **about: Any) -> None:
    """Replaces the file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = about | {"results": [result.to_plain() for result in results]}
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
    temporary.replace(path)


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


@dataclass(frozen=True)
class Line:
    """Sums over some runs."""

    runs: int
    passed: int
    lost: int
    doubled: int
    torn: int
    leftovers: int
    unexplained: int
    unjudged: int
    seconds: tuple[float, ...]

    @classmethod
    def of(cls, results: Iterable[Result]) -> Line:
        ran = [result for result in results if result.status != "not run"]
        return cls(
            runs=len(ran),
            passed=sum(result.status == "passed" for result in ran),
            lost=sum(result.lost for result in ran),
            doubled=sum(result.doubled + result.alien for result in ran),
            torn=sum(result.torn for result in ran),
            leftovers=sum(result.leftovers for result in ran),
            unexplained=sum(result.unexplained or 0 for result in ran),
            unjudged=sum(result.unexplained is None for result in ran),
            seconds=tuple(sorted(r.recovery_seconds for r in ran if r.recovery_seconds is not None)),
        )

    def cells(self) -> str:
        """As columns of a table."""
        leaks = "not judged" if self.runs and self.unjudged == self.runs else str(self.unexplained)
        middle = f"{statistics.median(self.seconds):.2f}" if self.seconds else ""
        longest = f"{self.seconds[-1]:.2f}" if self.seconds else ""
        return (
            f"{self.runs} | {self.passed} | {self.lost} | {self.doubled} | {self.torn} | {self.leftovers} | {leaks} | "
            f"{middle} | {longest}"
        )


_COLUMNS = "runs | passed | lost | doubled | torn | orphans | leaked | median s | longest s"
_RULE = " | ".join(["---:"] * 9)


def page(results: Sequence[Result]) -> str:
    """The whole page."""
    ran = [result for result in results if result.status != "not run"]
    formats = sorted({result.format for result in results})
    lanes = [lane for lane in ("bare", *LANES, *_SPARK, "random") if any(result.lane == lane for result in results)]
    parts = [_HEAD.format(runs=len(ran), lives=sum(len(result.lives) for result in ran))]
    parts.append(f"| lane | format | {_COLUMNS} |\n|---|---|{_RULE.replace(' ', '')}|")
    for lane in lanes:
        for name in formats:
            line = Line.of(r for r in results if (r.lane, r.format) == (lane, name))
            if line.runs:
                parts.append(f"| {lane} | {name} | {line.cells()} |")
    parts.append(_FAILED)
    parts += [f"- {result.name}: {_one_line(result.why)}" for result in ran if result.status == "failed"] or ["None."]
    parts.append(_CRASH_POINTS)
    for crash in CRASH_POINTS:
        about = [result for result in ran if crash.covers(result.fault, result.point)]
        good = sum(result.status == "passed" for result in about)
        parts.append(f"| {crash.name} | {crash.expected} | {good} of {len(about)} | {crash.note} |")
    parts.append(_NOT_RUN)
    missing = sorted({(r.format, r.fault, r.why) for r in results if r.status == "not run"})
    parts += [f"- {name}: {fault}: {why}" for name, fault, why in missing] or ["None."]
    parts.append("\n## Cell by cell\n\nSummed over all runs of a cell.\n")
    for lane in lanes:
        for name in formats:
            parts += _details(lane, name, [r for r in results if (r.lane, r.format) == (lane, name)])
    return "\n".join(parts) + "\n"


def _details(lane: str, format: str, results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    lines = [
        f'??? note "{lane}, {format}"\n',
        f"    | fault | at | {_COLUMNS} |",
        f"    |---|---|{_RULE.replace(' ', '')}|",
    ]
    for fault, point in dict.fromkeys((result.fault, result.point) for result in results):
        line = Line.of(result for result in results if (result.fault, result.point) == (fault, point))
        if line.runs:
            lines.append(f"    | {fault} | {point} | {line.cells()} |")
    return [*lines, ""]


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


_HEAD = """# Faults

A pipeline is killed, failed, stopped or robbed of its disk, then restarted until it has finished. Then readers that are
not laketier count: every row of every epoch must be there once, also while it recovers (all of an epoch or nothing),
and each file must be one that the table needs or one that orphan collection finds.

`make test-faults` plays all cells and writes this page from what they showed. Here: {runs} runs of cells, with {lives}
lives of drivers.

- **lanes**: `bare` is a plain process that drives rounds with a small durable progress log; in `open json`, `open csv`
  and `open arrow` it leaves a file open from epoch to epoch; `batch`, `split` and `stream` are laketier's lanes on
  Spark; `random` are SIGKILLs at moments drawn from a seed, in the bare lane.
- **torn**: epochs of which a reader saw a part. **orphans**: files that no snapshot needs, which orphan collection
  finds. **leaked**: those that it does not find, or live files that it would delete.
- **seconds**: as measured, on a machine that did other work as well: from the start of the next driver until the
  interrupted epoch was acknowledged. The restart of Spark itself is in it where the driver was killed.
- `error` leaves the effect before a failpoint and not the one behind it: at `publish.before` the commit did not happen;
  at `publish.after` it did, and its answer was lost.
- On Spark a `kill` hits the process that passes the failpoint: a Python worker for `write` and `stage`, the driver for
  the rest, and in streams the process in which Spark commits.
"""
_FAILED = "\n## What failed\n"
_CRASH_POINTS = """
## Crash points

What a sink must survive, and in how many runs it did.

| crash point | expected | passed | |
|---|---|---:|---|"""
_NOT_RUN = "\n## What was not run\n"
