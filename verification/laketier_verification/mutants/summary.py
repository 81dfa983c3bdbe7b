"""What is known of one target, in a small file that is committed: `docs/proof/mutants/<target>.json`. The page is made
from these files alone, so no run of another target and no lost file of results changes what it says of this one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from laketier_verification.mutants.report import Score, Told, module, operator, rule
from laketier_verification.mutants.results import NEAR, Result
from laketier_verification.mutants.sample import Sample
from laketier_verification.mutants.targets import ROOT, TARGETS

SUMMARIES = ROOT / "docs" / "proof" / "mutants"
VIEWS: tuple[tuple[str, Callable[[Result], str]], ...] = (("rule", rule), ("module", module), ("mistake", operator))


@dataclass(frozen=True)
class Survivor:
    """A mutant that no test of the target noticed. ``why``: nobody could, and here is the reason. ``ours``: our own
    tests notice it. ``gone``: so is its code since, and nobody can make it any more."""

    module: str
    function: str
    operator: str
    before: str
    after: str
    why: str = ""
    ours: bool = False
    gone: bool = False

    @classmethod
    def of(cls, told: Told, result: Result) -> Survivor:
        """With what is known of it."""
        key = result.key
        why = next((entry.why for entry in told.entries if entry.is_about(key)), "")
        return cls(key.module, key.function, key.operator, key.before, key.after, why, key in told.ours)


@dataclass(frozen=True)
class Earlier:
    """The score of a sample of older code, for comparison. ``waiting``: as in `Summary`."""

    commit: str
    date: str
    mutants: int
    score: Score
    sample: Sample
    waiting: int = 0


@dataclass(frozen=True)
class Summary:
    """``commit`` and ``date`` of the sources that were broken. ``mutants``: all there are, of which ``score.tried`` and
    ``not_viable`` were drawn. ``waiting``: survivors that have met only their first tests. ``elsewhere``: how many of
    those noticed were noticed by the suite on another format alone. ``scores``: by view, then by name. ``sample``: what
    was drawn for the score, where it is not of all that was tried. ``earlier``: samples before it, oldest first."""

    target: str
    commit: str
    date: str
    mutants: int
    not_viable: int
    waiting: int
    elsewhere: Mapping[str, int]
    score: Score
    scores: Mapping[str, Mapping[str, Score]]
    survivors: Sequence[Survivor]
    sample: Sample | None = None
    earlier: Sequence[Earlier] = ()

    @classmethod
    def of(cls, told: Told) -> Summary:
        """Of what the files of results say now."""
        left = sorted(
            (result for result in told.results if not result.noticed), key=lambda each: (each.key.module, each.line)
        )
        return cls(
            told.name,
            _commit(),
            datetime.now(UTC).date().isoformat(),
            told.total,
            told.not_viable,
            sum(result.outcome == NEAR for result in left),
            told.elsewhere,
            told.score,
            {name: told.by(of) for name, of in VIEWS},
            [Survivor.of(told, result) for result in left],
            told.sample,
        )

    @classmethod
    def read(cls, file: Path) -> Summary:
        """One that `write` wrote."""
        plain = json.loads(file.read_text(encoding="utf-8"))
        return cls(
            **plain
            | {
                "score": Score(**plain["score"]),
                "scores": {
                    view: {name: Score(**score) for name, score in scores.items()}
                    for view, scores in plain["scores"].items()
                },
                "survivors": [Survivor(**each) for each in plain["survivors"]],
                "sample": Sample(**plain["sample"]) if plain.get("sample") else None,
                "earlier": [
                    Earlier(**each | {"score": Score(**each["score"]), "sample": Sample(**each["sample"])})
                    for each in plain.get("earlier", ())
                ],
            }
        )

    def after(self, before: Summary) -> Summary:
        """With the sample of ``before``, which this one takes the place of, and those that came before it."""
        earlier = list(before.earlier)
        if before.sample is not None and (before.sample, before.commit) != (self.sample, self.commit):
            earlier.append(
                Earlier(before.commit, before.date, before.mutants, before.score, before.sample, before.waiting)
            )
        return replace(self, earlier=earlier)

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        survivors = [{name: value for name, value in vars(each).items() if value} for each in self.survivors]
        return asdict(self) | {"survivors": survivors}

    def write(self, folder: Path = SUMMARIES) -> None:
        """Over the one of the same target."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.plain(), indent=1, ensure_ascii=False)
        (folder / f"{self.target}.json").write_text(text + "\n", encoding="utf-8")


def summaries(folder: Path = SUMMARIES) -> list[Summary]:
    """All that there are, in the order of the targets."""
    files = {name: folder / f"{name}.json" for name in TARGETS}
    return [Summary.read(file) for file in files.values() if file.exists()]


def _commit() -> str:
    git = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def refuse_lost_commit(root: Path = ROOT, main: str = "main") -> None:
    """Raise `LostCommit` where the commit at hand is not in the history of ``main``: a rebase gives it another name,
    and then nobody finds the code that a summary tells of. Where there is no such branch, as in some clones, nobody can
    tell."""
    git = ("git", "merge-base", "--is-ancestor", "HEAD", main)
    if subprocess.run(git, cwd=root, check=False, capture_output=True).returncode == 1:
        raise LostCommit(
            f"HEAD is not in the history of {main}: land the code and its tests first, and then the figures"
        )


class LostCommit(Exception):
    """A summary would name a commit that the history does not have."""
