"""Every test of the suite stands for a rule of the contract, and every failure of one is a sentence."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from laketier_conformance.manifest import MANIFEST, expected_tests
from laketier_conformance.rule import Rule
from laketier_conformance.rules import RULES, rule_of

ROOT = Path(__file__).parents[2]
FILES = sorted(MANIFEST.parent.rglob("test_*.py"))


def test_each_test_has_a_rule() -> None:
    lacking = sorted({test.partition("[")[0] for test in expected_tests() if rule_of(test) is None})
    assert lacking == [], "name the rule of each in laketier_conformance/rules.py"


def test_no_rule_is_there_twice_and_each_is_tested() -> None:
    assert [rule for rule, count in Counter(rule.id for rule in RULES).items() if count > 1] == []
    told = Counter(test for rule in RULES for test in rule.tests)
    assert [test for test, count in told.items() if count > 1] == [], "a test has one rule"
    there = {test.partition("[")[0] for test in expected_tests()}
    there |= {test.partition("::")[0] for test in there}
    assert sorted(set(told) - there) == [], "no such tests"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_guide_has_the_place_that_a_rule_names(rule: Rule) -> None:
    page, _, anchor = rule.guide.partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert not anchor or anchor in {_slug(heading) for heading in headings}, (
        f"{page} has no heading for #{anchor}: name another one in laketier_conformance/rules.py"
    )
    assert rule.sentence.endswith(".")


def _slug(heading: str) -> str:
    """As Python-Markdown makes anchors of headings."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_failure_is_a_sentence(file: Path) -> None:
    """`expect`, `refused`, or an assert that says more than what it asks."""
    bare = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assert):
            if node.msg is None:
                bare.append(f"line {node.lineno}: give the assert a sentence: what was done, and what has to hold")
            elif isinstance(node.msg, ast.Name) and node.msg.id != "told":
                bare.append(f"line {node.lineno}: {node.msg.id} is no sentence")
            elif isinstance(node.msg, ast.Constant) and _is_equality(node.test):
                bare.append(f"line {node.lineno}: expect(found, expected, sentence) says what was found, == does not")
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.raises":
            bare.append(f"line {node.lineno}: refused(error, doing) says what was done, pytest.raises does not")
        elif isinstance(node, ast.Assign) and _is_one_of(node.targets[0]) and "children" not in ast.unparse(node.value):
            bare.append(f"line {node.lineno}: the_one(found, sentence) says how many were found, unpacking does not")
    assert bare == []


def _is_one_of(target: ast.expr) -> bool:
    return isinstance(target, ast.Tuple | ast.List) and len(target.elts) == 1


def _is_equality(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(isinstance(operator, ast.Eq) for operator in test.ops)
