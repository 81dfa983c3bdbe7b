"""Tables of docs/proof about the conformance suite, and the reports that stand behind them.

``python scripts/conformance_pages.py artifacts/conformance`` takes the reports of a run into docs/proof/conformance,
without the results of single tests. `page_tables.py` makes the tables of them, and of the wrong plugins.
``--third-party artifacts/third-party`` does so with the formats that have an environment of their own. It takes all of
them or none: a file that is no report of today's suite, or that contradicts itself, is named with its field.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from report_checks import faults, other_tests

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / "docs" / "proof" / "conformance"
THIRD_PARTY = REPORTS / "third-party"
WRONG = ROOT / "tests" / "conformance" / "wrong_plugins"
WRONG_SOURCES = tuple(
    ROOT / "tests" / "support" / f"altered_{name}.py"
    for name in ("notes", "polls", "pages", "habits", "waits", "changes")
)
_NO_LIBRARY = ("python", "system", "laketier", "pyarrow", "pytest")


def main(arguments: list[str]) -> int:
    into, folders = (THIRD_PARTY, arguments[1:]) if arguments[:1] == ["--third-party"] else (REPORTS, arguments)
    files = sorted(file for folder in folders for file in Path(folder).glob("*.json"))
    wrong = [line for file in files for line in faults(file)]
    named = Counter(file.name for file in files)
    wrong += [f"{name}: {times} of the folders have one" for name, times in named.items() if times > 1]
    if wrong or not files:
        print("\n".join(wrong) or f"no report in {', '.join(folders) or 'no folder'}", file=sys.stderr)
        return 1
    into.mkdir(exist_ok=True, parents=True)
    for file in files:
        whole = json.loads(file.read_text(encoding="utf-8"))
        report, others = small(whole), other_tests(whole)
        (into / file.name).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"{file.stem}: {report['verdict']}, {report['tests']}{f'; {others}' if others else ''}")
    return 0


def small(report: dict[str, Any]) -> dict[str, Any]:
    """A report with numbers instead of the results."""
    kept = {key: value for key, value in report.items() if key != "results"}
    return kept | {"tests": dict(sorted(Counter(each["outcome"] for each in report["results"].values()).items()))}


def reports(folder: Path) -> list[dict[str, Any]]:
    """The reports in a folder of the repository."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]


def formats(told: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A column per format: verdict, circumstances, and what its run showed of each feature."""
    rows = [["", *(report["format"] for report in told)]]
    rows.append(["**verdict**", *(f"**{report['verdict']}**" for report in told)])
    rows.append(["delivery", *(report["delivery"] for report in told)])
    rows.append(["lanes", *(", ".join(report["lanes"]) for report in told)])
    rows.append(["tests", *(", ".join(f"{n} {how}" for how, n in report["tests"].items()) for report in told)])
    rows.append(["seconds of all processes", *(str(round(report["seconds"])) for report in told)])
    rows.append(["effects interposed", *(str(sum(report["interposed"].values()) or "not counted") for report in told)])
    unseen = ["; ".join(report.get("not_interposed", ())) for report in told]
    if any(unseen):
        rows.append(["not interposed", *unseen])
    features = dict.fromkeys(name for report in told for name in report["shown"])
    rows += [[feature, *(_shown(report, feature) for report in told)] for feature in features]
    rows.append(["libraries", *(_libraries(report) for report in told)])
    rows += [[name, *(report["versions"][name] for report in told)] for name in ("laketier", "pyarrow", "python")]
    rows.append(["day", *(report["at"][:10] for report in told)])
    return rows


def _shown(report: dict[str, Any], feature: str) -> str:
    how = report["shown"].get(feature, "not asked")
    reason = report["unproven"].get(feature)
    return f"{how}: {reason}" if reason and how == "not shown" else str(how)


def _libraries(report: dict[str, Any]) -> str:
    own = report["plugin"].partition("==")[0]
    named = {name: version for name, version in report["versions"].items() if name not in (*_NO_LIBRARY, own)}
    return ", ".join(f"{name} {version}" for name, version in named.items()) or "pyarrow alone"


def wrong_plugins(up: str) -> list[list[str]]:
    """Each wrong plugin, its mistake, and the test that catches it with these words."""
    from laketier_conformance.rules import rule_of

    rows = [["plugin", "its mistake", "rule", "the test that catches it", "which says"]]
    for file in sorted(WRONG.glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        named = constants(tree)
        if "CAUGHT_BY" not in named:
            continue
        test = named["CAUGHT_BY"]
        rule = rule_of(test)
        mistake = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
        link = f"[{file.stem}]({up}{file.relative_to(ROOT).as_posix()})"
        rows.append([link, mistake, rule.id if rule else "", f"`{test}`", f"“{_text(named['SAYS'])}”"])
    return rows


def wrong_sources(up: str) -> list[list[str]]:
    """Each wrong source, by its name in words, and the test that catches it with these words."""
    from laketier_source_conformance.rules import rule_of

    rows = [["a source that", "which means", "rule", "the test that catches it", "which says"]]
    every = [(path, node) for path in WRONG_SOURCES for node in ast.parse(path.read_text(encoding="utf-8")).body]
    for path, node in every:
        for by in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            if isinstance(node, ast.ClassDef) and isinstance(by, ast.Call) and ast.unparse(by.func) == "wrong":
                test, says = (str(ast.literal_eval(argument)) for argument in by.args)
                name = re.sub(r"(?<!^)(?=[A-Z])", " ", node.name).lower()
                more = " ".join((ast.get_docstring(node) or "").split())
                rule = rule_of(test)
                link = f"[{_text(name)}]({up}{path.relative_to(ROOT).as_posix()})"
                rows.append([link, _text(more), rule.id if rule else "", f"`{test}`", f"“{_text(says)}”"])
    return [rows[0], *sorted(rows[1:], key=lambda row: (row[2], row[0]))]


def _text(words: str) -> str:
    return words.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").replace("`", "")


def constants(tree: ast.Module) -> dict[str, str]:
    """Those of a wrong plugin, which is read and not imported: it is imported in a run of the suite alone."""
    return {
        target.id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in ("CAUGHT_BY", "SAYS")
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
