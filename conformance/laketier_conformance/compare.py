"""Two reports of one format beside each other: what the newer one has lost, and what it has won.

``python -m laketier_conformance.compare OLD NEW`` ends with 0 if nothing is lost, with 1 if something is, and with 2 if
the two can't be compared. It imports no plugin, so it runs where the format is not installed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laketier.cli.shown import say
from laketier.registry.pages import page
from laketier.spi import DeliveryLevel
from laketier_conformance.manifest import expected_tests
from laketier_conformance.proof import REPORT
from laketier_conformance.rule import Rule
from laketier_conformance.rules import RULES, rule_of
from laketier_conformance.shown import FAILED, FULL, NOT_SHOWN
from laketier_conformance.verdict import CONFORMANT, FAIL, NOT_RUN, PARTIAL, UNSEEN_EFFECTS, WITHOUT_EFFECTS
from laketier_conformance.words import plainly

_VERDICTS = (FAIL, PARTIAL, WITHOUT_EFFECTS, UNSEEN_EFFECTS, CONFORMANT)
"""From the weakest to the strongest."""
_LEVELS = (DeliveryLevel.IDEMPOTENT_UPSERT.value, DeliveryLevel.EXACTLY_ONCE.value)
_FULFILLED = ("passed", "refused")
_SHOWN = 5
"""So many tests of a rule."""
_MAPPINGS = ("versions", "seeds", "features", "shown", "interposed", "places", "unproven", "results")
_LISTS = ("options", "lanes", "not_interposed", "strides", "why")
_TEXTS = ("format", "plugin", "suite", "at", "delivery", "verdict")


_HELP = """Compare two reports of one format, as laketier conformance FORMAT --report FILE writes them. Ends with 0 if
the newer one lost nothing, with 1 if it did, and with 2 if they can't be compared."""


class NoReport(Exception):
    """A file is no report, or two reports can't be compared."""


@dataclass(frozen=True)
class Comparison:
    """Lines for a terminal. What is ``lost`` was shown by the older report; ``other`` is what may be the reason."""

    lost: Sequence[str]
    won: Sequence[str]
    other: Sequence[str]


def read(file: Path) -> dict[str, Any]:
    """A whole report of today's version. Its words may be anybody's."""
    try:
        report = plainly(json.loads(file.read_bytes()))
    except OSError as error:
        raise NoReport(f"{file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise NoReport(f"{file} is no report: it is no JSON") from error
    if not isinstance(report, dict) or "report" not in report:
        raise NoReport(f"{file} is no report: write one by laketier conformance FORMAT --report FILE")
    if report["report"] != REPORT:
        raise NoReport(f"{file} is a report of version {report['report']!r}, and this laketier reads {REPORT}")
    if "results" not in report:
        raise NoReport(f"{file} has no results of single tests: compare the file that --report wrote")
    kinds = ((_MAPPINGS, dict), (_LISTS, list), (_TEXTS, str))
    wrong = [name for names, kind in kinds for name in names if not isinstance(report.get(name), kind)]
    for name, is_one in (
        ("verdict", _VERDICTS.__contains__),
        ("delivery", _LEVELS.__contains__),
        ("results", _are_results),
    ):
        wrong += [] if wrong or is_one(report[name]) else [name]
    if wrong:
        raise NoReport(f"{file} is no report: its {wrong[0]} is missing, or is none of this laketier")
    return dict(report)


def _are_results(results: Mapping[str, object]) -> bool:
    return all(isinstance(each, dict) and isinstance(each.get("outcome"), str) for each in results.values())


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """Raises `NoReport` for reports of two formats."""
    if old["format"] != new["format"]:
        raise NoReport(f"the reports are of two formats, {old['format']} and {new['format']}")
    lost, won = list[str](), list[str]()
    for name, levels in (("verdict", _VERDICTS), ("delivery", _LEVELS)):
        said = f"{name}: {old[name]}, now {new[name]}"
        by = levels.index(new[name]) - levels.index(old[name])
        if by < 0:
            lost.append(said)
        elif by and new[name] != PARTIAL:  # a run that left out the tests that failed has won nothing
            won.append(said)
    for feature in dict.fromkeys((*old["shown"], *new["shown"])):
        before, now = (str(each["shown"].get(feature, "not asked")) for each in (old, new))
        if FULL in (before, now) and before != now:
            reason = new["unproven"].get(feature) if now == NOT_SHOWN else None
            said = f"feature {feature}: {before}, now {now}{f' ({reason})' if reason else ''}"
            (lost if before == FULL else won).append(said)
    lost += _lost_rules(old["results"], new["results"])
    won += _won_rules(old["results"], new["results"])
    return Comparison(lost, won, tuple(_circumstances(old, new)))


def _lost_rules(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """By rule the tests that held and hold no more, or that came with a newer suite and failed. A refusal holds: of a
    feature that is refused now, the line of the feature tells."""
    suite = set(expected_tests())
    by_rule: dict[Rule | None, list[tuple[str, str]]] = {rule: [] for rule in (*RULES, None)}
    for test in sorted({*old, *new}):
        before = old[test]["outcome"] if test in old else "not in the older report"
        now = new[test]["outcome"] if test in new else NOT_RUN
        gone = before in _FULFILLED and now not in _FULFILLED
        if (gone and (test in new or test in suite)) or (test not in old and now == FAILED):
            detail = new[test].get("detail") if now == FAILED else None
            said = f"  {test}: {before}, now {now}{f': {detail}' if detail else ''}"
            by_rule[rule_of(test)].append((now, said))
    for rule, told in by_rule.items():
        if told:
            worst = [said for _, said in sorted(told, key=lambda each: each[0] != FAILED)]
            more = [f"  and {len(worst) - _SHOWN} more"] if len(worst) > _SHOWN else []
            head = "no rule of this laketier" if rule is None else f"rule {rule.id}: {rule.sentence} {page(rule.guide)}"
            yield "\n".join([head, *worst[:_SHOWN], *more])


def _won_rules(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Those of which a test failed, and each one holds now that was run before."""
    for rule in RULES:
        before = {test: result["outcome"] for test, result in old.items() if rule_of(test) == rule}
        now = {new[test]["outcome"] if test in new else NOT_RUN for test in before}
        if FAILED in before.values() and now <= set(_FULFILLED):
            yield f"rule {rule.id}: {list(before.values()).count(FAILED)} of its tests failed, now none"


def _circumstances(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old["suite"] != new["suite"]:
        yield f"suite: {old['suite']}, now {new['suite']}"
    for name in dict.fromkeys((*old["versions"], *new["versions"])):
        before, now = (str(each["versions"].get(name, "none")) for each in (old, new))
        if before != now:
            yield f"{name}: {before}, now {now}"
    for name in ("lanes", "options"):
        if old[name] != new[name]:
            before, now = (" ".join(map(str, each[name])) or "none" for each in (old, new))
            yield f"{name}: {before}, now {now}"
    for name, what in (("interposed", "no longer interposed"), ("places", "no longer a place of effects")):
        if gone := [kind for kind in old[name] if kind not in new[name]]:
            yield f"{what}: {', '.join(gone)}"
    yield from (f"not interposed: {each}" for each in new["not_interposed"] if each not in old["not_interposed"])
    gone = old["results"].keys() - new["results"].keys() - set(expected_tests())
    if gone:
        yield f"{len(gone)} tests are gone from the suite"
    if come := len(new["results"].keys() - old["results"].keys()):
        yield f"{come} tests are not in the older report"


def lines(old: Mapping[str, Any], new: Mapping[str, Any], found: Comparison) -> Iterator[str]:
    """For a terminal."""
    yield f"{new['format']}: {old['plugin']} of {old['at'][:10]}, now {new['plugin']} of {new['at'][:10]}"
    for what, told in (("lost", found.lost), ("won", found.won), ("other", found.other)):
        yield from (f"{what:7}{each}".replace("\n", f"\n{'':7}") for each in told)
    yield f"{len(found.lost)} lost, {len(found.won)} won"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the reports of two files, and print what differs."""
    parser = argparse.ArgumentParser(prog="python -m laketier_conformance.compare", description=_HELP)
    parser.add_argument("old", type=Path, help="the report of the version before")
    parser.add_argument("new", type=Path, help="the report of this version")
    given = parser.parse_args(arguments)
    try:
        old, new = read(given.old), read(given.new)
        found = compare(old, new)
    except NoReport as error:
        say(f"laketier_conformance.compare: {plainly(str(error))}", err=True)
        return 2
    for line in lines(old, new, found):
        say(line)
    return 1 if found.lost else 0


if __name__ == "__main__":
    sys.exit(main())
