"""The output of commands: results, lines and errors, none of which may act upon a terminal or show a secret."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import typer
from rich.console import Console
from rich.text import Text

from laketier.spi import LaketierError, StorageError
from laketier.spi.redaction import redacted
from laketier.spi.visible import visible, visible_json

_PLAIN_WIDTH = 160
"""Where nobody sees a window's edge, in characters."""


def fill_closed() -> None:
    """Open what a caller closed of the three standard streams (``>&-``), onto nothing. Else the next file that is
    opened, perhaps one of a table, would have its number, and get what a library prints."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115 (stays open)
            setattr(sys, name, stream)


def end_errors() -> None:
    """Leave nothing to be told on standard error that can't be: Python would end the command with a code of its own."""
    try:
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Lead a stream onto nothing, with what waits in it."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


@contextmanager
def _written(*, err: bool) -> Iterator[None]:
    """What can't be told on standard error stops nothing. A result that can't be written is an error."""
    try:
        yield
    except OSError as error:
        if err:
            return  # see `end_errors`
        if isinstance(error, BrokenPipeError):
            raise  # who read has enough
        _discard(sys.stdout)
        raise StorageError(
            "standard output can't be written",
            why=error.strerror or str(error),
            fix="Send it to a file or program that takes it. What the command did before is done.",
        ) from error


class ShownConsole(Console):
    """Shows control characters of whatever text it is given."""

    def __exit__(self, *raised: Any) -> None:
        """See `Console`. What was printed is written here."""
        with _written(err=self.stderr):
            super().__exit__(*raised)

    def render_str(self, text: str, **options: Any) -> Text:
        """See `Console`. All strings come through here, those in tables too."""
        return super().render_str(visible(text), **options)


def console() -> Console:
    """Where results go: standard output, in colour on a terminal, as plain lines elsewhere, wide enough for tables."""
    return ShownConsole(highlight=False) if sys.stdout.isatty() else ShownConsole(highlight=False, width=_PLAIN_WIDTH)


def say(text: object, *, err: bool = False) -> None:
    """One line."""
    with _written(err=err):
        typer.echo(visible(str(text)), err=err)


def say_failure(document: Any) -> None:
    """The document of an error, where standard output takes it: the error is told on standard error, too."""
    with suppress(OSError, StorageError):
        print_json(document)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    with _written(err=False):
        typer.echo(visible_json(json.dumps(document, indent=2, default=str, ensure_ascii=False)))


def error_document(error: LaketierError, code: int) -> dict[str, Any]:
    """For machines: the parts of an error, and the code that the command ends with."""
    parts = {name: getattr(error, name) for name in ("what", "where", "why", "fix")}
    told = {name: None if part is None else redacted(part) for name, part in parts.items()}
    return {"error": {"type": type(error).__name__, **told, "message": str(error), "exit_code": code}}


def usage_document(error: Any) -> dict[str, Any]:
    """The same for a call that typer refused, such as one with an unknown option."""
    command = "laketier" if error.ctx is None else error.ctx.command_path
    message = redacted(error.format_message())
    told = {"what": message, "where": command, "why": None, "fix": f"{command} --help", "message": message}
    return {"error": {"type": "UsageError", **told, "exit_code": error.exit_code}}


def failure_document(kind: str, what: str, code: int, fix: str | None = None) -> dict[str, Any]:
    """The same for what is no error of laketier's own."""
    told = {"what": redacted(what), "where": None, "why": None, "fix": fix, "message": redacted(what)}
    return {"error": {"type": kind, **told, "exit_code": code}}


class ShownLines(logging.Formatter):
    """Lines of a log, with tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return visible(redacted(super().format(record)))
