"""A report as a page: one file of HTML, without scripts, and with nothing fetched from elsewhere. `document`, `table`
and `rules_table` are what the pages of formats and of sources share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from laketier_conformance.rule import Rule
from laketier_conformance.rules import RULES, rule_of

RuleOf = Callable[[str], Rule | None]
"""The rule behind a test, by its name in the MANIFEST."""

_TOLD = 50
"""So many failures come before the tables: of thousands nobody would find these."""
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1.5rem; }
caption { text-align: left; font-weight: bold; padding: 0.25rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #8886; }
li, td, code { overflow-wrap: anywhere; }
code { font-size: 0.9em; }
.failed, .fail { font-weight: bold; color: light-dark(#a40000, #ff8f8f); }
"""


def page(report: Mapping[str, Any]) -> str:
    """All that the report says. Whatever it holds is text: a plugin's own words come from somebody else."""
    return document(
        f"Conformance of {report['format']}",
        report,
        rule_of,
        (
            table("Features", ("feature", "declared", "shown"), _features(report)),
            rules_table(RULES, rule_of, report["results"]),
            table("Effects that were interposed", ("effect", "times"), report["interposed"].items()),
            table("Where the effects went", ("place", "times"), report["places"].items()),
            _list(f"interposed in part: {each}" for each in report["strides"]),
            _list(f"not interposed: {each}" for each in report["not_interposed"]),
            table("Declared, and not shown", ("what", "why"), _not_shown(report)),
            table("The run", ("what", "which"), _run(report)),
        ),
    )


def document(title: str, report: Mapping[str, Any], rule_of: RuleOf, parts: Sequence[str]) -> str:
    """A page: its verdict, what failed, ``parts``, and a table of all tests."""
    results: Mapping[str, Mapping[str, Any]] = report["results"]
    failed = [(name, result) for name, result in results.items() if result["outcome"] == "failed"]
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p>Verdict: <strong class="{escape(report["verdict"])}">{escape(report["verdict"])}</strong></p>',
        _list(report["why"]),
        *(_failure(name, result, rule_of(name)) for name, result in failed[:_TOLD]),
        _list([f"{len(failed) - _TOLD} more failed: see the table of all tests"] if len(failed) > _TOLD else []),
        *parts,
        table("All tests", ("test", "outcome", "seconds", "detail"), _results(results)),
    ]
    head = (
        f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style>'
    )
    main = "\n".join(filter(None, body))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n<main>\n{main}\n</main>\n</body>\n</html>\n"
    )


def _failure(name: str, result: Mapping[str, Any], rule: Rule | None) -> str:
    parts = [
        ("rule", rule.sentence if rule else None),
        ("found", result.get("detail")),
        ("guide", result.get("guide")),
        ("again", result.get("again")),
    ]
    told = "".join(f"<dt>{what}</dt><dd><code>{escape(str(text))}</code></dd>" for what, text in parts if text)
    return f"<section><h2>Failed: <code>{escape(name)}</code></h2><dl>{told}</dl></section>"


def _features(report: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    for feature, declared in report["features"].items():
        reason = report["unproven"].get(feature)
        yield feature, declared, report["shown"][feature] + (f": {reason}" if reason else "")


def _not_shown(report: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    """Of which the table of features does not tell."""
    yield from ((what, why) for what, why in report["unproven"].items() if what not in report["features"])
    yield from ((feature, "this laketier does not know the feature") for feature in report["unknown_features"])


def rules_table(rules: Iterable[Rule], rule_of: RuleOf, results: Mapping[str, Mapping[str, Any]]) -> str:
    """What became of the tests of each rule."""
    return table("Rules of the contract", ("rule", "what it says", "tests"), _rules(rules, rule_of, results))


def _rules(
    rules: Iterable[Rule], rule_of: RuleOf, results: Mapping[str, Mapping[str, Any]]
) -> Iterable[tuple[str, ...]]:
    for rule in rules:
        outcomes = [result["outcome"] for name, result in results.items() if rule_of(name) == rule]
        told = ", ".join(f"{outcomes.count(each)} {each}" for each in sorted(set(outcomes)))
        yield rule.id, f"{rule.sentence} ({rule.guide})", told or "not run"


def _run(report: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    yield "plugin", report["plugin"]
    yield "suite", report["suite"]
    yield "lanes", ", ".join(report["lanes"])
    yield "delivery", report["delivery"]
    yield "began", report["at"]
    yield "seconds of all processes", str(report["seconds"])
    for what, (first, last) in report["seeds"].items():
        yield f"seeds of {what}", f"{first} to {last}"
    if report.get("options"):
        yield "options", " ".join(report["options"])
    yield from report["versions"].items()


def _results(results: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, ...]]:
    for name, result in results.items():
        yield name, result["outcome"], f"{result['seconds']:.2f}", result.get("detail", "")


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def table(caption: str, head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table; nothing where there are no rows."""
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{text}</th>' if first else f"<td{_shade(text)}>{text}</td>"
            for first, text in ((at == 0, escape(str(cell))) for at, cell in enumerate(row))
        )
        + "</tr>\n"
        for row in rows
    )
    if not body:
        return ""
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (
        f"<table>\n<caption>{escape(caption)}</caption>\n<thead><tr>{columns}</tr></thead>\n"
        f"<tbody>\n{body}</tbody>\n</table>"
    )


def _shade(text: str) -> str:
    return ' class="failed"' if text == "failed" else ""
