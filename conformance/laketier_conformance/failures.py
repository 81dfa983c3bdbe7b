"""A failed test, as its reader needs it: the rule, what was done, expected and found, the guide, and the way back."""

from __future__ import annotations

import ast
import shlex
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from laketier.registry.pages import page
from laketier_conformance.expect import because, told
from laketier_conformance.rule import Rule
from laketier_conformance.rules import rule_of
from laketier_conformance.words import plainly

SAYS = "laketier_says"
"""Name of a test's property: the sentence of its failure."""
_HERE = Path(__file__).parent
_SUITES = (_HERE, _HERE.with_name("laketier_source_conformance"))
"""This one, and that of sources."""
_LONGEST = 600
_LEAST_ROOM = 64 << 20
"""Some tests write as much."""
_IN_LANES = "test_spark.py"
"""Tests that are left out in another lane."""
_KEPT = "--lake-warehouse="
_ANSWERS = _HERE / "answer_types.py"
"""Each call of a plugin's method goes through it."""
_DOES = {
    "LakeStoragePlugin.create_storage": "a warehouse is opened",
    "LakeCatalog.create_table": "a table is made",
    "LakeCatalog.load_table": "a table is loaded",
    "LakeCatalog.alter_table": "a table is changed",
    "LakeCatalog.drop_table": "a table is dropped",
    "LakeCatalog.list_tables": "tables are listed",
    "LakeCatalog.table_version": "the version of a table is asked for",
    "LakeStorage.state": "the state of a table is read",
    "LakeTieringFactory.create_writer": "a task begins",
    "LakeWriter.write": "rows are written",
    "LakeWriter.complete": "a task ends",
    "LakeWriter.abort": "a task is given up",
    "LakeCommitter.open": "the newest state of a table is read",
    "LakeCommitter.publish": "staged files are published",
    "LakeCommitter.discard": "staged files are discarded",
    "TableState.watermark": "a watermark is asked for",
    "TableState.landed": "it is asked whether a commit landed",
    "LakeSource.plan": "a scan is planned",
    "LakeSource.read": "rows are read",
    "LakeHistory.snapshots": "snapshots are listed",
    "LakeChanges.versions": "the versions of a log are asked for",
    "LakeChanges.plan": "changes are planned",
    "LakeFeed.plan": "changes of a feed are planned",
    "LakeMaintenance.orphans": "orphans are listed",
    "LakeMaintenance.remove_orphans": "orphans are deleted",
    "LakeMaintenance.expire": "snapshots are ended",
    "LakeIndexer.plan": "an index is planned",
    "LakeIndexer.publish": "an index is published",
    "LakeSearcher.search": "a query is answered",
}
"""By a method of the SPI, what it does."""


def ended_in(test: str, told: str) -> str:
    """The sentence for a test whose process ended in it. ``told`` is who saw it, and how it ended."""
    return _cut(f"the process ended in {test} ({told}): a plugin never ends the process that it works in")


def sentence_of(failure: pytest.ExceptionInfo[BaseException]) -> str:
    """What an assert of the suite says, or which statement of the test ended in an error that is none of them."""
    error = failure.value
    if isinstance(error, AssertionError | pytest.fail.Exception):
        said, _, explained = str(error).strip().partition("\n")
        explained = explained.partition("\n")[0].strip()
        text = f"{said} ({explained})" if _compares(explained) else said
        return _cut(text or f"an assert without a message failed: {_statement(failure)}")
    found = f"{told(error)}{because(error)}"
    return _cut(f"{_statement(failure)}{_method(failure)}: expected no error, found {found}")


def no_room(folder: Path, least: int = _LEAST_ROOM) -> str:
    """What a failure's sentence ends with where the tests' disk is full: it may be no fault of the format's."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return ""
    if free >= least:
        return ""
    return f" (no room: {free >> 20} MiB are free in {folder}, so run with --basetemp=FOLDER on another disk)"


def _compares(explained: str) -> bool:
    """Whether pytest's explanation of an assert tells more than its sentence: that one thing is another. That something
    is not true, whatever it is made of, the sentence says itself."""
    if not explained.startswith("assert "):
        return False
    try:
        parsed = ast.parse(explained)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # with the names of objects, such as <Table ...>
    return any(isinstance(node, ast.Compare) for node in ast.walk(parsed))


def again(format: str, test: str, options: tuple[str, ...] = ()) -> str:
    """The command that runs one test again, for a shell. ``options`` are pytest's, with which it was run."""
    file = test.partition("::")[0]
    # Of one format each case is run, whatever it left to others.
    of_others = [
        "--lake-by-turns=",
        *([] if _draws(file) else ["--lake-seed="]),
        *([] if file == _IN_LANES else ["--lake-lanes="]),
    ]
    given = [_quoted(option) for option in options if not option.startswith(tuple(of_others))]
    return command_of((format,), test, given)


def command_of(subject: tuple[str, ...], test: str, given: Sequence[str] = ()) -> str:
    """The command that runs one test, for a shell. ``subject``: the words that name what is proven. ``given``: options
    of pytest's, quoted."""
    command = shlex.join([*_program(), "conformance", *subject, "--test", test])
    return " ".join([command, "--", *given]) if given else command


@cache
def _draws(file: str) -> bool:
    """Whether tests of a file draw steps by the run's seed."""
    source = _HERE / file
    return source.is_file() and "lake_seed" in source.read_text(encoding="utf-8")


def _quoted(option: str) -> str:
    """A warehouse that was kept has tables already: each run again has a new folder beside it, on the same disk."""
    if option.startswith(_KEPT):
        return f'{_KEPT}"$(mktemp -d {shlex.quote(f"{option.removeprefix(_KEPT)}.XXXXXX")})"'
    return shlex.quote(option)


@cache
def _program() -> tuple[str, ...]:
    """By its name alone where a shell finds the one of this environment."""
    beside, found = Path(sys.executable).with_name("laketier"), shutil.which("laketier")
    if not beside.is_file():
        return ("laketier",) if found else (sys.executable, "-c", "from laketier.cli.app import main; main()")
    return ("laketier",) if found and Path(found).absolute() == beside.absolute() else (str(beside),)


def explained(format: str, test: str, says: str, options: tuple[str, ...] = ()) -> str:
    """A failure, for a terminal."""
    return lines_of(rule_of(test), says, again(format, test, options))


def lines_of(rule: Rule | None, says: str, again: str) -> str:
    """The same, of whatever is proven."""
    lines = [f"found  {says}"]
    if rule is not None:
        lines.insert(0, f"rule   {rule.id}: {rule.sentence}")
        lines.append(f"guide  {page(rule.guide)}")
    return "\n".join([*lines, f"again  {again}"])


def attach(says: str, text: str, report: pytest.TestReport, item: pytest.Item | None = None) -> None:
    """Give a report the sentence of its failure, and ``text`` for a terminal. ``item``: the test, where it is at hand.
    It keeps the sentence, too: whoever runs it again, or calls its report one of success, makes it no better."""
    for kept in (report, item):
        if kept is not None:
            kept.user_properties.append((SAYS, says))
    report.sections.append(("rule of the contract", text))


def plain(format: str, test: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a report has of a failure beside its sentence."""
    rule = rule_of(test)
    told = {} if rule is None else {"rule": rule.id, "guide": rule.guide}
    return {**told, "again": again(format, test, options)}


def _statement(failure: pytest.ExceptionInfo[BaseException]) -> str:
    """Of the suite, the one closest to the error."""
    ours = [entry for entry in failure.traceback if any(map(Path(entry.path).is_relative_to, _SUITES))]
    if not ours:
        return "the test's set-up"
    tests = [entry for entry in ours if Path(entry.path).name.startswith("test_")]
    entry = (tests or ours)[-1]
    statement = " ".join(line.strip() for line in entry.statement.lines)
    return f"`{statement if len(statement) <= 160 else f'{statement[:157]}...'}`"


def _method(failure: pytest.ExceptionInfo[BaseException]) -> str:
    """In which method of the plugin the error was raised, and what that does: laketier may be in between."""
    said = [entry.locals.get("said") for entry in failure.traceback if Path(entry.path) == _ANSWERS]
    method = next((str(each) for each in said if each is not None), "")
    return f", as {_DOES.get(method, 'the plugin works')} ({method})" if method else ""


def _cut(text: str) -> str:
    text = plainly(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
