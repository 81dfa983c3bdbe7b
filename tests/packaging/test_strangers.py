"""What `make test-strangers` asks for is there: it runs before a release only, and would else be found stale then."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from laketier.cli.new_plugin.distribution import Kind, write_distribution
from laketier.cli.new_plugin.names import names_of
from workspace import ROOT

SUITES = ROOT / "conformance"
FORMAT_OF_ROUNDS = (
    'test -n "$LAKETIER_FORMAT" || echo "::warning::No rounds, see README.md."',
    'test -z "$LAKETIER_FORMAT" || python -m pip install "$LAKETIER_FORMAT"',
)
ASKED = {"format": ("acme-x", "test_types.py"), "source": ("--source acme-x", "test_offsets.py")}


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    for name in [name for name in sys.modules if name.startswith("strangers")]:
        monkeypatch.delitem(sys.modules, name)


def test_its_tests_are_tests_of_the_suite() -> None:
    import strangers
    import strangers_again

    assert set(strangers.KINDS) == {kind.value for kind in Kind}
    wanted = [*strangers.TESTS, *(test for case in strangers_again.CASES for test in case.tests)]
    for suite, asked in {"laketier_conformance": wanted, "laketier_source_conformance": strangers.OF_SOURCES}.items():
        there = (SUITES / suite / "MANIFEST").read_text(encoding="utf-8").splitlines()
        assert [each for each in asked if not any(test == each or test.startswith(f"{each}::") for test in there)] == []


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.value)
def test_it_takes_the_commands_that_a_new_plugin_names(kind: Kind, tmp_path: Path) -> None:
    import strangers_walk

    project, _ = write_distribution(names_of("acme-x", kind.noun), kind, tmp_path)
    asked, file = ASKED[kind.noun]
    commands = [line.partition("  #")[0].strip() for line in strangers_walk.commands_of(project)]
    assert commands == [
        'test -n "$LAKETIER" || { echo "Set the repository\'s variable LAKETIER, see README.md."; exit 1; }',
        'python -m pip install "$LAKETIER" -e ".[test]"',
        *(FORMAT_OF_ROUNDS if kind is Kind.SOURCE else ()),
        "pytest",
        'python -m pip install -e ".[test]"',
        f"laketier conformance {asked} --test {file}",
        f"laketier conformance {asked} --report acme-x.json",
    ]


def test_a_command_of_the_readme_that_the_workflow_has_is_taken_once(tmp_path: Path) -> None:
    import strangers_walk

    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "test.yml").write_text("    steps:\n      - uses: x\n      - run: pytest\n")
    (tmp_path / "README.md").write_text("# x\n\n```console\n$ pytest   # again\n$ echo 'a  b'\n```\n")
    assert strangers_walk.commands_of(tmp_path) == ["pytest", "echo 'a  b'"]
