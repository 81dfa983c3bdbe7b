"""``python -m laketier_verification.guards``: remove each guard in a copy of the sources, and say which test failed."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from laketier_verification.guards.listed import ROOT, Guard, guards

_PLUGINS = ("localfile", "delta", "iceberg", "lance")
# Earlier than what the environment has installed from the checkout.
_SOURCES = ("core", "conformance", "verification", *(f"plugins/{name}" for name in _PLUGINS))
_COPIED = ("core", "conformance", "verification", "plugins", "tests", "pyproject.toml")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_SECONDS = 600


@dataclass(frozen=True)
class Verdict:
    """What happened without a guard. ``noticed_by`` is the first test that failed; empty: nobody noticed."""

    guard: str
    place: str
    noticed_by: str
    seconds: float

    @property
    def file(self) -> str:
        """Without the line, which moves."""
        return self.place.rpartition(":")[0]

    @property
    def test(self) -> str:
        """Without its folder."""
        return self.noticed_by.rpartition("/")[2]


def main() -> None:
    """Exit code 1 when a guard can go without being noticed, or tests fail although all are there."""
    arguments = _parser().parse_args()
    chosen = [guard for guard in guards() if re.search(arguments.only, guard.name)]
    if arguments.without_java:
        chosen = [guard for guard in chosen if guard.needs != "java"]
    progress = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        copy = Path(folder)
        for name in _COPIED:
            _copy(ROOT / name, copy / name)
        if not arguments.skip_baseline:
            for tests in dict.fromkeys(guard.tests for guard in chosen):
                progress.print(f"all guards there: {tests}", style="dim", highlight=False)
                failed = _run(copy, tests)
                if failed:
                    sys.exit(f"{failed} fails although every guard is there: nothing can be said")
        verdicts = []
        for number, guard in enumerate(chosen, start=1):
            progress.print(f"{number}/{len(chosen)} without: {guard.name}", style="dim", highlight=False)
            verdicts.append(_without(copy, guard))
            if not verdicts[-1].noticed_by:
                progress.print(f"  NOT NOTICED: {guard.name} ({verdicts[-1].place})", style="bold red")
    _show(verdicts)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=2), encoding="utf-8")
    if arguments.docs:
        arguments.docs.write_text(_page(verdicts), encoding="utf-8")
    sys.exit(any(not verdict.noticed_by for verdict in verdicts))


def _without(copy: Path, guard: Guard) -> Verdict:
    path = copy / guard.file
    whole = path.read_text(encoding="utf-8")
    started = time.monotonic()
    path.write_text(guard.without(whole), encoding="utf-8")
    try:
        failed = _run(copy, guard.tests)
    finally:
        path.write_text(whole, encoding="utf-8")
    return Verdict(guard.name, f"{guard.file}:{guard.line()}", failed, time.monotonic() - started)


def _run(copy: Path, tests: str) -> str:
    """The first test that fails, or what else went wrong; empty when all pass."""
    words = shlex.split(tests.replace("CONFORMANCE=", "--pyargs laketier_conformance --lake-format="))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(copy / name) for name in _SOURCES), "CI": "true"}
    # Two sources of the same second and size would share a cached one.
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *words]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no end within {_SECONDS} s"
    failed = _FAILED.search(done.stdout)
    if failed:
        return failed[1]
    # A part of the conformance suite ends with a verdict of its own, which is no failed test.
    return "" if " passed" in done.stdout else f"pytest ended with {done.returncode}"


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        shutil.copy2(source, target)
    else:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))


def _show(verdicts: list[Verdict]) -> None:
    table = Table()
    for column in ("guard", "place", "noticed by", "s"):
        table.add_column(column, overflow="fold")
    for verdict in verdicts:
        table.add_row(
            verdict.guard, verdict.place, verdict.noticed_by or "[bold red]nobody[/]", f"{verdict.seconds:.0f}"
        )
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    print(f"removed {len(verdicts)}, noticed {sum(bool(verdict.noticed_by) for verdict in verdicts)}")


def _page(verdicts: list[Verdict]) -> str:
    rows = "\n".join(f"| {each.guard} | `{each.file}` | `{each.test or 'nobody'}` |" for each in verdicts)
    noticed = sum(bool(verdict.noticed_by) for verdict in verdicts)
    return f"""# Guards

`make test-guards` takes each of these out of a copy of the sources, runs the tests named in `tests/guards/guards.toml`,
and fails when they still pass. Written by `python -m laketier_verification.guards --docs`:
**removed {len(verdicts)}, noticed {noticed}**.

| guard | in | the first test that fails without it |
|---|---|---|
{rows}
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m laketier_verification.guards", description=__doc__)
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--without-java", action="store_true", help="leave out those whose tests start Spark")
    parser.add_argument("--skip-baseline", action="store_true", help="do not run the tests with all guards first")
    parser.add_argument("--json", type=Path, help="write the verdicts to this file")
    parser.add_argument("--docs", type=Path, help="write them as a page of the documentation")
    return parser


if __name__ == "__main__":
    main()
