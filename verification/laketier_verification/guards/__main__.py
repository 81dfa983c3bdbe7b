"""``python -m laketier_verification.guards``: remove each guard in a copy of the sources, and say which test failed."""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from laketier_verification.guards.listed import ROOT, Guard, guards
from laketier_verification.guards.record import Taken, digest_of, file_of, is_left, keep, recorded
from laketier_verification.guards.taking import COPIED, NothingShown, SourcesCopy, Verdict

_PAGE = ROOT / "docs/proof/guards.md"


def main() -> None:
    """Exit code 1 when a guard can go without being noticed, or a test fails with the guard, too."""
    arguments = _parser().parse_args()
    record = recorded(file_of(arguments.docs or _PAGE))
    chosen = [guard for guard in guards() if re.search(arguments.only, guard.name)]
    if arguments.left:
        chosen = [guard for guard in chosen if is_left(guard, record)]
    if arguments.without_java:
        chosen = [guard for guard in chosen if guard.needs != "java"]
    progress, commit, began = Console(stderr=True), _commit(), time.monotonic()
    verdicts: list[Verdict] = []
    unclear = []
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        copy = SourcesCopy.of_checkout(Path(folder))
        for number, guard in enumerate(chosen, start=1):
            if arguments.seconds is not None and time.monotonic() - began > arguments.seconds:
                progress.print(f"{arguments.seconds:.0f} s are over: {len(chosen) - number + 1} are left")
                break
            progress.print(f"{number}/{len(chosen)} without: {guard.name}", style="dim", highlight=False)
            try:
                verdicts.append(copy.without(guard))
            except NothingShown as error:
                unclear.append(str(error))
                progress.print(f"  NOTHING SHOWN: {error}", style="bold red")
                continue
            if not verdicts[-1].noticed_by:
                progress.print(f"  NOT NOTICED: {guard.name} ({_place(guard)})", style="bold red")
            if arguments.docs:
                record = keep(arguments.docs, guards(), record, [_taken(verdicts[-1], commit)])
    _show(verdicts)
    for each in unclear:
        print(each)
    sys.exit(bool(unclear) or any(not verdict.noticed_by for verdict in verdicts))


def _taken(verdict: Verdict, commit: str) -> Taken:
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    guard = verdict.guard
    return Taken(guard.name, guard.file, verdict.noticed_by, commit, today, digest_of(guard))


def _commit() -> str:
    """With ``-dirty`` where what is copied is not the commit's; empty outside of a checkout."""
    changed = _git("status", "--porcelain", "--", *COPIED)
    return f"{_git('rev-parse', 'HEAD')}{'-dirty' if changed else ''}"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def _place(guard: Guard) -> str:
    return f"{guard.file}:{guard.line()}"


def _show(verdicts: list[Verdict]) -> None:
    table = Table()
    for column in ("guard", "place", "noticed by", "s"):
        table.add_column(column, overflow="fold")
    for verdict in verdicts:
        noticed = verdict.noticed_by.replace("[", r"\[") or "[bold red]nobody[/]"
        table.add_row(verdict.guard.name, _place(verdict.guard), noticed, f"{verdict.seconds:.0f}")
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    print(f"removed {len(verdicts)}, noticed {sum(bool(verdict.noticed_by) for verdict in verdicts)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m laketier_verification.guards", description=__doc__)
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--left", action="store_true", help="only those that the page does not tell of as they are now")
    parser.add_argument("--seconds", type=float, help="begin with no other guard after so many")
    parser.add_argument("--without-java", action="store_true", help="leave out those whose tests start Spark")
    parser.add_argument(
        "--docs", type=Path, metavar="PAGE", help="write what was noticed into a page of the documentation, one by one"
    )
    return parser


if __name__ == "__main__":
    main()
