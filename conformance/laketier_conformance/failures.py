"""A failed test, as its reader needs it: the rule, what was done, expected and found, the guide, and the way back."""

from __future__ import annotations

import shlex
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from laketier_conformance.expect import told
from laketier_conformance.rules import rule_of
from laketier_conformance.words import plainly

SAYS = "laketier_says"
"""Name of a test's property: the sentence of its failure."""
_HERE = Path(__file__).parent
_CHECKOUT = _HERE.parents[1]
_DOCUMENTS = Path(sysconfig.get_path("data"), "share", "doc", "laketier")
_LONGEST = 600
_DRAWN = "test_operations.py::"
"""Tests whose steps are drawn by a seed."""


def sentence_of(failure: pytest.ExceptionInfo[BaseException]) -> str:
    """What an assert of the suite says, or which statement of the test ended in an error that is none of them."""
    error = failure.value
    if isinstance(error, AssertionError | pytest.fail.Exception):
        said, _, explained = str(error).strip().partition("\n")
        explained = explained.partition("\n")[0].strip()
        text = f"{said} ({explained})" if explained.startswith("assert ") else said
        return _cut(text or f"an assert without a message failed: {_statement(failure)}")
    return _cut(f"{_statement(failure)}: expected no error, found {told(error)}")


def again(format: str, test: str, options: tuple[str, ...] = ()) -> str:
    """The command that runs one test again, for a shell. ``options`` are pytest's."""
    drawn = test.startswith(_DRAWN)
    given = [option for option in options if drawn or not option.startswith("--lake-seed=")]
    command = ["laketier", "conformance", format, "--test", test, *(["--", *given] if given else [])]
    return shlex.join(command)


def explained(format: str, test: str, says: str, options: tuple[str, ...] = ()) -> str:
    """A failure, for a terminal."""
    rule = rule_of(test)
    lines = [f"found  {says}"]
    if rule is not None:
        lines.insert(0, f"rule   {rule.id}: {rule.sentence}")
        lines.append(f"guide  {page(rule.guide)}")
    return "\n".join([*lines, f"again  {again(format, test, options)}"])


def page(link: str) -> str:
    """Where to read a page of the guide: its path in a checkout, or else the file that came with laketier's wheel."""
    name, _, anchor = link.partition("#")
    if not _CHECKOUT.joinpath(name).is_file() and _DOCUMENTS.joinpath(name).is_file():
        return f"{_DOCUMENTS / name}#{anchor}" if anchor else str(_DOCUMENTS / name)
    return link


def plain(format: str, test: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a report has of a failure beside its sentence."""
    rule = rule_of(test)
    told = {} if rule is None else {"rule": rule.id, "guide": rule.guide}
    return {**told, "again": again(format, test, options)}


def _statement(failure: pytest.ExceptionInfo[BaseException]) -> str:
    """Of the suite, the one closest to the error."""
    ours = [entry for entry in failure.traceback if Path(entry.path).is_relative_to(_HERE)]
    if not ours:
        return "the test's set-up"
    tests = [entry for entry in ours if Path(entry.path).name.startswith("test_")]
    entry = (tests or ours)[-1]
    statement = " ".join(line.strip() for line in entry.statement.lines)
    return f"`{statement if len(statement) <= 160 else f'{statement[:157]}...'}`"


def _cut(text: str) -> str:
    text = plainly(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
