"""``python -m laketier_verification.mutants TARGET``: break it, and see which test notices."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import sys
from collections.abc import Collection, Mapping
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from laketier_verification.mutants import patching, report
from laketier_verification.mutants.loop import Loop
from laketier_verification.mutants.page import write_pages
from laketier_verification.mutants.recall import mended, recalled
from laketier_verification.mutants.results import NEAR, SURVIVED, Results, drawn
from laketier_verification.mutants.sample import NotFinished, Sample
from laketier_verification.mutants.source import Key, Module, Mutant
from laketier_verification.mutants.summary import SUMMARIES, LostCommit, Summary, refuse_lost_commit
from laketier_verification.mutants.survivors import argued, stale
from laketier_verification.mutants.targets import FOLDER, ROOT, TARGETS, Target


def main() -> None:
    """Exit code 1 when a mutant survived that nobody argued, or an argument is about none."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.near and arguments.together:
        parser.error("--near asks each mutant its first tests alone, and --together none alone: leave one of them out")
    sample = Sample(arguments.sample, arguments.seed) if arguments.sample else None
    if arguments.docs:
        if arguments.target:
            try:
                refuse_lost_commit()
            except LostCommit as lost:
                sys.exit(str(lost))
            told = _known_of(arguments.target, sample, at_least=arguments.at_least)
            file = SUMMARIES / f"{told.name}.json"
            if arguments.recall:
                mended(Summary.read(file), told).write()
            else:
                made = Summary.of(told)
                (made.after(Summary.read(file)) if file.exists() else made).write()
        write_pages()
        return
    target = TARGETS[arguments.target or "feather"]
    modules = target.modules()
    mutants = drawn((mutant for module in modules.values() for mutant in module.mutants), arguments.seed)
    drawn_first = mutants[: arguments.sample] if sample else mutants
    chosen = [mutant for mutant in drawn_first if re.search(arguments.only, _text(mutant))]
    if arguments.survivors_of:
        left = report.survivors_of(arguments.survivors_of)
        chosen = [mutant for mutant in chosen if mutant.key in left]
    results = Results(FOLDER / f"{target.name}.jsonl")
    if arguments.recall:
        known_before = {result.key for result in results.of(modules)}
        for result in recalled(Summary.read(SUMMARIES / f"{target.name}.json"), modules):
            if result.key not in known_before:
                results.add(result)
    if arguments.list:
        for mutant in chosen:
            print(_text(mutant))
        return
    if not arguments.report:
        noticed = report.noticed_elsewhere(target.name, modules)
        chosen = [mutant for mutant in chosen if mutant.key not in noticed]
        known = list(results.of(modules))
        met_all = {result.key for result in known if result.outcome == SURVIVED and arguments.tests}
        if arguments.again:
            results.forget({result.key for result in known if result.outcome in (SURVIVED, NEAR)})
        code = _run(target, modules, chosen, results, met_all, arguments)
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            sys.exit(f"pytest ended with exit code {code}")
    told = _known_of(target.name, sample, at_least=arguments.at_least)
    if arguments.json:
        print(json.dumps(Summary.of(told).plain(), indent=2))
    else:
        report.show(told)
    about_none = stale(argued(), modules)
    for entry in about_none:
        print(f"argued, and there is no such mutant: {entry}", file=sys.stderr)
    sys.exit(bool(told.unargued or about_none or told.argued_and_noticed))


def _known_of(target: str, sample: Sample | None, *, at_least: bool) -> report.Told:
    try:
        return report.known_of(target, sample, at_least=at_least)
    except NotFinished as unfinished:
        sys.exit(f"{target}: {unfinished}")


def _run(
    target: Target,
    modules: Mapping[str, Module],
    chosen: list[Mutant],
    results: Results,
    met_all: Collection[Key],
    arguments: argparse.Namespace,
) -> int:
    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    # Of some tests it is another one, and takes their time alone.
    some = f".{hashlib.sha256(arguments.tests.encode()).hexdigest()[:8]}" if arguments.tests else ""
    file = FOLDER / f"{target.name}{some}.profile.json"
    loop = Loop(
        modules,
        chosen,
        results,
        seconds=arguments.seconds,
        near=bool(arguments.near or (arguments.tests and not arguments.together)),
        asked=arguments.tests,
        met_all=met_all,
        together=arguments.together,
        file=file,
        tell=tell,
    )
    # Else the fork of an endless mutant would outlive the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    os.chdir(ROOT)
    for path in target.paths:
        sys.path.insert(0, str(path))
        patching.import_from(path)
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    options += ["-o", "timeout=0", "-o", "faulthandler_timeout=0"]  # each fork has a limit of its own
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        code = int(pytest.main([*options, *target.tests], plugins=[loop]))
    if loop.broken is not None:
        raise loop.broken
    return code


def _text(mutant: Mutant) -> str:
    key = mutant.key
    return f"{key.module}:{mutant.line} {key.function}: {key.operator}: {key.before}  ->  {key.after}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m laketier_verification.mutants", description=__doc__)
    parser.add_argument("target", nargs="?", choices=sorted(TARGETS), help="default: feather")
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="begin no mutant later than this; default: %(default)s"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the order in which mutants are drawn; default: %(default)s"
    )
    parser.add_argument(
        "--sample",
        type=int,
        default=0,
        metavar="COUNT",
        help="only the first COUNT in that order; once each has met all tests, the score of these alone is told, with "
        "the interval in which that of all lies",
    )
    parser.add_argument(
        "--at-least",
        action="store_true",
        help="tell of a sample also while survivors still wait for tests: the score is then the least that it can be",
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="mutants whose line of --list it matches")
    parser.add_argument("--survivors-of", choices=sorted(TARGETS), help="only what survived in another target")
    parser.add_argument(
        "--recall",
        action="store_true",
        help="first take what the committed summary tells of code that is the same; with --docs, add to it what "
        "became of its survivors since",
    )
    parser.add_argument("--again", action="store_true", help="try survivors once more, as after a new test")
    parser.add_argument("--near", action="store_true", help="ask only the first tests, for a first look")
    parser.add_argument("--tests", default="", metavar="REGEX", help="ask only tests whose name it matches")
    parser.add_argument("--together", action="store_true", help="ask tests of many mutants at once, from the start")
    parser.add_argument("--list", action="store_true", help="show the mutants, and try none")
    parser.add_argument("--report", action="store_true", help="show what is known, and try none")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--docs", action="store_true", help="write TARGET's summary, if one is named, and the page of docs/proof"
    )
    return parser


if __name__ == "__main__":
    main()
