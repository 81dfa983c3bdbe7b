"""The page of docs/proof, from the files of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from laketier_verification.mutants.report import Score, Told, known_of, module, operator, rule
from laketier_verification.mutants.results import NEAR, Result
from laketier_verification.mutants.targets import FOLDER, TARGETS

_ABOUT = {
    "feather": "the conformance suite on Feather, which has no partitions, buckets or files that move; what Feather "
    "lets pass, the suite may notice on localfile, which shares the code",
    "localfile": "the conformance suite on localfile",
    "delta": "the conformance suite on Delta",
    "iceberg": "the conformance suite on Iceberg",
    "lance": "the conformance suite on Lance",
    "tiering": "the unit tests of tiering/ and spi/",
    "spi": "the unit tests of spi/, tiering/ and kit/",
    "rounds": "the unit tests of rounds/",
    **{f"{name}-own": f"the tests of plugins/{name}/tests" for name in ("localfile", "delta", "iceberg", "lance")},
}
_HEAD = """# Mutants

`make test-mutants` makes one small mistake in correct code, runs the tests that reach the mistake, and says which
test noticed. A mistake that no test notices is a survivor: the suite lacks a test, or the mistake changes nothing
that a caller could tell. The page is written by `python -m laketier_verification.mutants --docs
docs/proof/mutants.md`.

## How it is done

- **Operators** work on the syntax tree of functions: drop a call, drop a sync, drop a guard, skip a check, negate a
  condition, swap two statements or two arguments, off by one, another exception, widen an `except`, drop a handler,
  forget a field, cache a fresh look. Messages, log lines, asserts and failpoints are left alone, with the arguments
  `where`, `why` and `fix`, which are parts of messages, and so is what runs as a module is imported.
- **One process** imports everything and collects the tests once. Each mutant gets a fork of it, in which the code of
  its function is exchanged. Interpreters that a test starts take the mutant from an import hook, so killed and racing
  processes have it, too.
- **The control** comes first: all tests run once with each function exchanged for its own code, compiled in the same
  way. A test that fails then is left out. The same run records the lines that each test reaches.
- **A mutant meets** at first the cheap tests of its line, those first that noticed most so far. Survivors then meet
  all other tests that reach their lines, and all tests that start processes, {together} mutants in one fork; where a
  test fails, halves are put to it, down to each. A mutant that hides another one there would be overlooked.
- **A test that does not end** counts as one that noticed. Its limit is half a minute and fifteen times its usual
  time.
- **Samples** are drawn by a hash of seed and mutant, so the mutants tried so far are a fair sample of all of them.
- **Resuming**: results are appended to `artifacts/mutants/`. A run goes on where another ended. A result counts only
  for the text of the function for which it was found.

A survivor that nobody could notice has a line in `tests/mutants/survivors.toml` that says why, and counts neither
way. A line about a mutant that is not there, or that a test notices, is an error. The suite runs in its bare lane,
without Spark. Survivors that our own unit tests notice are counted apart, under "ours": an author of a format does not
have them. A mutant that
has met only its first tests counts as a survivor, so the tests that are left can only raise the score.
"""


def page() -> str:
    """Of all targets with results."""
    from laketier_verification.mutants.loop import TOGETHER

    # The kit's own tests are asked about survivors of Feather, which are no fair sample of the kit.
    known = [known_of(name) for name in TARGETS if name in _ABOUT and (FOLDER / f"{name}.jsonl").exists()]
    known = [told for told in known if told.results]
    parts = [
        _HEAD.format(together=TOGETHER),
        _table("Scores", "code", [(told.name, told.score) for told in known], known),
    ]
    for told in known:
        parts.append(f"## {told.name}\n\nBy {_ABOUT[told.name]}. {_sample(told)}\n")
        for title, of in _VIEWS:
            parts.append(_rows(title, told.by(of).items()))
        parts.append(_survivors("Survivors that nobody argued", told.unargued, lambda _: ""))
        same = [result for result in told.results if not result.noticed and told.is_argued(result)]
        parts.append(_survivors("Survivors that change nothing", same, partial(_why, told)))
    return "\n".join(parts)


_VIEWS: tuple[tuple[str, Callable[[Result], str]], ...] = (("rule", rule), ("module", module), ("mistake", operator))


def _sample(told: Told) -> str:
    drawn = "All" if told.score.tried + told.not_viable == told.total else "A sample:"
    waiting = sum(result.outcome == NEAR for result in told.results)
    return (
        f"{drawn} {told.score.tried} of {told.total} mutants; {told.not_viable} could not be made. Of the survivors, "
        f"{waiting} have met only their first tests."
    )


def _table(title: str, first: str, scores: Iterable[tuple[str, Score]], known: list[Told]) -> str:
    lines = [
        f"## {title}\n",
        f"| {first} | mutants | tried | noticed | argued | noticed of the rest | by our own tests | with them |",
        "|---|" + "---:|" * 7,
    ]
    for told, (name, score) in zip(known, scores, strict=True):
        lines.append(
            f"| [{name}](#{name}) | {told.total} | {score.tried} | {score.noticed} | {score.equivalent} "
            f"| {score.percent:.1f} % | {score.ours} | {score.with_ours:.1f} % |"
        )
    return "\n".join(lines) + "\n"


def _rows(title: str, scores: Iterable[tuple[str, Score]]) -> str:
    lines = [f"| {title} | tried | noticed | argued | of the rest | ours | with ours |", "|---|" + "---:|" * 6]
    for name, score in scores:
        shown = f"`{name}`" if "_" in name or "." in name else name
        counts = f"{score.tried} | {score.noticed} | {score.equivalent} | {score.percent:.1f} %"
        lines.append(f"| {shown} | {counts} | {score.ours} | {score.with_ours:.1f} % |")
    return "\n".join(lines) + "\n"


def _survivors(title: str, results: list[Result], why: Callable[[Result], str]) -> str:
    if not results:
        return f"{title}: none.\n"
    lines = [f"{title}:\n"]
    for result in sorted(results, key=lambda each: (each.key.module, each.line)):
        key = result.key
        change = f"{_code(key.before)} → {_code(key.after)}"
        reason = why(result)
        lines.append(f"- `{key.module}.{key.function}`, {key.operator}: {change}" + (f". {reason}" if reason else ""))
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _why(told: Told, result: Result) -> str:
    return next(entry.why for entry in told.entries if entry.is_about(result.key))
