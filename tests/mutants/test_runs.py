"""A run goes on where another ended, and what it found is true."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from laketier.config import from_environment
from laketier_conformance.manifest import expected_tests
from laketier_verification.mutants import recall, report
from laketier_verification.mutants.asked import Asked
from laketier_verification.mutants.page import INDEX, pages
from laketier_verification.mutants.patching import HOOKED
from laketier_verification.mutants.recall import mended, recalled
from laketier_verification.mutants.report import Score, Told
from laketier_verification.mutants.results import KILLED, NEAR, SURVIVED, Result, Results, drawn
from laketier_verification.mutants.rules import OTHER, rule_of
from laketier_verification.mutants.sample import NotFinished, Sample, interval
from laketier_verification.mutants.source import Module
from laketier_verification.mutants.summary import (
    SUMMARIES,
    LostCommit,
    Summary,
    Survivor,
    refuse_lost_commit,
    summaries,
)
from laketier_verification.mutants.survivors import (
    UNASKED,
    Argued,
    AskedSince,
    Beyond,
    argued,
    asked_since,
    beyond,
    stale,
)
from laketier_verification.mutants.targets import ROOT, TARGETS, Target

BROKEN = """\
import os

def limit(value):
    if value > 3:
        raise ValueError(value)
    os.getpid()
    return value

def loop(value):
    while value > 0:
        value -= 1
    return value

def unused(value):
    return value + 1
"""
TESTS = """\
import subprocess
import sys
import pytest
import broken

def test_limit():
    assert broken.limit(2) == 2
    with pytest.raises(ValueError):
        broken.limit(4)

def test_loop():
    assert broken.loop(2) == 0

def test_in_another_process():
    code = "import broken; assert broken.limit(3) == 3 and broken.unused(1) == 2"
    subprocess.run([sys.executable, "-c", code], check=True)
"""
RUN = """\
import json, sys
import pytest
from pathlib import Path
from laketier_verification.mutants import loop
from laketier_verification.mutants.results import Results, drawn
from laketier_verification.mutants.source import Module
loop._PATIENCE = 1.0
module = Module("broken", Path("broken.py").absolute())
told = []
mutants = drawn(module.mutants, 1)
run = loop.Loop({"broken": module}, mutants[:int(sys.argv[1])], Results(Path("results.jsonl")), seconds=60, near=False,
    file=Path("profile.json"), tell=told.append, asked=sys.argv[2], together=bool(sys.argv[2]))
pytest.main(["-q", "-s", "-p", "no:cacheprovider", "test_broken.py"], plugins=[run])
if run.broken is not None:
    raise run.broken
"""


@pytest.fixture
def module(tmp_path: Path) -> Module:
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    (tmp_path / "test_broken.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    return Module("broken", tmp_path / "broken.py")


def lines(folder: Path, count: int, asked: str = "") -> list[str]:
    subprocess.run(
        [sys.executable, "-c", RUN, str(count), asked],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        env={"PATH": "/bin:/usr/bin", "PYTHONPATH": str(folder)},
    )
    return (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()


def test_first_tests_alone_and_none_alone_are_refused_together() -> None:
    """Nothing would be tried, without a word."""
    command = [sys.executable, "-m", "laketier_verification.mutants", "feather", "--near", "--together"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (ended.returncode, "leave one of them out" in ended.stderr) == (2, True), ended.stderr


@pytest.mark.deep
def test_a_run_of_some_tests_together(tmp_path: Path, module: Module) -> None:
    """Who was asked by them alone still waits for all the others."""
    lines(tmp_path, 1000, asked="in_another_process")
    some = {result.key: result for result in Results(tmp_path / "results.jsonl").of({"broken": module})}
    assert set(some) == {mutant.key for mutant in module.mutants}
    assert {result.outcome for result in some.values()} == {KILLED, NEAR}
    assert {result.by.rpartition("::")[2] for result in some.values() if result.noticed} == {"test_in_another_process"}
    lines(tmp_path, 1000)
    whole = {result.key: result for result in Results(tmp_path / "results.jsonl").of({"broken": module})}
    left = {(key.function, key.after) for key, result in whole.items() if result.outcome == SURVIVED}
    assert left == {("limit", "pass"), ("loop", "value -= 2")}
    assert all(whole[key] == result for key, result in some.items() if result.noticed)


@pytest.mark.deep
def test_one_that_hides_another_is_noticed_later_than_that(tmp_path: Path, module: Module) -> None:
    """Both are tried at once, and the test that would notice the one passes with the other, until that has left."""
    hiding = """
def quick(value):
    return value - 1

def is_usable():
    return True

def answer(value):
    return quick(value) if is_usable() else slow(value)

slow = (-1).__add__
"""
    tests = """
import time
import broken

def test_answer():
    assert broken.answer(4) == 3

def test_usable():
    began = time.monotonic()
    while time.monotonic() < began + 0.3:
        pass
    assert broken.is_usable()
"""
    module.file.write_text(hiding, encoding="utf-8")
    (tmp_path / "test_broken.py").write_text(tests, encoding="utf-8")
    lines(tmp_path, 1000, asked="test_")
    found = {
        each.key: each for each in Results(tmp_path / "results.jsonl").of({"broken": Module("broken", module.file)})
    }
    survivors = {(key.function, key.after) for key, result in found.items() if not result.noticed}
    assert survivors == {
        ("answer", "return quick(value) if not is_usable() else slow(value)"),
        ("answer", "return quick(value) if is_usable() else value"),
    }, "which answer as the right one does"


def test_a_run_and_the_one_after(tmp_path: Path, module: Module) -> None:
    first = lines(tmp_path, 4)
    # A run that was killed as it wrote leaves half a line.
    (tmp_path / "results.jsonl").write_text("\n".join([*first, first[0][:20]]), encoding="utf-8")
    whole = lines(tmp_path, 1000)
    assert whole[: len(first)] == first
    results = {result.key: result for result in Results(tmp_path / "results.jsonl").of({"broken": module})}
    assert set(results) == {mutant.key for mutant in module.mutants}
    finals = [json.loads(line)["key"] for line in whole if line.endswith("}") and f'"{NEAR}"' not in line]
    assert len(finals) == len(module.mutants), "each is tried once"

    survivors = {(key.function, key.after) for key, result in results.items() if not result.noticed}
    assert survivors == {("limit", "pass"), ("loop", "value -= 2")}, "os.getpid() does nothing, and 2 is even"
    by = {(key.function, key.after): result.by.rpartition("::")[2] for key, result in results.items()}
    assert by["limit", "if value > 4:"] == "test_limit"
    assert by["limit", "if value >= 3:"] == "test_in_another_process", (
        "an interpreter that a test starts has the mutant"
    )
    assert by["unused", "return value"] == "test_in_another_process", "so does one whose function nobody else calls"
    endless = [key for key, result in results.items() if result.outcome == "timed out"]
    assert {key.function for key in endless} == {"loop"}

    recorded = [json.loads(line) for line in (tmp_path / "profile.json").read_text(encoding="utf-8").splitlines()[1:]]
    reached = {each["test"].rpartition("::")[2]: each["lines"]["broken"] for each in recorded}
    limit, loop, unused = [4, 5, 6, 7], [10, 11, 12], [15]
    assert reached == {
        "test_limit": limit,
        "test_loop": loop,
        "test_in_another_process": sorted({*limit, *unused} - {5}),
    }
    assert not any(each["blind"] for each in recorded), "an interpreter that a test starts tells what it runs"


@pytest.mark.deep
def test_a_test_that_is_disturbed_by_what_is_recorded(tmp_path: Path, module: Module) -> None:
    """As one that looks at all that processes write. It is asked of each mutant, since nobody saw what it runs."""
    disturbed = """
def test_disturbed():
    code = "import broken, os; assert broken.limit(2) == 2 and 'LINES_OF_LAKETIER' not in os.environ"
    subprocess.run([sys.executable, "-c", code], check=True)
"""
    (tmp_path / "test_broken.py").write_text(TESTS + disturbed, encoding="utf-8")
    lines(tmp_path, 1)
    recorded = [json.loads(line) for line in (tmp_path / "profile.json").read_text(encoding="utf-8").splitlines()[1:]]
    last = {each["test"].rpartition("::")[2]: (each["passed"], each["blind"]) for each in recorded}
    assert last.pop("test_disturbed") == (True, True)
    assert set(last.values()) == {(True, False)}


@pytest.mark.deep
def test_a_fixture_that_tests_share(tmp_path: Path, module: Module) -> None:
    """Its lines and its time are those of each test that has it: the first one need not be the one that notices."""
    shared = """
import time
import pytest
import broken

@pytest.fixture(scope="module")
def number():
    began = time.monotonic()
    while time.monotonic() < began + 0.2:
        pass
    return broken.unused(1)

@pytest.fixture(scope="module")
def made(number):
    return broken.limit(number)

def test_made(made):
    assert isinstance(made, int)

def test_which(made):
    assert made == 2

def test_number(number):
    assert broken.loop(number) == 0
"""
    (tmp_path / "test_broken.py").write_text(shared, encoding="utf-8")
    lines(tmp_path, 1000)
    recorded = [json.loads(line) for line in (tmp_path / "profile.json").read_text(encoding="utf-8").splitlines()[1:]]
    reached = {each["test"].rpartition("::")[2]: each["lines"]["broken"] for each in recorded}
    limit, loop, unused = [4, 6, 7], [10, 11, 12], [15]
    assert reached == {
        "test_made": [*limit, *unused],
        "test_which": [*limit, *unused],
        "test_number": [*loop, *unused],
    }
    assert all(each["seconds"] >= 0.2 for each in recorded), "whichever is the first waits for it"
    results = {result.key: result for result in Results(tmp_path / "results.jsonl").of({"broken": module})}
    by = {(key.function, key.after): result.by.rpartition("::")[2] for key, result in results.items()}
    assert by["unused", "return value"] == "test_which"


@pytest.mark.deep
def test_a_library_that_warns_of_forks_makes_no_mutant_noticed(tmp_path: Path, module: Module) -> None:
    """Its warning is an error that pytest keeps, and every later fork's first test once failed by it."""
    hook = "import os, warnings\nos.register_at_fork(before=lambda: warnings.warn('forks'))\n"
    module.file.write_text(hook + BROKEN, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\nfilterwarnings = error\n", encoding="utf-8")
    lines(tmp_path, 1000)
    results = Results(tmp_path / "results.jsonl").of({"broken": Module("broken", module.file)})
    survivors = {(each.key.function, each.key.after) for each in results if not each.noticed}
    assert survivors == {("limit", "pass"), ("loop", "value -= 2")}


@pytest.mark.deep
def test_a_test_that_needs_another_one_notices_nothing(tmp_path: Path, module: Module) -> None:
    """It passes after the other one, as all tests run once without a mutant, and a mutant meets it alone."""
    needing = """
import broken
made = []

def test_makes():
    made.append(broken.limit(2))

def test_needs():
    assert made and broken.unused(1)
"""
    (tmp_path / "test_broken.py").write_text(needing, encoding="utf-8")
    assert outcomes(tmp_path, module, "unused") == {SURVIVED}
    (tmp_path / "results.jsonl").unlink()
    assert outcomes(tmp_path, module, "unused", asked="test_") == {NEAR}, "nor of many at once"


@pytest.mark.deep
def test_a_test_that_fails_now_and_then_notices_nothing(tmp_path: Path, module: Module) -> None:
    """Not the second time that it runs: then the first mutant meets it."""
    seldom = """
from pathlib import Path
import broken

def test_seldom():
    with Path("times").open("a+") as times:
        times.write(".")
        times.seek(0)
        assert broken.unused(1) and times.read() != ".."
"""
    (tmp_path / "test_broken.py").write_text(seldom, encoding="utf-8")
    assert outcomes(tmp_path, module, "unused") == {SURVIVED}


def outcomes(folder: Path, module: Module, function: str, asked: str = "") -> set[str]:
    lines(folder, 1000, asked)
    found = Results(folder / "results.jsonl").of({"broken": module})
    return {result.outcome for result in found if result.key.function == function}


def test_results_of_another_text_do_not_count(tmp_path: Path, module: Module) -> None:
    mutant = module.mutants[0]
    results = Results(tmp_path / "results.jsonl")
    results.add(Result(mutant.key, module.digest(mutant.key.function), 1, KILLED, by="t.py::test"))
    assert [each.line for each in results.of({"broken": module})] == [mutant.line]
    assert not list(Results(tmp_path / "none.jsonl").of({"broken": module}))
    module.file.write_text(BROKEN.replace("    os.getpid()\n", "    os.getppid()\n"), encoding="utf-8")
    assert not list(results.of({"broken": Module("broken", module.file)}))


def test_a_later_result_replaces_an_earlier_one(tmp_path: Path, module: Module) -> None:
    mutant = module.mutants[0]
    results = Results(tmp_path / "results.jsonl")
    for outcome in (NEAR, SURVIVED, KILLED):
        results.add(Result(mutant.key, module.digest(mutant.key.function), 1, outcome))
    [last] = Results(tmp_path / "results.jsonl").of({"broken": module})
    assert last.noticed


def test_the_order_is_the_same_for_the_same_seed(module: Module) -> None:
    assert drawn(module.mutants, 1) == drawn(reversed(module.mutants), 1)
    assert drawn(module.mutants, 1) != drawn(module.mutants, 2)


def test_a_summary_outlives_the_results(tmp_path: Path, module: Module) -> None:
    results = Results(tmp_path / "results.jsonl")
    for mutant, outcome in zip(module.mutants, (SURVIVED, NEAR, KILLED), strict=False):
        results.add(Result(mutant.key, module.digest(mutant.key.function), 1, outcome))
    first, second = (mutant.key for mutant in module.mutants[:2])
    told = Told.of("tiering", {"broken": module}, results, [_about(first)])
    Summary.of(told).write(tmp_path)
    other = (tmp_path / "tiering.json").read_text(encoding="utf-8")
    Summary.of(replace(told, name="spi")).write(tmp_path)
    assert (tmp_path / "tiering.json").read_text(encoding="utf-8") == other, "a run rewrites its own target alone"

    spi, tiering = sorted(summaries(tmp_path), key=lambda each: each.target)
    assert spi.scores == tiering.scores
    assert tiering.score == told.score
    assert (tiering.mutants, tiering.waiting) == (len(module.mutants), 1)
    assert {(each.before, each.after, each.why) for each in tiering.survivors} == {
        (first.before, first.after, "it does nothing"),
        (second.before, second.after, ""),
    }
    made = pages(tmp_path)
    assert set(made) == {INDEX, "tiering", "spi"}
    assert all(f"]({name}.md)" in made[INDEX] for name in ("tiering", "spi"))


def test_a_sample_tells_of_what_was_drawn_alone(
    tmp_path: Path, module: Module, capsys: pytest.CaptureFixture[str]
) -> None:
    """And of nothing before each survivor has met all tests: those that wait may be noticed yet."""
    order, results, sample = drawn(module.mutants, 7), Results(tmp_path / "results.jsonl"), Sample(3, 7)

    def found(number: int, outcome: str) -> None:
        key = order[number].key
        results.add(Result(key, module.digest(key.function), 1, outcome))

    def told(*, at_least: bool = False) -> Told:
        return Told.of("tiering", {"broken": module}, results, [], sample, at_least=at_least)

    for number, outcome in ((0, KILLED), (1, NEAR), (3, SURVIVED), (4, SURVIVED)):
        found(number, outcome)
    with pytest.raises(NotFinished, match=r"2 of the 3 mutants drawn by seed 7 .* --sample 3 --seed 7"):
        told()
    with pytest.raises(NotFinished, match=r"1 of the 3 mutants"):
        told(at_least=True)
    found(2, KILLED)
    Summary.of(told(at_least=True)).write(tmp_path)
    low, _ = told(at_least=True).score.interval
    made = pages(tmp_path)["tiering"]
    assert f"Noticed: at least 2 of 3, so at least {low:.0f} % of all, with 95% confidence." in made
    report.show(told(at_least=True))
    assert f"1 of the survivors have not met all tests yet: at least {low:.1f} % of all" in _said(capsys)
    found(1, SURVIVED)
    assert (told().score.tried, told().score.noticed, told().total) == (3, 2, len(module.mutants))
    Summary.of(told()).write(tmp_path)
    [summary] = summaries(tmp_path)
    assert summary.sample == sample
    low, high = summary.score.interval
    made = pages(tmp_path)["tiering"]
    assert f"Noticed: 2 of 3, so between {low:.0f} and {high:.0f} % of all, with 95% confidence." in made
    report.show(told())
    assert f"each met all tests: between {low:.1f} and {high:.1f} % of all" in _said(capsys)


def _said(capsys: pytest.CaptureFixture[str]) -> str:
    """On one line, however wide the terminal is."""
    return " ".join(capsys.readouterr().out.split())


def test_a_sample_tells_of_those_before_it(tmp_path: Path, module: Module) -> None:
    """By the tool's `--docs`, which writes over the summary of the sample before."""
    results = Results(tmp_path / "results.jsonl")
    for mutant in module.mutants:
        results.add(Result(mutant.key, module.digest(mutant.key.function), 1, SURVIVED))
    for seed in (1, 2, 3):
        told = Told.of("tiering", {"broken": module}, results, [], Sample(3, seed))
        made = Summary.of(told)
        for _ in range(2):  # the same sample, told twice, is not told as one before itself
            made = made.after(summaries(tmp_path)[0]) if seed > 1 else made
            made.write(tmp_path)
    [summary] = summaries(tmp_path)
    assert [each.sample.seed for each in summary.earlier] == [1, 2]
    low, high = summary.score.interval
    for seed in (1, 2, 3):
        assert (
            f"| seed {seed} | {summary.commit[:8]}, {summary.date} | 3 | 0 | 0 | 0.0 % | {low:.0f} to {high:.0f} % |"
            in pages(tmp_path)["tiering"]
        )


def test_a_sample_of_another_format_that_notices(
    tmp_path: Path, module: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts for what was drawn, and its survivors have still to meet the target's own tests."""
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    monkeypatch.setattr(Target, "modules", lambda _: {"broken": module})
    first, second, third = (mutant.key for mutant in drawn(module.mutants, 1)[:3])
    feather, localfile = (Results(tmp_path / f"{name}.jsonl") for name in ("feather", "localfile"))
    for results, key, outcome in (
        (feather, first, SURVIVED),
        (localfile, first, KILLED),
        (localfile, second, SURVIVED),
        (localfile, third, KILLED),
    ):
        results.add(Result(key, module.digest(key.function), 1, outcome))
    with pytest.raises(NotFinished, match="1 of the 2 mutants"):
        report.known_of("feather", Sample(2, 1))
    told = report.known_of("feather", Sample(1, 1))
    assert (told.score.tried, told.score.noticed, told.elsewhere) == (1, 1, {"localfile": 1})


def test_the_interval() -> None:
    """Against what the tables of Wilson's interval say."""
    assert [round(end, 1) for end in interval(95, 100)] == [88.8, 97.8]
    assert [round(end, 1) for end in interval(10, 10)] == [72.2, 100.0]
    assert [round(end, 1) for end in interval(0, 10)] == [0.0, 27.8]
    assert interval(0, 0) == (0.0, 100.0), "nothing is known"


def test_the_pages_are_made_of_the_summaries() -> None:
    made = pages()
    assert {page.stem for page in SUMMARIES.glob("*.md")} == set(made)
    for name, text in made.items():
        assert (SUMMARIES / f"{name}.md").read_text(encoding="utf-8") == text


def test_one_format_that_notices_is_enough(tmp_path: Path, module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit is broken for all formats that stand on it."""
    first, second, third = (mutant.key for mutant in module.mutants[:3])
    feather, localfile = (Results(tmp_path / f"{name}.jsonl") for name in ("feather", "localfile"))
    for results, key, outcome in (
        (feather, first, SURVIVED),
        (feather, second, SURVIVED),
        (feather, third, KILLED),
        (localfile, first, KILLED),
    ):
        results.add(Result(key, module.digest(key.function), 1, outcome))
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    monkeypatch.setattr(Target, "modules", lambda _: {"broken": module})
    told = Told.of("feather", {"broken": module}, feather, [])
    assert (told.score.tried, told.score.noticed, told.elsewhere) == (3, 2, {"localfile": 1})
    assert [each.key for each in told.unargued] == [second]
    same = Told.of("localfile", {"broken": module}, localfile, [])
    assert same.score == told.score
    assert [each.outcome for each in same.unargued] == [NEAR], "localfile's tests are still to be asked"
    assert same.elsewhere == {"feather": 1}


@pytest.fixture
def same(module: Module, monkeypatch: pytest.MonkeyPatch) -> Module:
    """The module was the same at the summary's commit."""
    monkeypatch.setattr(recall, "_at", lambda *_: module)
    monkeypatch.setattr(Target, "modules", lambda _: {"broken": module})
    return module


def _told(tmp_path: Path, module: Module, count: int, *noticed: int) -> Told:
    """So many mutants were tried, and those of these numbers were noticed."""
    results = Results(tmp_path / f"{count}-{noticed}.jsonl")
    for number, mutant in enumerate(module.mutants[:count]):
        outcome = KILLED if number in noticed else SURVIVED
        results.add(Result(mutant.key, module.digest(mutant.key.function), 1, outcome))
    return Told.of("tiering", {"broken": module}, results, [])


def test_a_run_goes_on_from_a_summary_of_all(tmp_path: Path, same: Module) -> None:
    keys = [mutant.key for mutant in same.mutants]
    summary = Summary.of(_told(tmp_path, same, len(keys), *range(2, len(keys))))
    found = {result.key: result for result in recalled(summary, {"broken": same})}
    assert {key for key, result in found.items() if result.outcome == NEAR} == set(keys[:2])
    assert {key for key, result in found.items() if result.noticed} == set(keys[2:])
    assert {result.digest for result in found.values()} == {same.digest(key.function) for key in keys}


def test_a_summary_of_some_tells_survivors_alone(tmp_path: Path, same: Module) -> None:
    summary = Summary.of(_told(tmp_path, same, 3, 1))
    found = {result.key: result.outcome for result in recalled(summary, {"broken": same})}
    assert found == {same.mutants[0].key: NEAR, same.mutants[2].key: NEAR}


def test_what_was_changed_since_is_not_recalled(tmp_path: Path, same: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = Summary.of(_told(tmp_path, same, len(same.mutants), 1))
    file = tmp_path / "before.py"
    file.write_text(BROKEN.replace("value > 3", "value > 2"), encoding="utf-8")
    monkeypatch.setattr(recall, "_at", lambda *_: Module("broken", file))
    assert {result.key.function for result in recalled(summary, {"broken": same})} == {"loop", "unused"}
    monkeypatch.setattr(recall, "_at", lambda *_: None)
    assert not list(recalled(summary, {"broken": same})), "the module was not there"


def test_a_summary_is_mended_by_what_was_noticed_since(tmp_path: Path, same: Module) -> None:
    """Of the survivors alone: of the others nobody knows whether they had been tried."""
    summary = Summary.of(_told(tmp_path, same, 3, 1))
    by_ours = [replace(each, ours=True) for each in summary.survivors]
    summary = replace(summary, survivors=by_ours, score=replace(summary.score, ours=len(by_ours)))
    now = mended(summary, _told(tmp_path, same, len(same.mutants), 0, 1, 4))
    assert now.score.ours == len(by_ours) - 1, "what the suite notices is not counted twice"
    assert (now.score.tried, now.score.noticed) == (3, 2)
    assert [each.before for each in now.survivors] == [same.mutants[2].key.before]
    for view in now.scores:
        assert sum(score.noticed for score in now.scores[view].values()) == 2, view


def test_a_summary_is_mended_by_what_became_of_its_survivors(tmp_path: Path, same: Module) -> None:
    """Two waited for tests. One has met all of them since, and our own tests notice it; the other one is argued."""
    results = Results(tmp_path / "results.jsonl")
    for number, mutant in enumerate(same.mutants[:3]):
        results.add(Result(mutant.key, same.digest(mutant.key.function), 1, KILLED if number == 1 else NEAR))
    told = Told.of("tiering", {"broken": same}, results, [])
    summary = Summary.of(told)
    assert (summary.waiting, summary.score.ours, summary.score.equivalent) == (2, 0, 0)
    assert mended(summary, told) == summary
    first, last = same.mutants[0].key, same.mutants[2].key
    results.add(Result(first, same.digest(first.function), 1, SURVIVED))
    since = Told.of("tiering", {"broken": same}, results, [_about(last)])
    ours = Result(first, same.digest(first.function), 1, KILLED)
    now = mended(summary, replace(since, ours={first: ours}))
    assert now.waiting == 1, "an argument is no test"
    assert (now.score.tried, now.score.noticed, now.score.ours, now.score.equivalent) == (3, 1, 1, 1)
    assert {(each.before, each.ours, each.why) for each in now.survivors} == {
        (first.before, True, ""),
        (last.before, False, "it does nothing"),
    }
    for view in now.scores:
        scores = now.scores[view].values()
        assert (sum(each.ours for each in scores), sum(each.equivalent for each in scores)) == (1, 1), view
    assert mended(now, replace(since, ours={first: ours})) == now, "twice is as once"
    older = replace(now, survivors=[replace(each, before="value += 0") for each in now.survivors])
    assert [each.gone for each in (*now.survivors, *mended(older, since).survivors)] == [False, False, True, True]


def test_the_module_of_a_commit() -> None:
    module = TARGETS["feather"].modules()["laketier.kit.durable"]
    with TemporaryDirectory() as folder:
        found = recall._at("HEAD", module, Path(folder))
        assert found is not None
        assert found.mutants, "a file of the repository"
        assert recall._at("0" * 40, module, Path(folder)) is None


def test_the_score(tmp_path: Path, module: Module) -> None:
    results = Results(tmp_path / "results.jsonl")
    for number, mutant in enumerate(module.mutants[:4]):
        results.add(Result(mutant.key, module.digest(mutant.key.function), 1, SURVIVED if number < 2 else KILLED))
    first, noticed = module.mutants[0].key, module.mutants[2].key
    entries = [_about(first), _about(noticed)]
    told = Told.of("broken", {"broken": module}, results, entries)
    assert (told.score.tried, told.score.noticed, told.score.equivalent) == (4, 2, 1)
    assert round(told.score.percent) == 67
    assert [each.key for each in told.unargued] == [module.mutants[1].key]
    assert [each.key for each in told.argued_and_noticed] == [noticed]


def test_an_argument_about_no_mutant_is_stale(module: Module) -> None:
    key = module.mutants[0].key
    gone = Argued("broken", "gone", key.operator, key.before, key.after, "it does nothing")
    assert stale([_about(key), gone], {"broken": module}) == [gone]
    without = Module(module.name, module.file, frozenset({key.function}))
    assert not stale([_about(key)], {"broken": without}), "another target has the function"


def test_a_survivor_that_no_test_notices_is_not_beyond_the_contract() -> None:
    """Somebody may say of any mutant that no suite can ask about it. A test of our own shows that it is a mistake."""
    summary = next(each for each in summaries() if each.target == "feather")
    one = Survivor("a", "b", "drop a call", "c()", "pass", ours=True)
    entry = Beyond("a", "b", "drop a call", "c()", "pass", "only one format has it", about="what one format has")
    unseen = replace(one, before="d()", ours=False)
    entries = [entry, replace(entry, before="d()")]
    asked = Asked.of(replace(summary, survivors=[one, unseen]), entries)
    assert [each.why for each in asked.unasked] == ["What one format has: only one format has it"]


def test_a_survivor_that_a_test_notices_since_counts_beside_the_draw() -> None:
    """The score of the draw stays as it is."""
    summary = next(each for each in summaries() if each.target == "feather")
    asked_then, gone = (Survivor("a", "b", "drop a call", f"{name}()", "pass") for name in "cd")
    left = [asked_then, replace(gone, gone=True), Survivor("a", "b", "drop a call", "e()", "pass", ours=True)]
    entry = AskedSince("a", "b", "drop a call", "c()", "pass", "It is called.", by="test_a.py::test_calls")
    drawn = replace(summary, survivors=left, score=Score(tried=10, noticed=6, equivalent=1, ours=1))
    asked = Asked.of(drawn, [Beyond("a", "b", "drop a call", "e()", "pass", "x", about="speed")], [entry])
    assert [each.why for each in asked.since] == ["It is called. (`test_a.py::test_calls`)"]
    assert (asked.percent, asked.percent_since) == (100 * 6 / 8, 100 * 7 / 7)


def test_what_asks_since_is_a_test_of_the_suite() -> None:
    known = expected_tests()
    assert not [entry for entry in asked_since() if entry.by not in known]


@pytest.mark.deep
@pytest.mark.parametrize("entries", [argued(), beyond()], ids=["argued", "beyond"])
def test_the_arguments_are_true_to_the_sources(entries: list[Argued]) -> None:
    named = {entry.module for entry in entries}
    modules = {
        name: module
        for target in TARGETS.values()
        for name, module in target.modules().items()
        if name in named and not module.without
    }
    assert named == set(modules)
    assert not stale(entries, modules)
    assert all(entry.why and "\n" not in entry.why for entry in entries)
    assert {entry.about for entry in entries if isinstance(entry, Beyond)} <= set(UNASKED)


def test_each_function_has_a_rule() -> None:
    assert rule_of("laketier.kit.manifests.committer", "ManifestCommitter.discard").startswith("orphans")
    assert rule_of("laketier.kit.durable", "create_exclusively") == "what is acknowledged is durable"
    assert rule_of("a", "b") == OTHER


def _about(key) -> Argued:  # type: ignore[no-untyped-def]
    return Argued(key.module, key.function, key.operator, key.before, key.after, "it does nothing", key.nth)


def test_a_mutant_in_the_environment_is_no_setting() -> None:
    """Else every test that reads settings from it would be left out, as one that fails without a mutant."""
    assert from_environment({HOOKED: "/folder"}) == {}


def test_a_summary_names_a_commit_of_main(tmp_path: Path) -> None:
    """Any other may get another name when it is rebased, and then nobody finds the code."""

    def git(*arguments: str) -> None:
        told = ("-c", "user.name=n", "-c", "user.email=e@example.org", *arguments)
        subprocess.run(["git", *told], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git("commit", "--allow-empty", "--message=first")
    refuse_lost_commit(tmp_path)
    git("checkout", "-b", "mine")
    refuse_lost_commit(tmp_path)
    git("commit", "--allow-empty", "--message=second")
    with pytest.raises(LostCommit, match="not in the history of main"):
        refuse_lost_commit(tmp_path)
    refuse_lost_commit(tmp_path, "no-such-branch")
