"""Runs that go on where the files of an earlier one are lost, and only its committed summary is left.

A summary lists survivors. Where all mutants of its target were tried, the others were noticed, and a run goes on from
there. Where some were tried, nobody knows which of the others: what a run of survivors notices is put into the summary.
What it says of a function holds as long as the function's text is that of the summary's commit.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from laketier_verification.mutants.report import Score, Told
from laketier_verification.mutants.results import KILLED, NEAR, SURVIVED, Result
from laketier_verification.mutants.source import Key, Module
from laketier_verification.mutants.summary import VIEWS, Summary, Survivor
from laketier_verification.mutants.targets import ROOT, TARGETS

BY = "a test of an earlier run"
_Text = tuple[str, str, str, str, str]


def recalled(summary: Summary, modules: Mapping[str, Module]) -> Iterator[Result]:
    """Survivors have met their first tests only, as far as anybody remembers. Those noticed are told where each mutant
    was tried."""
    listed: Counter[_Text] = Counter(map(_of, summary.survivors))
    was_tried = summary.score.tried + summary.not_viable == summary.mutants and not summary.not_viable
    with tempfile.TemporaryDirectory() as folder:
        for module in modules.values():
            before = _at(summary.commit.removesuffix("-dirty"), module, Path(folder))
            if before is None:
                continue
            alike = Counter(_text(mutant.key) for mutant in before.mutants)
            for mutant in module.mutants:
                key = mutant.key
                try:
                    same = before.digest(key.function) == module.digest(key.function)
                except LookupError:
                    same = False
                survivors = listed[_text(key)]
                # Of those that read the same, nobody knows which one survived.
                if same and survivors in (0, alike[_text(key)]) and (survivors or was_tried):
                    outcome, by = (NEAR, "") if survivors else (KILLED, BY)
                    yield Result(key, module.digest(key.function), mutant.line, outcome, by=by)


def mended(summary: Summary, told: Told) -> Summary:
    """With what became of its survivors since: those that a run noticed, those that our own tests notice, those that
    somebody argued, those that have met all tests, and those whose code is gone."""
    modules = TARGETS[told.name].modules()
    still = {result.key for result in recalled(summary, modules) if not result.noticed}
    there = {_text(mutant.key) for module in modules.values() for mutant in module.mutants}
    now = {_text(result.key): result for result in told.results if result.key in still}
    since = [(each, now[_of(each)]) for each in summary.survivors if _of(each) in now]
    left = [_since(each, now.get(_of(each)), told) for each in summary.survivors]
    met_all = sum(result.outcome == SURVIVED for _, result in since)

    def better(score: Score, some: Sequence[tuple[Survivor, Result]]) -> Score:
        then = [_since(each, result, told) for each, result in some]
        return replace(
            score,
            noticed=score.noticed + then.count(None),
            equivalent=score.equivalent + _argued(then) - _argued([each for each, _ in some]),
            ours=score.ours + _by_ours(then) - _by_ours([each for each, _ in some]),
        )

    scores = {
        view: {
            name: better(score, [pair for pair in since if of(pair[1]) == name])
            for name, score in summary.scores[view].items()
        }
        for view, of in VIEWS
    }
    return replace(
        summary,
        score=better(summary.score, since),
        scores=scores,
        survivors=[replace(each, gone=_of(each) not in there) for each in left if each is not None],
        waiting=min(summary.waiting, len(left) - left.count(None) - met_all),
    )


def _since(survivor: Survivor, result: Result | None, told: Told) -> Survivor | None:
    """As it is told now; None where something noticed it."""
    if result is None:
        return survivor
    if result.noticed:
        return None
    now = Survivor.of(told, result)
    return replace(now, ours=now.ours or survivor.ours)


def _argued(some: Sequence[Survivor | None]) -> int:
    return sum(each is not None and bool(each.why) for each in some)


def _by_ours(some: Sequence[Survivor | None]) -> int:
    """One that is argued counts neither way."""
    return sum(each is not None and each.ours and not each.why for each in some)


def _of(survivor: Survivor) -> _Text:
    return survivor.module, survivor.function, survivor.operator, survivor.before, survivor.after


def _text(key: Key) -> _Text:
    return key.module, key.function, key.operator, key.before, key.after


def _at(commit: str, module: Module, folder: Path) -> Module | None:
    """The module as it was; None where it was not there."""
    path = module.file.resolve().relative_to(ROOT.resolve())
    told = subprocess.run(["git", "show", f"{commit}:{path}"], cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        return None
    file = folder / f"{module.name}.py"
    file.write_text(told.stdout, encoding="utf-8")
    return Module(module.name, file)
