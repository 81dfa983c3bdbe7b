"""The rules of the contract of sources, in a sentence each: where the page explains them, and which tests hold a source
to them. A new file of the suite names its rule here, and so does a test that is about another rule than its file."""

from __future__ import annotations

from laketier_conformance.rules import Rule

_PAGE = "docs/authors/sources.md"
_RULES = f"{_PAGE}#what-exactly-once-needs"

RULES = (
    Rule(
        "tables",
        "A source lists its tables in order, opens each under its own name and no other, and says what it refuses.",
        _PAGE,
        ("test_tables.py",),
    ),
    Rule(
        "offsets",
        "Offsets only grow within a bucket, `bounds` counts final records alone, and each row has its place in them.",
        _RULES,
        ("test_offsets.py",),
    ),
    Rule(
        "same-range",
        "The same range gives the same rows, each time, on each machine, and however it is cut.",
        _RULES,
        ("test_same_rows.py",),
    ),
)

_RULE_OF = {test: rule for rule in RULES for test in rule.tests}


def rule_of(test: str) -> Rule | None:
    """The rule behind a test, by its name in the MANIFEST. A test's own line counts for more than its file's."""
    function = test.partition("[")[0]
    return _RULE_OF.get(function) or _RULE_OF.get(function.partition("::")[0])
