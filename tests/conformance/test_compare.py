"""Two reports of a format beside each other: what a version of a plugin has lost."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from laketier_conformance.compare import NoReport, compare, main, read
from laketier_conformance.manifest import expected_tests
from laketier_conformance.rules import RULES, rule_of

HELD, REFUSED, OTHER = (
    "test_rounds.py::test_a_replay_writes_nothing",
    "test_indexing.py::test_indexing",
    "test_upsert.py",
)
UPSERTS = [test for test in expected_tests() if test.startswith(f"{OTHER}::")]
WRONG = {"outcome": "failed", "seconds": 1.0, "detail": "expected 3 rows, found 4"}


@pytest.fixture
def old() -> dict[str, Any]:
    passed = {"outcome": "passed", "seconds": 1.0}
    return {
        "report": 2,
        "format": "acme",
        "plugin": "acme-lake==1.0",
        "suite": "laketier==0.1.0",
        "versions": {"python": "3.11.7", "acme-lake": "1.0"},
        "at": "2026-11-20T10:00:00+00:00",
        "seconds": 10.0,
        "seeds": {"schedules": [0, 19]},
        "options": ["--lake-seed=1"],
        "lanes": ["bare", "spark-dataframe", "spark-split"],
        "delivery": "exactly-once",
        "features": {"upsert": "full", "indexing": "unsupported: not yet"},
        "shown": {"upsert": "full", "indexing": "refused"},
        "unknown_features": [],
        "interposed": {"write": 100, "fsync": 10},
        "places": {"warehouse": 110},
        "not_interposed": [],
        "strides": [],
        "verdict": "conformant",
        "conformant": True,
        "as_asked": True,
        "why": [],
        "unproven": {},
        "results": {HELD: passed, REFUSED: {**passed, "outcome": "refused"}, **dict.fromkeys(UPSERTS, passed)},
    }


@pytest.fixture
def new(old: dict[str, Any]) -> dict[str, Any]:
    """The same, to be changed."""
    return copy.deepcopy(old)


def test_the_same_has_lost_nothing(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = compare(old, new)
    assert (found.lost, found.won, found.other) == ([], [], ())


def test_a_test_that_fails_is_told_with_its_rule_and_the_guide(old: dict[str, Any], new: dict[str, Any]) -> None:
    new["results"][HELD] = WRONG
    (told,) = compare(old, new).lost
    rule = rule_of(HELD)
    assert rule is not None
    assert told.splitlines() == [
        f"rule {rule.id}: {rule.sentence} {rule.guide}",
        f"  {HELD}: passed, now failed: expected 3 rows, found 4",
    ]
    back = compare(new, old)
    assert (back.lost, back.won) == ([], [f"rule {rule.id}: 1 of its tests failed, now none"])


@pytest.mark.parametrize("outcome", ["failed", "skipped", "not interposed", "not run"])
@pytest.mark.parametrize("test", [HELD, REFUSED])
def test_whatever_does_not_hold_is_lost(outcome: str, test: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    new["results"][test] = {"outcome": outcome}
    assert f"now {outcome}" in "".join(compare(old, new).lost)


def test_a_test_of_the_suite_that_was_not_run_is_lost(old: dict[str, Any], new: dict[str, Any]) -> None:
    del new["results"][HELD]
    assert f"{HELD}: passed, now not run" in "".join(compare(old, new).lost)


def test_a_test_that_the_suite_has_no_more_is_not_lost(old: dict[str, Any], new: dict[str, Any]) -> None:
    old["results"]["test_gone.py::test_it"] = {"outcome": "passed"}
    found = compare(old, new)
    assert (found.lost, found.other) == ([], ("1 tests are gone from the suite",))


def test_a_test_that_came_with_the_suite(old: dict[str, Any], new: dict[str, Any]) -> None:
    new["results"]["test_come.py::test_a"] = {"outcome": "passed"}
    assert compare(old, new).lost == []
    new["results"]["test_come.py::test_b"] = WRONG
    assert "test_come.py::test_b: not in the older report, now failed" in "".join(compare(old, new).lost)


def test_many_tests_of_a_rule_are_told_by_the_first_and_those_that_failed(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    for test in UPSERTS:
        new["results"][test] = {"outcome": "skipped"}
    new["results"][UPSERTS[-1]] = WRONG
    rules = {rule.id: 0 for rule in RULES}
    for told in compare(old, new).lost:
        head, *lines = told.splitlines()
        rules[head.split()[1].rstrip(":")] += 1
        assert len(lines) <= 6
    assert max(rules.values()) == 1
    assert UPSERTS[-1] in "".join(compare(old, new).lost)


def test_a_feature_that_is_refused_now_is_told_once(old: dict[str, Any], new: dict[str, Any]) -> None:
    new["shown"]["upsert"] = "refused"
    for test in UPSERTS:
        new["results"][test] = {"outcome": "refused"}
    assert compare(old, new).lost == ["feature upsert: full, now refused"]
    assert compare(new, old).won == ["feature upsert: refused, now full"]


def test_a_feature_that_nothing_shows(old: dict[str, Any], new: dict[str, Any]) -> None:
    new["shown"]["upsert"], new["unproven"]["upsert"] = "not shown", "the harness has no hook"
    assert compare(old, new).lost == ["feature upsert: full, now not shown (the harness has no hook)"]
    del new["shown"]["upsert"]
    assert compare(new, old).won == ["feature upsert: not asked, now full"]


@pytest.mark.parametrize(
    ("before", "now", "lost", "won"),
    [
        ("conformant", "conformant-with-unseen-effects", 1, 0),
        ("conformant-with-unseen-effects", "conformant-without-effects", 1, 0),
        ("conformant-without-effects", "partial", 1, 0),
        ("partial", "fail", 1, 0),
        ("partial", "conformant-without-effects", 0, 1),
        ("fail", "conformant", 0, 1),
        ("fail", "partial", 0, 0),
    ],
)
def test_verdicts(before: str, now: str, lost: int, won: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    old["verdict"], new["verdict"] = before, now
    found = compare(old, new)
    assert (len(found.lost), len(found.won)) == (lost, won)


def test_a_weaker_delivery_is_lost(old: dict[str, Any], new: dict[str, Any]) -> None:
    new["delivery"] = "idempotent-upsert"
    assert compare(old, new).lost == ["delivery: exactly-once, now idempotent-upsert"]
    assert compare(new, old).won == ["delivery: idempotent-upsert, now exactly-once"]


def test_what_may_be_the_reason_is_told_and_not_lost(old: dict[str, Any], new: dict[str, Any]) -> None:
    new.update(suite="laketier==0.2.0", lanes=["bare"], options=[], not_interposed=["io_uring"])
    new["versions"].update({"python": "3.13.1", "libacme": "3"})
    new["interposed"], new["places"] = {"write": 3}, {"store": 3}
    found = compare(old, new)
    assert found.lost == []
    assert found.other == (
        "suite: laketier==0.1.0, now laketier==0.2.0",
        "python: 3.11.7, now 3.13.1",
        "libacme: none, now 3",
        "lanes: bare spark-dataframe spark-split, now bare",
        "options: --lake-seed=1, now none",
        "no longer interposed: fsync",
        "no longer a place of effects: warehouse",
        "not interposed: io_uring",
    )


def test_reports_of_two_formats(old: dict[str, Any], new: dict[str, Any]) -> None:
    new["format"] = "other"
    with pytest.raises(NoReport, match="of two formats, acme and other"):
        compare(old, new)


NO_REPORTS = {
    "is no report: it is no JSON": "{",
    "is no report: it is no JSON ": "[" * 100_000,
    "is no report: write one": "[]",
    "is no report: write one ": '{"a": 1}',
    "is a report of version 1": '{"report": 1, "results": {}}',
    "has no results of single tests": '{"report": 2, "format": "acme"}',
    "its versions is missing": '{"report": 2, "results": {}}',
}


@pytest.mark.parametrize("why", NO_REPORTS)
def test_a_file_that_is_no_report(why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.json"
    file.write_text(NO_REPORTS[why])
    assert main([str(file), str(file)]) == 2
    said = capsys.readouterr()
    assert why.strip() in said.err
    assert (said.out, len(said.err.splitlines())) == ("", 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [("verdict", "fine"), ("delivery", "at-least-once"), ("results", {"a": 1}), ("results", {"a": {}}), ("lanes", {})],
)
def test_a_field_of_another_kind_is_named(field: str, value: Any, old: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(old | {field: value}))
    with pytest.raises(NoReport, match=f"its {field} is missing, or is none of this laketier"):
        read(tmp_path / "x.json")


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "a.json"), str(tmp_path)]) == 2
    assert "No such file" in capsys.readouterr().err


def test_as_a_command_in_a_terminal_of_ascii(old: dict[str, Any], new: dict[str, Any], tmp_path: Path) -> None:
    """The words of a report may be anybody's, and act upon no terminal."""
    new["results"][HELD] = {**WRONG, "detail": "found \x1b[2J ünï \ud800"}
    for name, report in (("old.json", old), ("new.json", new)):
        (tmp_path / name).write_text(json.dumps(report))
    command = [sys.executable, "-m", "laketier_conformance.compare", "old.json", "new.json"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (1, "")
    first, *_, last = done.stdout.splitlines()
    assert first == "acme: acme-lake==1.0 of 2026-11-20, now acme-lake==1.0 of 2026-11-20"
    assert last == "1 lost, 0 won"
    assert r"found \x1b[2J ünï \ud800" in done.stdout
    done = subprocess.run([*command[:-1], "old.json"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 lost, 0 won")
