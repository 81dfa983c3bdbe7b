"""The rules of the contract of sources, in a sentence each: where the page explains them, and which tests hold a source
to them. A new file of the suite names its rule here, and so does a test that is about another rule than its file."""

from __future__ import annotations

from laketier_conformance.rule import Rule

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
        ("test_offsets.py", "test_late.py"),
    ),
    Rule(
        "same-range",
        "The same range gives the same rows, each time, on each machine, and however it is cut.",
        _RULES,
        ("test_same_rows.py",),
    ),
    Rule(
        "reading",
        "A read gives each row of its split once, in batches with memory of their own and the columns asked for.",
        _RULES,
        ("test_reading.py",),
    ),
    Rule(
        "bad-records",
        "A record that is no row, or none that the lake can store, is told with its offset and its bytes, and the read "
        "goes on; `decode` accounts for each.",
        _RULES,
        ("test_bad_records.py", "test_bad_bytes.py"),
    ),
    Rule(
        "expired",
        "What expired is told, and never read as if nothing had been there.",
        _RULES,
        ("test_expired.py",),
    ),
    Rule(
        "failures",
        "Where a part of the system fails, a read raises: fewer rows without an error are lost rows.",
        _RULES,
        ("test_failures.py", "test_connections.py"),
    ),
    Rule(
        "histories",
        "`stamp` and `table_id` tell one history of a table from another, and `former_names` one column from another.",
        _RULES,
        ("test_histories.py",),
    ),
    Rule(
        "lives",
        "A log travels in a pickle, is read in many threads and processes at once, and is closed at any time.",
        _RULES,
        ("test_lives.py",),
    ),
    Rule(
        "declaration",
        "A plugin is named as its entry point, imports no client library, and shows no password.",
        _PAGE,
        ("test_declaration.py",),
    ),
    Rule(
        "scale",
        "A read takes little memory, and each answer is whole, however many rows, tables or buckets there are.",
        _RULES,
        ("test_scale.py", "test_many.py"),
    ),
    Rule(
        "rounds",
        "Rounds of the source bring each row into a lake table once, whatever was killed.",
        _RULES,
        ("test_rounds.py",),
    ),
)

_RULE_OF = {test: rule for rule in RULES for test in rule.tests}


def rule_of(test: str) -> Rule | None:
    """The rule behind a test, by its name in the MANIFEST. A test's own line counts for more than its file's."""
    function = test.partition("[")[0]
    return _RULE_OF.get(function) or _RULE_OF.get(function.partition("::")[0])
