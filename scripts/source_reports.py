"""The suite of sources on our own sources, and the table of docs/proof/sources.md.

``python scripts/source_reports.py`` runs all of them, as many at once as there are cores, and keeps a report of each in
docs/proof/conformance/sources, without the results of single tests. Names of sources run these alone; ``--from FOLDER``
takes reports that were written there, as ``NAME.json``. What is no report of today's suite is refused, by its name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from laketier_conformance.manifest import expected_tests
from laketier_source_conformance.proof import REPORT
from laketier_source_conformance.rules import RULES, rule_of
from laketier_source_conformance.suite import MANIFEST

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / "docs" / "proof" / "conformance" / "sources"
ARTIFACTS = ROOT / "artifacts" / "sources"
OWN = tomllib.loads((ROOT / "tests" / "support" / "own_sources.toml").read_text(encoding="utf-8"))
"""By what is read, the source and its harness."""
_OUTCOMES = ("passed", "refused", "not shown", "failed")


def main(arguments: list[str]) -> int:
    folder, names = ARTIFACTS, arguments or list(OWN)
    if arguments[:1] == ["--from"]:
        folder = Path(arguments[1])
        names = arguments[2:] or sorted(file.stem for file in folder.glob("*.json"))
    else:
        # Each is a process that works on one core. The longest, by their last reports, are begun first.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(run, sorted(names, key=_seconds, reverse=True)))
    REPORTS.mkdir(exist_ok=True, parents=True)
    wrong = 0
    for name in names:
        file = folder / f"{name}.json"
        if not file.exists():
            print(f"{name}: its run ended before it wrote a report: see what it says above", file=sys.stderr)
            wrong += 1
            continue
        report = json.loads(file.read_text(encoding="utf-8"))
        if fault := fault_of(report):
            print(f"{name}: {fault}", file=sys.stderr)
            wrong += 1
            continue
        (REPORTS / f"{name}.json").write_text(json.dumps(small(report), indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {report['verdict']}")
    return int(bool(wrong))


def run(name: str) -> None:
    """Write the report of one into `ARTIFACTS`, and say what its run said, when it ends."""
    own = OWN[name]
    ARTIFACTS.mkdir(exist_ok=True, parents=True)
    report = ARTIFACTS / f"{name}.json"
    report.unlink(missing_ok=True)  # of a run that ends without one, the report before must not be taken
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "laketier_source_conformance",
    ]
    command += [f"--log-source={own['source']}", f"--log-harness={own['harness']}", "--log-lake=localfile"]
    command += [f"--log-report={report}"]
    path = os.pathsep.join((str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "PYTHONPATH": path}
    ran = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(f"{name}:\n{ran.stdout.decode(errors='replace')}", flush=True)


def _seconds(name: str) -> float:
    """What one took in its last report that is kept; a new one is begun first."""
    file = REPORTS / f"{name}.json"
    return float(json.loads(file.read_text(encoding="utf-8"))["seconds"]) if file.exists() else float("inf")


def fault_of(report: dict[str, Any]) -> str | None:
    """Why something is no report of the whole of today's suite, if it is none."""
    if report.get("report") != REPORT or "source" not in report:
        return "it is no report of a source"
    tests = set(expected_tests(MANIFEST))
    if set(report["results"]) != tests:
        return f"of today's {len(tests)} tests it has {len(tests & set(report['results']))}, and others"
    return None


def small(report: dict[str, Any]) -> dict[str, Any]:
    """A report with numbers for each rule instead of the results."""
    counts: dict[str, Counter[str]] = {rule.id: Counter() for rule in RULES}
    for test, result in report["results"].items():
        rule = rule_of(test)
        if rule is not None:
            counts[rule.id][result["outcome"]] += 1
    kept = {key: value for key, value in report.items() if key != "results"}
    return kept | {"rules": {rule: dict(sorted(each.items())) for rule, each in counts.items()}}


def table(_: str) -> list[list[str]]:
    """A row per source: its verdict, and what became of its tests."""
    head = ["source", "verdict", *_OUTCOMES, "not shown, or failed, of", "seconds of all processes", "day"]
    rows = [head]
    for file in sorted(REPORTS.glob("*.json")):
        report = json.loads(file.read_text(encoding="utf-8"))
        sums = sum((Counter(each) for each in report["rules"].values()), Counter())
        open_rules = [rule for rule, each in report["rules"].items() if {"not shown", "failed"} & each.keys()]
        seconds, day = str(round(report["seconds"])), report["at"][:10]
        counts = [str(sums[outcome]) for outcome in _OUTCOMES]
        rows.append([file.stem, f"**{report['verdict']}**", *counts, ", ".join(open_rules), seconds, day])
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
