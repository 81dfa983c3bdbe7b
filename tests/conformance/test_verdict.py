"""From results to a verdict, and the rules around a run."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance_runs import FEATHER, HERE, Run, offered, suite_in
from laketier.registry import pages
from laketier.spi import FULL, Feature, PluginError, UnknownOutcome, unsupported
from laketier_conformance import failures
from laketier_conformance.failures import SAYS, again
from laketier_conformance.harness import supplied_for
from laketier_conformance.manifest import MANIFEST, collected_tests, expected_tests, name_of
from laketier_conformance.page import page
from laketier_conformance.proof import Proof
from laketier_conformance.shown import shown
from laketier_conformance.verdict import INTERPOSED, UNPROVEN, UNSEEN, Result, judge
from laketier_conformance.words import plainly

SOME = "test_serializer.py::test_a_result_travels_unchanged"
REFUSED = "test_indexing.py::test_indexing"
NAMES = ("a.py::one", "a.py::two")


def test_the_guide_is_where_the_author_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout, or among the files of a wheel."""
    link = "docs/authors/guide.md#7-the-source"
    assert pages.page(link) == link
    monkeypatch.setattr(pages, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(pages, "_DOCUMENTS", tmp_path / "share")
    assert pages.page(link) == link, "it is nowhere"
    (tmp_path / "share/docs/authors").mkdir(parents=True)
    (tmp_path / "share/docs/authors/guide.md").touch()
    assert pages.page(link) == f"{tmp_path}/share/docs/authors/guide.md#7-the-source"


def results(*outcomes: str) -> list[Result]:
    return [Result(name, outcome) for name, outcome in zip(NAMES, outcomes, strict=False)]


@pytest.mark.parametrize(
    ("outcomes", "code", "verdict"),
    [
        (("passed", "passed"), 0, "conformant"),
        (("passed", "refused"), 0, "conformant"),
        (("passed", "skipped"), 0, "partial"),
        (("passed", "not interposed"), 0, "conformant-without-effects"),
        (("skipped", "not interposed"), 0, "partial"),
        (("failed", "not interposed"), 1, "fail"),
        (("passed",), 0, "partial"),
        ((), 0, "fail"),
        ((), 5, "fail"),
        (("passed",), 1, "fail"),
        (("passed", "passed"), 1, "conformant"),
        (("passed", "failed"), 1, "fail"),
        (("skipped", "failed"), 1, "fail"),
        (("failed",), 1, "fail"),
        (("passed", "passed"), 2, "fail"),
        (("passed", "passed"), 3, "fail"),
    ],
)
def test_judge(outcomes: tuple[str, ...], code: int, verdict: str) -> None:
    judged = judge(results(*outcomes), NAMES, code)
    assert judged.name == verdict
    assert bool(judged.why) == (verdict != "conformant")


def test_a_run_that_was_broken_off_says_where() -> None:
    assert judge(results("passed"), NAMES, 2, [NAMES[1]]).why[-1] == f"pytest ended with exit code 2, in {NAMES[1]}"


@pytest.mark.parametrize(
    ("outcomes", "code", "verdict"),
    [
        (("passed", "passed"), 0, "conformant-with-unseen-effects"),
        (("passed", "not interposed"), 0, "conformant-with-unseen-effects"),
        (("not interposed", "passed"), 0, "conformant-without-effects"),
        (("skipped", "passed"), 0, "partial"),
        (("passed", "failed"), 1, "fail"),
    ],
)
def test_an_effect_that_is_not_seen_makes_a_weaker_verdict(outcomes: tuple[str, ...], code: int, verdict: str) -> None:
    """The second of two tests tells of one, whatever became of the test."""
    told = results(*outcomes)
    told[1].unseen["io_uring"] = None
    judged = judge(told, NAMES, code)
    assert judged.name == verdict
    assert "not interposed: io_uring" in judged.why


def test_a_test_that_nobody_knows_fails() -> None:
    judged = judge([*results("passed", "passed"), Result("a.py::three", "passed")], NAMES, 0)
    assert (judged.name, judged.why) == ("fail", ("not in the suite's MANIFEST: a.py::three",))


def phase(when: str = "call", outcome: str = "passed", **more: Any) -> pytest.TestReport:
    fields: dict[str, Any] = {"nodeid": "x", "location": ("x", 0, "x"), "keywords": {}, "longrepr": None, **more}
    return pytest.TestReport(outcome=outcome, when=when, **fields)  # type: ignore[arg-type]


def test_a_failing_teardown_fails_the_test() -> None:
    result = Result("x")
    for report in (phase("setup"), phase("call"), phase("teardown", "failed", longrepr="it leaked")):
        result.add(report, None)
    assert (result.outcome, result.detail) == ("failed", "teardown: it leaked")


@pytest.mark.parametrize(
    ("phases", "outcome"),
    [
        ([phase("setup"), phase("call"), phase("teardown")], "passed"),
        ([phase("setup"), phase("teardown")], "not run"),
        ([phase("setup"), phase("call", "rerun", longrepr="E"), phase("setup"), phase("call")], "failed"),
        ([phase("setup", "skipped", longrepr="S"), phase("teardown")], "skipped"),
        (
            [phase("setup", "skipped", longrepr="S", user_properties=[(INTERPOSED, "no seccomp")]), phase("teardown")],
            "not interposed",
        ),
        (
            [phase("setup"), phase("call", "skipped", longrepr="S", user_properties=[(UNSEEN, "s3")])],
            "not interposed",
        ),
    ],
)
def test_only_the_call_passes_a_test_and_only_at_once(phases: list[pytest.TestReport], outcome: str) -> None:
    result = Result(NAMES[0])
    for report in phases:
        result.add(report, None)
    assert result.outcome == outcome
    assert judge([result], NAMES[:1], 0).conformant == (outcome in ("passed", "not interposed"))


def test_a_failure_is_told_by_its_sentence() -> None:
    said = phase(outcome="failed", longrepr="E   assert False", user_properties=[(SAYS, "a replay adds no row")])
    result = Result("x")
    result.add(said, None)
    assert (result.outcome, result.detail) == ("failed", "a replay adds no row")


def test_a_failure_on_a_full_disk_says_so(tmp_path: Path) -> None:
    assert failures.no_room(tmp_path, least=0) == failures.no_room(tmp_path / "none", least=1 << 62) == ""
    assert f"are free in {tmp_path}, so run with --basetemp" in failures.no_room(tmp_path, least=1 << 62)


def test_an_imperative_xfail_is_no_refusal() -> None:
    report = phase("call", "skipped", longrepr="xfail")
    report.wasxfail = "reason: I would rather not"
    result = Result("x")
    result.add(report, "overwrite")
    assert result.outcome == "failed"


def test_each_feature_has_a_test() -> None:
    """That nothing shows a feature must not be the suite's own fault."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in MANIFEST.parent.glob("test_*.py"))
    marked = " ".join(re.findall(r"pytest\.mark\.(?:needs|shows)\(([^)]*)\)", text))
    lacking = [
        feature.value for feature in Feature if f"Feature.{feature.name}" not in marked.replace(",", " ").split()
    ]
    # Nothing here can show what is in somebody else's cloud: a test says so in the report.
    assert lacking == [], "mark a test with needs or shows"


def test_the_manifest_is_in_step() -> None:
    assert collected_tests("--lake-format=feather") == expected_tests(), (
        f"{MANIFEST.name} is out of step: run `python -m laketier_conformance.manifest feather`"
    )


@pytest.mark.parametrize("way", ["laketier_conformance/", "../x/site-packages/laketier_conformance/", ""])
@pytest.mark.parametrize("folder", [MANIFEST.parent, Path("/x")], ids=["ours", "others"])
def test_names_depend_on_the_path_alone(folder: Path, way: str) -> None:
    """A node id is relative to pytest's root, or to what pytest was called with."""
    name = name_of(folder / "test_a.py", f"{way}test_a.py::t[b/c::d]")
    assert name == ("test_a.py::t[b/c::d]" if folder == MANIFEST.parent else None)
    assert name_of(folder, way) is None


def test_the_pytest_plugin_imports_nothing_heavy() -> None:
    """It is loaded in every pytest run of whoever installed laketier."""
    code = (
        "import sys, pytest; before = set(sys.modules); import laketier_conformance.plugin;"
        "print(sorted(n for n in set(sys.modules) - before if not n.startswith('laketier_conformance')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def two_tests(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """A run of two tests, one of them of what the format refuses, and the folder in which it was to keep its tables."""
    folder = tmp_path_factory.mktemp("two-tests")
    kept = folder / "kept"
    more = [f"--lake-warehouse={kept}", f"--lake-page={folder / 'report.html'}"]
    return suite_in(folder)("feather", [SOME, REFUSED], arguments=more), kept


def test_a_run_that_left_tests_out_is_partial(two_tests: tuple[Run, Path]) -> None:
    """It runs under an author's own configuration, which does not know our markers."""
    run, _ = two_tests
    assert run.code == 1
    assert run.report["verdict"] == "partial"
    assert set(run.report["results"]) == {SOME, REFUSED}
    assert "verdict: partial" in run.output
    assert "not run: test_adoption.py::" in run.output


@pytest.mark.parametrize("root", ["/", "."])
def test_results_count_wherever_the_suite_is_run(run_suite, root: str) -> None:  # type: ignore[no-untyped-def]
    """pytest names tests in another way when its root is not above the package."""
    wrong, test = "wrong-counts", "test_rounds.py::test_the_counts_are_those_of_the_files"
    select = ["-k", f"{test.partition('::')[2]} or a_result_travels_unchanged"]
    select.append("--ignore-glob=*/laketier_conformance/test_[!rs]*.py")
    run = run_suite(wrong, offers={wrong: "wrong_counts"}, arguments=[f"--rootdir={root}", *select])
    assert {name: result["outcome"] for name, result in run.report["results"].items()} == {
        test: "failed",
        SOME: "passed",
    }
    assert run.report["verdict"] == "fail"


def test_a_run_without_results_fails(run_suite) -> None:  # type: ignore[no-untyped-def]
    run = run_suite("feather", [SOME], arguments=["-k", "nothing_has_this_name"])
    assert (run.code, run.report["verdict"]) == (1, "fail")
    assert "no results" in run.output


def test_what_the_report_says(two_tests: tuple[Run, Path]) -> None:
    report = two_tests[0].report
    assert report["plugin"] == "laketier-feather==0.1.0"
    assert report["suite"].startswith("laketier==")
    assert report["delivery"] == "exactly-once"
    assert report["report"] == 2
    assert report["versions"].keys() >= {"python", "system", "laketier", "pyarrow", "pytest", "laketier-feather"}
    assert report["seeds"] == {"schedules": [0, 19]}
    seconds = [each["seconds"] for each in report["results"].values()]
    assert min(seconds) > 0
    assert report["seconds"] == pytest.approx(sum(seconds), abs=0.1), "rounded to a tenth"
    assert datetime.fromisoformat(report["at"]).tzinfo is not None
    assert {feature for feature, each in report["shown"].items() if each != "not shown"} == {"indexing"}
    assert (report["shown"]["indexing"], report["conformant"]) == ("refused", False)
    assert report["features"]["overwrite"] == "full"
    assert report["features"]["indexing"] == "unsupported: the format is kept small"
    assert report["lanes"] == ["bare"]
    assert report["results"][SOME]["outcome"] == "passed"
    assert report["results"][REFUSED] == {
        "outcome": "refused",
        "detail": "indexing",
        "seconds": report["results"][REFUSED]["seconds"],
    }


ODD = "test_confinement.py::test_a_staged_file_that_is_another_one_is_not_published[cut]"


def test_tests_that_are_asked_for_give_no_verdict(run_suite) -> None:  # type: ignore[no-untyped-def]
    """What was not asked for is not listed."""
    run = run_suite("feather", arguments=[f"--lake-test={SOME}", "--lake-test=test_indexing.py"])
    assert (run.code, run.report["verdict"], run.report["as_asked"]) == (0, "partial", True), run.output
    of_indexes = {test for test in expected_tests() if test.startswith("test_indexing.py::")}
    assert set(run.report["results"]) == {SOME, *of_indexes}
    assert f"verdict: none, as only {1 + len(of_indexes)} of" in run.output
    assert "not run: " not in run.output


def of(command: str) -> str:
    """A command without the program, which is told by its path where a shell does not find it."""
    return command.partition(" conformance ")[2]


def test_steps_that_were_drawn_are_drawn_again() -> None:
    """By the seed of the run; other tests draw nothing from it."""
    drawn = ("--lake-steps=2", "--lake-seed=7")
    for file in ("test_dropped.py", "test_looks.py", "test_meanwhile.py", "test_operations.py", "test_store_faults.py"):
        assert of(again("f", f"{file}::test_a", drawn)).endswith("::test_a -- --lake-steps=2 --lake-seed=7")
    assert of(again("f", "test_rounds.py::test_a", drawn)).endswith("::test_a -- --lake-steps=2")
    assert of(again("f", "test_rounds.py::test_a", drawn[1:])).endswith("::test_a")


def test_a_test_that_failed_by_turns_is_run_again_without() -> None:
    turns = ("--lake-steps=2", "--lake-by-turns=test_rounds.py")
    assert of(again("f", "test_rounds.py::test_a", turns)).endswith("::test_a -- --lake-steps=2")


def test_an_error_says_what_it_comes_from() -> None:
    """A commit of which the outcome is unknown, as its method has an argument too few."""
    own = ValueError("its own")
    own.__cause__ = own
    for error, cause, because in (
        (UnknownOutcome("x"), TypeError("publish() takes 3"), "because of TypeError(publish() takes 3)"),
        (own, own, "found ValueError(its own)"),
    ):
        with pytest.raises(type(error)) as caught:
            raise error from cause
        assert failures.sentence_of(caught).endswith(because)


@pytest.mark.parametrize(
    ("explained", "more"),
    [
        ("assert 3 == 4", " (assert 3 == 4)"),
        ("assert <Table a> == <Table b>", " (assert <Table a> == <Table b>)"),
        ("assert not 'ArrowInvalid: a column is not in a file'", ""),
        ("assert (not 'x' or False)", ""),
        ("assert False", ""),
        ("", ""),
    ],
)
def test_an_assert_explains_only_what_its_sentence_does_not_say(explained: str, more: str) -> None:
    with pytest.raises(AssertionError) as caught:
        raise AssertionError(f"expected this\n{explained}")
    assert failures.sentence_of(caught) == f"expected this{more}"


def test_tests_of_a_lane_are_run_in_it_again() -> None:
    """Whatever the author's own configuration says; other tests are in each lane."""
    lanes = ("--lake-lanes=bare,spark-split",)
    assert of(again("f", "test_spark.py::test_a", lanes)) == f"f --test test_spark.py::test_a -- {lanes[0]}"
    assert of(again("f", "test_rounds.py::test_a", lanes)) == "f --test test_rounds.py::test_a"


def test_a_test_is_run_again_on_the_disk_of_its_warehouse(tmp_path: Path) -> None:
    """In a folder of its own each time: the one of the first run has tables."""
    kept = tmp_path / "it's a $HOME"
    command = again("f", "test_rounds.py::test_a", (f"--lake-warehouse={kept}",))
    words = f"printf '%s\\n' {of(command)}"
    said = [subprocess.run(words, shell=True, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    folders = [Path(each.splitlines()[-1].removeprefix("--lake-warehouse=")) for each in said]
    assert len(set(folders)) == 2
    for folder in folders:
        assert (folder.parent, folder.is_dir()) == (tmp_path, True)
        assert folder.name.startswith("it's a $HOME.")


@pytest.mark.parametrize("on_the_path", [False, True])
def test_the_command_is_found(on_the_path: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an environment that is not activated the shell knows no program, or another environment's."""
    programs = Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(programs if on_the_path else tmp_path))
    failures._program.cache_clear()
    assert shlex.split(again("f", "a.py::t"))[0] == ("laketier" if on_the_path else str(programs / "laketier"))
    failures._program.cache_clear()


def test_a_failure_says_how_to_run_it_again(run_suite, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The command is taken as it is printed, by a shell."""
    wrong, offers = "checks-names-alone", {"checks-names-alone": "checks_names_alone"}
    first = run_suite(wrong, offers=offers, arguments=[f"--lake-test={ODD}", f"--lake-test={SOME}"])
    failed = first.report["results"][ODD]
    assert {test: each["outcome"] for test, each in first.report["results"].items()} == {ODD: "failed", SOME: "passed"}
    assert (failed["rule"], failed["guide"].partition("#")[0]) == ("confinement", "docs/authors/guide.md")
    assert "rule   confinement: A result, a listing or a link" in first.output
    assert f"found  {failed['detail']}" in first.output
    assert f"again  {failed['again']}" in first.output
    assert of(failed["again"]) == f"{wrong} --test '{ODD}'"
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(map(str, [tmp_path / "offers", HERE / "wrong_plugins", FEATHER])),
    }
    command = f"{failed['again']} --report again.json -- -p no:cacheprovider -p no:hypothesispytest"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path, env=environment)
    again = json.loads((tmp_path / "again.json").read_text())
    assert list(again["results"]) == [ODD], done.stdout + done.stderr
    assert again["results"][ODD]["detail"] == failed["detail"]
    assert done.returncode == 1


@pytest.mark.parametrize(
    "test", ['a.py::t[it\'s a "name" with blanks]', "a.py::t[$HOME `x` \\ ; * [a]]", "a.py::t[-x]"]
)
def test_a_command_is_quoted(test: str) -> None:
    said = subprocess.run(f"printf '%s\\n' {again('f', test)}", shell=True, capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[1:] == ["conformance", "f", "--test", test]


def test_the_page_is_one_file_for_everybody(two_tests: tuple[Run, Path]) -> None:
    """It fetches nothing and runs nothing, has a language and a title, and its tables have heads."""
    said = (two_tests[1].parent / "report.html").read_text(encoding="utf-8")
    assert said.startswith('<!doctype html>\n<html lang="en">')
    assert "<title>Conformance of feather</title>" in said
    assert not re.search(r"<script|<link|<img|src=|href=|@import|url\(", said)
    assert "partial</strong>" in said
    assert said.count("<table>") == said.count("<caption>") == said.count("<thead>") >= 4
    assert SOME in said


def test_the_page_takes_all_words_for_text(two_tests: tuple[Run, Path]) -> None:
    report = json.loads(json.dumps(two_tests[0].report).replace("the format is kept small", "</td><script>1</script>"))
    failed = {"outcome": "failed", "seconds": 1, "detail": "<b>found</b>", "guide": "g", "again": "a '<i>'"}
    report["results"]["test_rounds.py::<u>[&]"] = failed
    made = page(report)
    assert "&lt;script&gt;" in made
    assert "<dd><code>&lt;b&gt;found&lt;/b&gt;</code></dd>" in made
    assert not re.search(r"<script|<b>|<u>|<i>", made)


def test_the_page_of_thousands_of_failures_has_its_tables_near(two_tests: tuple[Run, Path]) -> None:
    failed = {"outcome": "failed", "seconds": 1, "detail": "found"}
    report = {**two_tests[0].report, "results": {f"test_rounds.py::test_{number}": failed for number in range(3000)}}
    made = page(report)
    assert made.count("<section>") == 50
    assert "<li>2950 more failed: see the table of all tests</li>" in made
    assert "test_rounds.py::test_2999" in made


def leaves(document: object) -> Iterator[str]:
    """All texts in it, keys among them."""
    if isinstance(document, dict):
        yield from (text for pair in document.items() for each in pair for text in leaves(each))
    elif isinstance(document, list):
        yield from (text for each in document for text in leaves(each))
    elif isinstance(document, str):
        yield document


def test_a_page_has_all_that_a_report_says(two_tests: tuple[Run, Path]) -> None:
    report = dict(two_tests[0].report)
    report |= {
        "unproven": {"upsert": "no key", "damaged files": "the table has no file"},
        "unknown_features": ["teleport"],
        "not_interposed": ["mapped memory"],
        "strides": ["each fifth"],
        "why": ["not run: some"],
    }
    made = html.unescape(page(report))
    told = {key: value for key, value in report.items() if key != "results"}
    missing = {text for each in told.values() for text in leaves(each) if text not in made}
    assert missing == set()


def test_a_python_without_asserts_is_refused(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-O",
        "-m",
        "pytest",
        "--assert=plain",
        "--lake-format=localfile",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "run it without -O and PYTHONOPTIMIZE" in done.stdout + done.stderr


def test_words_of_others_are_plain() -> None:
    """In one line that no terminal acts upon, that each file can hold, and that has no password."""
    words = {"\x1b[2J\r": ["a\nb", ("\udc80 \u202e",)], "url": "postgresql://me:hunter2@host", "long": "x" * 10_000_000}
    told = plainly(words)
    assert told["\\x1b[2J\\r"] == ["a\\nb", ("\\udc80 \\u202e",)]
    assert told["url"] == "postgresql://me:***@host"
    assert len(told["long"]) == 1000
    names = expected_tests()
    assert plainly(names) == names
    assert plainly([again("f", name) for name in names]) == [again("f", name) for name in names]


def test_a_report_of_wild_words_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever a plugin declares, and its tests end in; as a whole, and beside what else is in the folder. A name of a
    file may be as long as names can be."""
    wild = "\x1b[2J\udc80\n<b>" + "x" * 10_000
    proof = Proof("localfile", ("bare",), NAMES)
    features = {**proof.plugin.features, Feature.INDEXING: unsupported(wild), wild: FULL}
    monkeypatch.setattr(type(proof.plugin), "features", features)
    proof.add(NAMES[0], phase("call", "skipped", longrepr=("file", 1, wild)), None)
    proof.add(NAMES[1], phase("call", "failed", longrepr=wild, user_properties=[(UNPROVEN, f"{wild}: {wild}")]), None)
    proof.close(1)
    written = tmp_path / ("r" * 250 + ".json")
    proof.write(written)
    proof.write_page(tmp_path / "report.html")
    terminal = SimpleNamespace(section=print, line=lambda text, **_: print(text))
    proof.tell(terminal)
    told = written.read_text() + (tmp_path / "report.html").read_text() + capsys.readouterr().out
    assert "\x1b" not in told
    assert max(map(len, told.splitlines())) < 3000
    assert {file.name for file in tmp_path.iterdir()} == {written.name, "report.html"}


def test_what_is_shown_of_a_feature() -> None:
    plugin = SimpleNamespace(features={Feature.UPSERT: FULL, Feature.OVERWRITE: FULL, Feature.HISTORY: FULL})
    told = [
        Result("a", "passed", features=("upsert", "overwrite")),
        Result("b", "failed", features=("overwrite",)),
        Result("c", "refused", features=("indexing",)),
        Result("d", "passed", features=("history",)),
        Result("e", "skipped", features=("vectors",)),
    ]
    seen = shown(plugin, told, {"history": "no server here"})  # type: ignore[arg-type]
    named = {name: seen[name] for name in ("upsert", "overwrite", "indexing", "history", "vectors", "bucketing")}
    assert list(named.values()) == ["full", "failed", "refused", "not shown", "not shown", "not shown"]


def test_several_formats_in_one_run_on_several_processes(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Each has its own results, verdict and report, and the failure of one is none of the other's. A test that ends
    its process is reported by its node id alone, and is a failure of its format."""
    tests = ["test_rounds.py::test_the_counts_are_those_of_the_files", SOME]
    offers = {"correct": "correctly_made", "wrong-counts": "wrong_counts", "ends-its-process": "ends_its_process"}
    run = run_suite(",".join(offers), tests, offers=offers, arguments=["-n", "2", "--dist", "loadfile"])
    assert run.code == 1
    outcomes = {
        name: [report["results"].get(test, {}).get("outcome") for test in tests] for name, report in run.reports.items()
    }
    assert outcomes == {
        "correct": ["passed", "passed"],
        "wrong-counts": ["failed", "passed"],
        "ends-its-process": ["failed", "passed"],
    }, run.output
    crashed = run.reports["ends-its-process"]["results"][tests[0]]
    assert crashed["detail"].startswith(f"the process ended in {tests[0]} (worker 'gw")
    assert f"found  {crashed['detail']}" in run.output
    assert f"again  {crashed['again']}" in run.output
    assert [report["verdict"] for report in run.reports.values()] == ["fail", "fail", "fail"]
    assert [report["format"] for report in run.reports.values()] == list(offers)


def test_a_format_that_is_not_there(run_suite, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The report of an earlier run does not survive as if it were of this one."""
    (tmp_path / "report.json").write_text(json.dumps({"verdict": "conformant"}))
    run = run_suite("fether", [SOME])
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "Did you mean 'feather'?" in run.output
    assert run.report == {}


def test_a_plugin_without_features_is_a_usage_error(run_suite, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "offers").mkdir()
    (tmp_path / "offers" / "shy.py").write_text(
        "from crooked import CrookedPlugin\n"
        "from laketier.registry import hookimpl\n"
        "@hookimpl\n"
        "def laketier_format():\n"
        "    return CrookedPlugin('shy', features=None)\n"
    )
    run = run_suite("shy", [SOME], offers={"shy": "shy"})
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "does not declare its features" in run.output


def test_a_harness_sets_up_and_tears_down(run_suite, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "offers").mkdir()
    (tmp_path / "offers" / "my_harness.py").write_text(
        "from pathlib import Path\n"
        "from laketier_conformance.harness import Warehouse\n"
        "class Harness:\n"
        "    def setup(self, folder):\n"
        "        return Warehouse(str(folder / 'set-up-by-me'))\n"
        "    def teardown(self, warehouse):\n"
        f"        Path({str(tmp_path / 'torn-down')!r}).write_text(warehouse.location)\n"
    )
    harnesses = {"correct": "my_harness:Harness"}
    run = run_suite("correct", [SOME], offers={"correct": "correctly_made"}, harnesses=harnesses)
    assert run.outcome(SOME) == "passed", run.output
    assert (tmp_path / "torn-down").read_text().endswith("set-up-by-me")


@pytest.mark.parametrize(
    ("text", "points", "why"),
    [
        ("x = 1", ("my_harness:Harness",), "AttributeError: module 'my_harness' has no attribute 'Harness'"),
        ("raise RuntimeError('no server')", ("my_harness:Harness",), "RuntimeError: no server"),
        ("class Harness:\n    def tear_down(self, warehouse): ...", ("my_harness:Harness",), "Call it 'teardown'"),
        ("class Harness: ...", ("my_harness:Harness", "my_harness:Another"), "two harnesses are offered"),
    ],
)
def test_a_harness_that_can_not_be_used_ends_the_run_at_once(
    text: str, points: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not each test of the suite by itself."""
    for number, point in enumerate(points):
        offered(tmp_path / str(number), {}, {"mine": point})
        (tmp_path / str(number) / "offers-1.0.dist-info").rename(
            tmp_path / str(number) / f"offers{number}-1.0.dist-info"
        )
        monkeypatch.syspath_prepend(tmp_path / str(number))
    (tmp_path / "0" / "my_harness.py").write_text(text)
    monkeypatch.delitem(sys.modules, "my_harness", raising=False)
    with pytest.raises(PluginError, match=re.escape(why)):
        supplied_for("mine")
    sys.modules.pop("my_harness", None)


def test_tables_can_be_kept(two_tests: tuple[Run, Path]) -> None:
    assert list(two_tests[1].rglob("*.feather"))


WRONG_CALLS = {
    "no format": ([], "needs a format: --lake-format=NAME"),
    "one twice": (["--lake-format=feather,feather"], "name each format once"),
    "one without a name": (["--lake-format=feather,"], "name each format once"),
    "one report of two": (
        ["--lake-format=feather,localfile", "--lake-report=one.json"],
        "say {format} where the name goes",
    ),
    "one page of two": (
        ["--lake-format=feather,localfile", "--lake-page=one.html"],
        "--lake-page=one.html: say {format} where the name goes",
    ),
    "a report where none can be": (
        ["--lake-format=feather", "--lake-report=/dev/null/report.json"],
        "--lake-report=/dev/null/report.json: no file can be written there",
    ),
    "a page that is a folder": (["--lake-format=feather", "--lake-page=."], "no file can be written there"),
    "a report that is the page": (
        ["--lake-format=feather", "--lake-report=both", "--lake-page=./both"],
        "both can't be both, name two files",
    ),
    "a warehouse of before": (["--lake-format=feather", "--lake-warehouse=/"], "it is no empty folder"),
    "too few schedules": (["--lake-format=feather", "--lake-schedules=0"], "--lake-schedules: at least 20"),
    "a lane that is none": (["--lake-format=feather", "--lake-lanes=bear"], "--lake-lanes"),
    "no such test": (
        ["--lake-format=feather", "--lake-test=test_catalog.py::test_dorp"],
        "the suite has no such test. Did you mean test_catalog.py::test_drop?",
    ),
    "turns at what is not there": (
        ["--lake-format=feather", "--lake-by-turns=test_types.py,test_typos.py"],
        "--lake-by-turns=test_typos.py: the suite has no such file or test",
    ),
    "no lane": (["--lake-format=feather", "--lake-lanes="], "--lake-lanes"),
    "a lane too short": (["--lake-format=feather", "--lake-lanes=bare,spark"], "--lake-lanes"),
}
CALLS = """
import contextlib, io, json, sys, pytest
answers = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        code = pytest.main(["--pyargs", "laketier_conformance", "-q", "-p", "no:cacheprovider", *arguments])
    answers.append([int(code), said.getvalue()])
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """What each wrong call is told, before anything is collected. One process makes them all."""
    calls = json.dumps([arguments for arguments, _ in WRONG_CALLS.values()])
    command = [sys.executable, "-c", CALLS, calls]
    folder = tmp_path_factory.mktemp("wrong-calls")
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return dict(zip(WRONG_CALLS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("wrong", WRONG_CALLS)
def test_wrong_calls(wrong: str, answers: dict[str, tuple[int, str]]) -> None:
    code, said = answers[wrong]
    assert code == pytest.ExitCode.USAGE_ERROR, said
    assert WRONG_CALLS[wrong][1] in said
