"""Tries each distribution with the oldest and with the newest libraries that it allows.

    python scripts/matrix.py                all distributions
    python scripts/matrix.py lance delta    only these
    python scripts/matrix.py --end oldest   only one end of each range

One environment at a time: all libraries that a distribution names at their oldest together, then all at their newest.
What those need in turn is at its newest both times. The last lines are a table, a row for each library and version;
what pytest said lies in artifacts/matrix/. Ends with 1 if anything is red. What is green is written into the table of
docs/proof/versions.md. It needs the package index and nothing else: Spark has its own two
versions (`make test-spark`, `make test-compat`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bootstrap import ROOT, BootstrapError, environment, fetch_uv, pip_settings
from isolated import pyproject

OUT = ROOT / "artifacts" / "matrix"
PAGE = ROOT / "docs" / "proof" / "versions.md"
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
READERS = ("pandas<3",)
"""Tests look at moments in nanoseconds through it."""
RULE = "|---|---|---|---|"
UNTRIED = "locked"
QUICK = ("-m", "not spark and not slow and not deep", "--timeout=600", "-n", "2")


@dataclass(frozen=True)
class Case:
    """A distribution, and the tests of it."""

    name: str
    tests: tuple[str, ...]
    members: tuple[str, ...] = ()
    """Installed, and their libraries tried, beside the core."""
    extras: tuple[str, ...] = ("conformance",)
    """Of the core."""
    beside: tuple[str, ...] = ()
    """Members that the tests need, and whose libraries are not tried here."""
    suite: bool = False
    """Whether the bare lane of the conformance suite runs, on the format of this name."""

    def inputs(self) -> list[str]:
        return ["pyproject.toml", *(f"{member}/pyproject.toml" for member in self.members)]

    def requirements(self) -> Iterator[str]:
        """Of each library that is tried here."""
        core = pyproject(ROOT)["project"]
        found = [
            *core["dependencies"],
            *(line for extra in self.extras for line in core["optional-dependencies"][extra]),
        ]
        for member in self.members:
            found += pyproject(ROOT / member)["project"]["dependencies"]
        yield from (each for each in found if not name_of(each).startswith("laketier"))


def of_format(name: str) -> Case:
    return Case(name, (f"plugins/{name}/tests",), members=(f"plugins/{name}",), suite=True)


NEED_MORE = ("spark", "spi/test_docstrings.py", "kit/test_predicates.py", "bucketing/test_bucket_assigners.py",
             "test_private_names.py")  # fmt: skip
"""Unit tests that need pyspark or the tools of the docs."""

CASES = (
    Case(
        "core",
        ("tests/unit", *(f"--ignore=tests/unit/{path}" for path in NEED_MORE)),
        extras=("conformance", "avro", "server", "otel", "postgresql"),
        beside=tuple(f"plugins/{name}" for name in ("localfile", "delta", "iceberg", "lance", "kafka")),
    ),
    Case(
        "kafka",
        (
            "plugins/kafka/tests",
            *(f"tests/integration/sources/test_kafka{of}.py" for of in ("", "_schemas", "_bad_inputs")),
        ),
        members=("plugins/kafka",),
        extras=("conformance", "avro"),
        beside=("plugins/localfile",),
    ),
    Case("fluss", ("plugins/fluss/tests",), members=("plugins/fluss",)),
    *(of_format(name) for name in ("localfile", "delta", "iceberg", "lance")),
)


@dataclass(frozen=True)
class Run:
    """What one environment showed."""

    case: Case
    end: str
    versions: dict[str, str]
    result: str
    seconds: float

    @property
    def is_green(self) -> bool:
        return self.result.startswith("ok")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="matrix")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(case.name for case in CASES))
    parser.add_argument("--end", choices=RESOLUTIONS, help="only this end of each range")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.names) - {case.name for case in CASES}
    if unknown:
        parser.error(f"no distribution is called {', '.join(sorted(unknown))}")
    OUT.mkdir(parents=True, exist_ok=True)
    runs = []
    for case in CASES:
        for end in [chosen.end] if chosen.end else RESOLUTIONS:
            if not chosen.names or case.name in chosen.names:
                run = try_case(case, end)
                print(f"{case.name:11}{end:8}{run.result} ({run.seconds:.0f} s)", flush=True)
                runs.append(run)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), runs), encoding="utf-8")
    print("\n".join(table(runs)))
    return 0 if all(run.is_green for run in runs) else 1


def try_case(case: Case, end: str) -> Run:
    """Install and test. A failure is a result; the next case goes on."""
    started = time.monotonic()
    log = OUT / f"{case.name}-{end}.log"
    versions: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="laketier-matrix-") as folder, log.open("w", encoding="utf-8") as said:
        try:
            target = Path(folder, "env")
            versions = resolved(case, end, Path(folder, "pins.txt"))
            install(case, versions, target)
            python = target / "bin" / "python"
            result = tested([python, "-m", "pytest", *QUICK, *case.tests], said)
            if case.suite and result.startswith("ok"):
                suite = bare_suite(case.name, python, Path(folder, "report.json"), said)
                result = f"{result}; suite {suite}" if suite.startswith("ok") else f"FAILED: suite {suite}"
        except BootstrapError as problem:
            result = f"FAILED: {problem}"
        if not result.startswith("ok"):
            result += f", see {log.relative_to(ROOT)}"
    return Run(case, end, versions, result, time.monotonic() - started)


def resolved(case: Case, end: str, pins: Path) -> dict[str, str]:
    """Library → version, of those that the distribution names."""
    command = ["pip", "compile", "--quiet", "--no-header", "--no-annotate", "--resolution", RESOLUTIONS[end]]
    command += ["--python", sys.executable, "--output-file", str(pins), *case.inputs()]
    uv(command + [f"--extra={extra}" for extra in case.extras if extra in known_extras()])
    found = dict(re.findall(r"^([\w.-]+)(?:\[[^]]*])?==([^\s;]+)", pins.read_text(encoding="utf-8"), re.MULTILINE))
    return {name: found[name] for name in sorted({name_of(each) for each in case.requirements()})}


def known_extras() -> set[str]:
    return set(pyproject(ROOT)["project"]["optional-dependencies"])


def install(case: Case, versions: dict[str, str], target: Path) -> None:
    uv(["venv", "--quiet", "--python", sys.executable, str(target)])
    members = [f"--editable={ROOT / member}" for member in (*case.members, *case.beside)]
    pins = [f"{name}=={version}" for name, version in versions.items()]
    core = f"--editable={ROOT}[{','.join(case.extras)}]"
    python = str(target / "bin" / "python")
    uv(["pip", "install", "--quiet", "--python", python, core, *members, *pins, *READERS, "--group", "test"])


def bare_suite(name: str, python: Path, report: Path, said: TextIO) -> str:
    """What the bare lane of the suite says. The lanes of Spark are left out, so pytest itself ends with "partial"."""
    options = [f"--lake-format={name}", "--lake-lanes=bare", f"--lake-report={report}", "--timeout=600", "-n", "2"]
    last = tested([python, "-m", "pytest", "--pyargs", "laketier_conformance", *options], said)
    if not report.exists():
        return last
    outcomes = Counter(
        result["outcome"] for result in json.loads(report.read_text(encoding="utf-8"))["results"].values()
    )
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    return (
        f"ok: {counts}"
        if outcomes and set(outcomes) <= {"passed", "refused", "not interposed"}
        else f"FAILED: {counts}"
    )


def tested(command: Sequence[str | Path], said: TextIO) -> str:
    """What pytest's last line says."""
    env = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(part) for part in (*command, "-p", "no:cacheprovider", "-q")],
        cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    print(done.stdout, file=said, flush=True)
    last = next((line.strip("= ") for line in reversed(done.stdout.splitlines()) if line.strip()), "no answer")
    return f"ok: {last}" if done.returncode == 0 else f"FAILED: {last}"


def table(runs: Sequence[Run]) -> list[str]:
    rows = [("library", "version", "end", "with", "result")]
    for run in runs:
        rows += [(name, version, run.end, run.case.name, "ok" if run.is_green else "FAILED")
                 for name, version in run.versions.items()]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return [
        "",
        *("  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows),
    ]


def page(text: str, runs: Sequence[Run]) -> str:
    """The page with the versions of each end that is green."""
    rows = {(tried, library): versions for tried, library, *versions in rows_of(text)}
    for run in runs:
        if run.is_green:
            column = list(RESOLUTIONS).index(run.end)
            for library, version in run.versions.items():
                rows.setdefault((run.case.name, library), [UNTRIED, UNTRIED])[column] = version
    order = [case.name for case in CASES]
    lines = [
        f"| {' | '.join([*key, *rows[key]])} |" for key in sorted(rows, key=lambda key: (order.index(key[0]), key[1]))
    ]
    return "\n".join([text.partition(RULE)[0] + RULE, *lines, ""])


def rows_of(text: str) -> Iterator[list[str]]:
    """Of the page's table: distribution, library, oldest and newest version."""
    for line in text.partition(RULE)[2].splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def uv(arguments: Sequence[str]) -> None:
    settings = pip_settings()
    done = subprocess.run(
        [str(fetch_uv(settings)), *arguments],
        cwd=ROOT,
        env=environment(settings),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reason = next((line.strip() for line in done.stderr.splitlines() if line.strip()), "it gave no reason")
        print(done.stderr, file=sys.stderr)
        raise BootstrapError(f"uv {' '.join(arguments[:2])}: {reason}")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BootstrapError as error:
        sys.exit(f"laketier: {error}")
