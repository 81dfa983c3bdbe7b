"""The formats of this repository, and the one of somebody else, in the bare lane.

With Spark as well: `laketier conformance NAME`.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest

from conformance_runs import FEATHER, POOR, VORTEX
from laketier.registry import format_names
from laketier_conformance.manifest import expected_tests


def test_all_formats_are_there() -> None:
    assert {"delta", "feather", "iceberg", "lance", "localfile"} <= set(format_names())


@pytest.mark.parametrize(("folder", "most"), [(FEATHER, 50), (VORTEX, 120)], ids=["feather", "vortex"])
def test_a_simple_format_is_small(folder: Path, most: int) -> None:
    """As the author's guide promises: few lines of code, docstrings aside, and no laketier but SPI and toolbox."""
    (plugin,) = folder.glob("*/plugin.py")
    source = plugin.read_text(encoding="utf-8")
    tree = ast.parse(source)
    documented = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docs = [node.body[0] for node in documented if ast.get_docstring(node)]
    told = {line for doc in docs for line in range(doc.lineno, (doc.end_lineno or 0) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    code = {
        line
        for token in tokens
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
        for line in range(token.start[0], token.end[0] + 1)
    }
    assert len(code - told) <= most
    imported = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in imported if name.startswith("laketier")}
    assert all(
        name == "laketier" or name.startswith(("laketier.spi", "laketier.kit", "laketier.registry")) for name in ours
    ), ours


UPSERTS = ["test_upsert.py", "test_upsert_keys.py", "test_upsert_kills.py", "test_upsert_races.py"]
OFFERS = {"vortex": "vortex_lake.plugin", "sqlite": "sqlite_lake.plugin"}


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        (
            "feather",
            ["test_declaration.py", "test_rounds.py", *UPSERTS],
        ),
        # Without its engine, which only `make test-third-party` installs.
        ("vortex", ["test_declaration.py", "test_catalog.py::test_a_table_that_is_not_there"]),
        # It keeps one state of its rows: it ends no snapshots itself, and has none to list or to go back to.
        (
            "sqlite",
            [
                "test_declaration.py",
                "test_kills.py::test_killed_at_each_failpoint_of_the_format",
                "test_expiry.py",
                "test_races.py::test_a_round_while_its_process_reads",
            ],
        ),
        # It drops no table, has no history and lies in no store.
        ("feather-poor", ["test_rounds.py", "test_dropped.py", "test_object_stores.py", "test_expiry.py"]),
    ],
    ids=["feather", "vortex", "sqlite", "feather-poor"],
)
def test_a_few_rules_hold(name: str, tests: list[str], run_suite) -> None:  # type: ignore[no-untyped-def]
    """Of formats whose whole suite `make test` leaves to `make test-all` and `make test-third-party`."""
    run = run_suite(name, tests, offers={name: OFFERS[name]} if name in OFFERS else {}, paths=[POOR])
    outcomes = {test: result["outcome"] for test, result in run.report["results"].items()}
    assert outcomes, run.output
    assert set(outcomes.values()) <= {"passed", "refused"}, run.output


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_what_is_not_declared_is_refused(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Of a format that declares nothing, no test fails. But it is made of another one, whose plugin it imports."""
    run = run_suite("feather-poor", paths=[POOR])
    outcomes = {test: result["outcome"] for test, result in run.report["results"].items()}
    assert {test for test, outcome in outcomes.items() if outcome not in ("passed", "refused")} == {
        "test_declaration.py::test_importing_the_plugin_imports_no_engine",
        "test_executors.py::test_an_executor_writes_with_what_it_was_given",
    }, run.output


FOLDING = {"offers": {"folding": "folding"}, "harnesses": {"folding": "laketier_localfile.conformance:Harness"}}


def test_folding_keeps_the_rules_of_rounds(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Nearly each commit of this variant also writes small files as one. The deep test has the whole suite."""
    tests = ["test_rounds.py", *UPSERTS, "test_races.py"]

    run = run_suite("folding", tests, **FOLDING)
    outcomes = {result["outcome"] for result in run.report["results"].values()}
    assert outcomes <= {"passed", "refused"}, run.output


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_folding_conforms(run_suite) -> None:  # type: ignore[no-untyped-def]
    run = run_suite("folding", **FOLDING)
    assert run.report["verdict"] == "conformant", run.output


@pytest.mark.deep
def test_a_refusal_is_one_in_each_lane(run_suite) -> None:  # type: ignore[no-untyped-def]
    """Spark's data source wraps it."""
    lanes = ("spark-dataframe", "spark-split")
    tests = [f"test_spark.py::test_an_overwrite[{lane}]" for lane in lanes]
    run = run_suite(
        "sqlite", tests, offers={"sqlite": "sqlite_lake.plugin"}, arguments=[f"--lake-lanes={','.join(lanes)}"]
    )
    assert [run.outcome(test) for test in tests] == ["refused", "refused"], run.output


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["feather", "localfile", "delta", "iceberg", "lance"])
def test_conforms(name: str, run_suite) -> None:  # type: ignore[no-untyped-def]
    run = run_suite(name)
    outcomes = {test: result["outcome"] for test, result in run.report["results"].items()}
    assert {test for test, outcome in outcomes.items() if outcome not in ("passed", "refused")} == set(), run.output
    # The lanes on Spark were left out, and nothing else: the verdict says so.
    assert run.report["verdict"] == "partial"
    assert {test.partition("::")[0] for test in set(expected_tests()) - set(outcomes)} == {"test_spark.py"}


@pytest.mark.deep
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["feather", "localfile", "delta", "iceberg", "lance"])
def test_each_step_of_each_operation(name: str, run_suite) -> None:  # type: ignore[no-untyped-def]
    """Other runs of the suite take some of them."""
    run = run_suite(name, ["test_operations.py"], arguments=["--lake-steps=0"])
    assert {result["outcome"] for result in run.report["results"].values()} <= {"passed", "refused"}, run.output
    assert run.report["strides"] == []
