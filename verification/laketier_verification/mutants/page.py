"""The pages of docs/proof/mutants, from the summaries beside them: one of the scores, and one of each target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from laketier_verification.mutants.asked import Asked, table
from laketier_verification.mutants.report import Score
from laketier_verification.mutants.sample import SURE
from laketier_verification.mutants.summary import SUMMARIES, Earlier, Summary, Survivor, summaries
from laketier_verification.mutants.targets import TARGETS

_NOTES = Path(__file__).parent / "notes"
"""What people found, by target, and how it is done."""
_FEW_WAIT = 1 / 8
"""Of those tried, how many may not have met all tests yet, so that the list of survivors is worth reading."""
INDEX = "index"
"""The page of the scores."""
_ABOUT = {
    "feather": "the conformance suite on Feather, on a Feather that declares nothing which may be left out, and on "
    "localfile (since November 25 with all that it may ask of the kit switched on), as all three stand on the kit; "
    "functions that are all about what a format has to ask for, such as folding, are localfile's (`targets.py` names "
    "them)",
    "localfile": "the conformance suite on localfile, and on Feather, which shares the kit; the kit is tried whole, "
    "and localfile's own modules by a sample of their own",
    "delta": "the conformance suite on Delta",
    "iceberg": "the conformance suite on Iceberg",
    "lance": "the conformance suite on Lance",
    "tiering": "the unit tests of tiering/, rounds/ and maintenance/",
    "spi": "the unit tests of spi/, tiering/, kit/ and config/",
    "rounds": "the unit tests of rounds/ and config/, and those of rounds in tests/integration/sources on localfile",
    **{f"{name}-own": f"the tests of plugins/{name}/tests" for name in ("localfile", "delta", "iceberg", "lance")},
}


def pages(folder: Path = SUMMARIES) -> dict[str, str]:
    """By their names without a suffix, of all targets with a summary there."""
    from laketier_verification.mutants.loop import TOGETHER

    # The kit's own tests are asked about survivors of Feather, which are no fair sample of the kit.
    known = [Asked.of(summary) for summary in summaries(folder) if summary.target in _ABOUT]
    sampled = [each for each in known if each.summary.sample is not None]
    by_suite = [each for each in sampled if TARGETS[each.summary.target].by_the_suite]
    answer = _note("answer").format(
        suite=_between(each.summary.score.percent for each in by_suite),
        asked=_between(each.percent for each in by_suite),
        since=_between(each.percent_since for each in by_suite),
        ours=_between(each.summary.score.percent for each in sampled if each not in by_suite),
    )
    asked = _note("unasked") + "\n" + table(by_suite)
    how = _note("how").format(together=TOGETHER)
    made = {INDEX: "\n".join([answer, _table(each.summary for each in known), asked, how])}
    return made | {each.summary.target: _of(each) for each in known}


def _between(shares: Iterable[float]) -> str:
    found = sorted(shares)
    return f"{found[0]:.0f} to {found[-1]:.0f} %" if found else "no known share"


def write_pages(folder: Path = SUMMARIES) -> None:
    """Beside the summaries."""
    for name, text in pages(folder).items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def _of(known: Asked) -> str:
    summary = known.summary
    parts = [f"# Mutants of {summary.target}\n\nBy {_ABOUT[summary.target]}. {_sample(summary)}\n"]
    if summary.earlier:
        parts.append(_earlier(summary))
    if (_NOTES / f"{summary.target}.md").exists():
        parts.append(_note(summary.target))
    parts += [_rows(view, scores) for view, scores in summary.scores.items()]
    if known.unasked:
        parts.append(_survivors("Survivors that only our own tests can notice", known.unasked))
    if known.since:
        parts.append(_survivors("Survivors that the suite asks about since", known.since))
    if _is_first_look(summary):
        parts.append(f"[The summary]({summary.target}.json) names the survivors, most of which may be noticed yet.\n")
        return "\n".join(parts)
    open_ones = [each for each in summary.survivors if not (each.why or each.ours)]
    parts.append(_survivors("Survivors that nobody argued", [each for each in open_ones if not each.gone]))
    gone = [each for each in open_ones if each.gone]
    if gone:
        parts.append(_survivors("Survivors that nobody argued, and whose code is gone since", gone))
    parts.append(_survivors("Survivors that change nothing", [each for each in summary.survivors if each.why]))
    return "\n".join(parts)


def _note(name: str) -> str:
    return (_NOTES / f"{name}.md").read_text(encoding="utf-8")


def _is_first_look(summary: Summary) -> bool:
    return summary.waiting > _FEW_WAIT * summary.score.tried


def _sample(summary: Summary) -> str:
    tried = summary.score.tried
    if summary.sample is not None:
        return _drawn(summary)
    drawn = "All" if tried + summary.not_viable == summary.mutants else "A sample:"
    shared = "".join(f" {count} of those noticed only on {name}." for name, count in summary.elsewhere.items())
    if TARGETS[summary.target].by_the_suite and not summary.score.ours:
        shared += " Our own tests have not been asked about the survivors."
    return (
        f"{drawn} {tried} of {summary.mutants} mutants; {summary.not_viable} could not be made. Of the survivors, "
        f"{summary.waiting} have not met all tests yet.{shared} At commit {summary.commit} of {summary.date}."
    )


def _drawn(summary: Summary) -> str:
    assert summary.sample is not None
    score, sample = summary.score, summary.sample
    low, high = score.interval
    shared = "".join(f" {count} of them on {name} alone." for name, count in summary.elsewhere.items())
    met = "each survivor met all tests that reach it"
    found = f"{score.noticed} of {score.tried - score.equivalent}, so between {low:.0f} and {high:.0f} % of all"
    if summary.waiting:
        met = f"{summary.waiting} of the survivors have not met all tests yet"
        found = f"at least {score.noticed} of {score.tried - score.equivalent}, so at least {low:.0f} % of all"
    return (
        f"A sample of {sample.count} of {summary.mutants} mutants, drawn with seed {sample.seed}, and {met}; "
        f"{summary.not_viable} could not be made, and {score.equivalent} are argued. Noticed: {found}, "
        f"with {SURE:.0%} confidence.{shared} At commit {summary.commit} of {summary.date}."
    )


def _earlier(summary: Summary) -> str:
    """Each sample is drawn anew, so a mutant that a test was written for counts no more than any other."""
    lines = [
        "| sample | of | drawn | noticed | argued | of the rest | of all | by our own tests, too |",
        "|---|---|" + "---:|" * 6,
    ]
    told: list[Earlier | Summary] = [*summary.earlier, summary]
    for each in told:
        assert each.sample is not None
        score, (low, high) = each.score, each.score.interval
        least = "at least " if each.waiting else ""
        of_all = f"at least {low:.0f} %" if each.waiting else f"{low:.0f} to {high:.0f} %"
        lines.append(
            f"| seed {each.sample.seed} | {each.commit[:8]}, {each.date} | {score.tried} | {least}{score.noticed} "
            f"| {score.equivalent} | {least}{score.percent:.1f} % | {of_all} | {least}{score.with_ours:.1f} % |"
        )
    return "\n".join(lines) + "\n"


def _table(known: Iterable[Summary]) -> str:
    lines = [
        "## Scores\n",
        _note("rows"),
        "| code | of | mutants | tried | noticed | argued | noticed of the rest | by our own tests | with them |",
        "|---|---|" + "---:|" * 7,
    ]
    for summary in known:
        name, score = summary.target, summary.score
        of_all = f"{score.percent:.1f} %"
        if summary.sample is not None:
            low, high = score.interval
            of_all += f" (of all: {low:.0f} to {high:.0f} %)"
            if summary.waiting:
                of_all = f"at least {score.percent:.1f} % (of all: at least {low:.0f} %)"
        elif _is_first_look(summary):
            of_all = f"first look: {of_all}"
        lines.append(
            f"| [{name}]({name}.md) | {summary.commit[:8]}, {summary.date} | {summary.mutants} | {score.tried} "
            f"| {score.noticed} | {score.equivalent} | {of_all} | {score.ours} | {score.with_ours:.1f} % |"
        )
    return "\n".join(lines) + "\n"


def _rows(title: str, scores: Mapping[str, Score]) -> str:
    lines = [f"| {title} | tried | noticed | argued | of the rest | ours | with ours |", "|---|" + "---:|" * 6]
    for name, score in scores.items():
        shown = f"`{name}`" if "_" in name or "." in name else name
        counts = f"{score.tried} | {score.noticed} | {score.equivalent} | {score.percent:.1f} %"
        lines.append(f"| {shown} | {counts} | {score.ours} | {score.with_ours:.1f} % |")
    return "\n".join(lines) + "\n"


def _survivors(title: str, survivors: Sequence[Survivor]) -> str:
    if not survivors:
        return f"{title}: none.\n"
    lines = [f"{title}:\n"]
    for each in survivors:
        change = f"{_code(each.before)} → {_code(each.after)}"
        reason = f". {each.why}" if each.why else ""
        lines.append(f"- `{each.module}.{each.function}`, {each.operator}: {change}{reason}")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"
