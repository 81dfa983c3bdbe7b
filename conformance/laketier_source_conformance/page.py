"""The report of a source as a page, as that of a format is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from laketier_conformance.page import document, rules_table, table
from laketier_source_conformance.rules import RULES, rule_of


def page(report: Mapping[str, Any]) -> str:
    """All that the report says. Whatever it holds is text: a plugin's own words come from somebody else."""
    return document(
        f"Conformance of the source {report['source']}",
        report,
        rule_of,
        (
            rules_table(RULES, rule_of, report["results"]),
            table("What the system can't have, as its harness says", ("what", "why"), report["cannot"].items()),
            table("The run", ("what", "which"), _run(report)),
        ),
    )


def _run(report: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield "plugin", report["plugin"]
    yield "suite", report["suite"]
    yield "began", report["at"]
    yield "seconds of all processes", str(report["seconds"])
    if report["options"]:
        yield "options", " ".join(report["options"])
    yield from report["versions"].items()
