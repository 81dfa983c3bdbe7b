"""The rules of the suite of sources, its MANIFEST and its page go together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import PluginBroken, PluginNotFound
from laketier_conformance.expect import NotShown
from laketier_conformance.manifest import collected_tests, expected_tests
from laketier_source_conformance.children import Processes
from laketier_source_conformance.harness import MEMBERS, SourceHarness, harness_of
from laketier_source_conformance.rules import RULES, rule_of
from laketier_source_conformance.suite import MANIFEST
from laketier_source_conformance.system import System
from laketier_source_conformance.tiered import Tiered

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/authors/sources.md").read_text(encoding="utf-8")


def test_each_test_has_a_rule_and_each_rule_a_test() -> None:
    tests = expected_tests(MANIFEST)
    assert [test for test in tests if rule_of(test) is None] == []
    assert [rule.id for rule in RULES if not any(rule_of(test) is rule for test in tests)] == []


def test_the_page_has_each_rule_and_each_heading_that_a_rule_names() -> None:
    assert [rule.id for rule in RULES if f"| `{rule.id}` |" not in PAGE] == []
    headings = {re.sub(r"[^a-z -]", "", line.lower().lstrip("# ")).replace(" ", "-") for line in PAGE.splitlines()}
    named = {rule.guide.partition("#")[2] for rule in RULES} - {""}
    assert named <= headings


def test_the_manifest_is_what_pytest_collects() -> None:
    assert collected_tests("--log-source=lines", MANIFEST.parent) == expected_tests(MANIFEST), (
        "run python -m laketier_source_conformance.manifest lines"
    )


def test_a_harness_that_is_none_is_told() -> None:
    with pytest.raises(PluginNotFound, match="there is no harness for the source 'nowhere'"):
        harness_of("nowhere")
    with pytest.raises(PluginBroken, match="is no subclass of SourceHarness"):
        harness_of("lines", "json:JSONDecoder")
    with pytest.raises(PluginBroken, match="nothing would ever call its member 'append_badd'"):
        _load(append_badd=lambda self: None)


@pytest.mark.parametrize(
    ("cannot", "why"),
    [
        ({"put_back": " "}, r"gives no reason for \['put_back'\]"),
        ({"put_back": None}, "gives no reason"),
        ({"put_back"}, "is no mapping"),
        ({"put_backs": "no backups"}, "are no members"),
    ],
)
def test_what_a_system_can_not_have_costs_a_reason(cannot: Any, why: str) -> None:
    """The report repeats it."""
    with pytest.raises(PluginBroken, match=why):
        _load(cannot=cannot)
    _load(cannot={"put_back": "no backups"})


def _load(**members: Any) -> None:
    from importlib.metadata import EntryPoint

    from laketier_source_conformance import harness

    class Entry(EntryPoint):
        def load(self) -> object:
            return type("Odd", (SourceHarness,), members)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness.importlib.metadata, "entry_points", lambda **_: [Entry("lines", "m:M", harness.GROUP)])
        harness_of("lines")


def test_rounds_are_not_shown_where_no_format_is_installed(tmp_path: Path) -> None:
    """As in an environment with laketier's wheel and the source alone."""
    folder = tmp_path / "system"
    folder.mkdir()
    system = System("lines", harness_of("lines")(folder))
    try:
        table = system.table()
        table.append(3)
        with pytest.raises(NotShown, match="no format is installed"):
            Tiered(table, None, Processes(tmp_path / "tasks")).run(2, 5)
    finally:
        system.close()


def test_members_are_methods_that_a_harness_may_have() -> None:
    assert {"make_table", "append", "expire", "compact", "put_back", "files", "cannot", "engine_modules"} <= set(
        MEMBERS
    )
