"""One system under test: the harness that fills it, and the source that reads it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from laketier.registry import OpenSource, installed_sources, open_log_source
from laketier.rounds.checked_log import CheckedLog
from laketier_conformance.expect import HarnessFailed, NotShown, expect, told
from laketier_conformance.heard import asking_a_harness, heard
from laketier_conformance.started import keep_changes
from laketier_source_conformance.harness import KeptByReader, Row, SourceHarness

ORIGIN = "the conformance suite"


class CannotBe(Exception):
    """The harness says that the system can't have what a test needs, and why."""


class System:
    """Opened for one test. Driver."""

    def __init__(self, kind: str, harness: SourceHarness) -> None:
        self.kind, self.harness = kind, harness
        self._closed: list[Any] = []

    def has(self, member: str) -> bool:
        """Whether the harness has something that it may not have."""
        left_out = getattr(type(self.harness), member) is getattr(SourceHarness, member)
        return member not in self.harness.cannot and not left_out

    def call(self, member: str, *arguments: Any) -> Any:
        """Ask the harness for something that it may not have. Raises `NotShown` or `CannotBe` then."""
        if (why := self.harness.cannot.get(member)) is not None:
            raise CannotBe(f"{member}: {why}")
        if getattr(type(self.harness), member) is getattr(SourceHarness, member):
            raise NotShown("the harness", f"it has no {member}")
        with blamed(member, but=(NotShown, CannotBe)):
            try:
                return getattr(self.harness, member)(*arguments)
            except KeptByReader as kept:
                raise CannotBe(f"{member}: {kept}") from kept

    def source(self) -> OpenSource:
        """The source, opened anew."""
        with blamed("source_options"):
            options = dict(self.harness.source_options)
        opened = open_log_source(self.kind, options, name="tested", origin=ORIGIN)
        self._closed.append(opened)
        return opened

    def table(self, name: str = "t") -> Table:
        """A new table, empty."""
        with blamed("make_table", but=(ValueError,)):
            self.harness.make_table(name)
        return Table(self, name)

    def packages(self, log: CheckedLog) -> set[str]:
        """Those whose modules are the source's own, and the harness's."""
        modules = {offer.module for offer in installed_sources() if offer.name == self.kind}
        modules |= {each.__module__ for kind in (type(log.log), type(self.harness)) for each in kind.mro()}
        others = {"abc", "builtins", "laketier_conformance", "laketier_source_conformance"}
        return {module.partition(".")[0] for module in modules} - others

    def close(self) -> None:
        """End all that was opened."""
        for each in reversed(self._closed):
            each.close()
        with blamed("close"):
            self.harness.close()

    def closes(self, log: Any) -> None:
        """Keep a log in mind, to be closed at the end."""
        self._closed.append(log)


_PAGES = 25_000
"""Rows that a client fetches in several pages."""


class Table:
    """A table and the rows that a reader must see of it, in the order in which they were appended."""

    def __init__(self, system: System, name: str) -> None:
        self.system, self.name = system, name
        self.rows: list[Row] = []
        self._next = 1

    @property
    def named(self) -> dict[str, Any]:
        """What another process needs to open the table."""
        harness = self.system.harness
        options = {"options": dict(harness.source_options), "table_options": dict(harness.table_options)}
        return {"kind": self.system.kind, "table": self.listed, **options}

    @property
    def listed(self) -> str:
        """Its name in the source."""
        with blamed("listed"):
            return self.system.harness.listed(self.name)

    def numbers(self, count: int) -> range:
        """Numbers of rows that no other row of the table has."""
        first, self._next = self._next, self._next + count
        return range(first, self._next)

    def append(self, count: int = 5) -> list[Row]:
        """Append so many rows, and return them."""
        with blamed("append"):
            rows: list[Row] = [dict(row) for row in self.system.harness.append(self.name, self.numbers(count))]
        if len(rows) != count:
            raise HarnessFailed(f"the harness's append returned {len(rows)} rows for {count} numbers")
        self.rows += rows
        return rows

    def append_pages(self, count: int) -> int:
        """Append so many rows and, where the harness has ``append_many``, more than a client fetches at once. Returns
        how many rows the table has then."""
        self.append(count)
        if not self.system.has("append_many"):
            return len(self.rows)
        self.ask("append_many", _PAGES)
        return len(self.rows) + _PAGES

    def ask(self, member: str, *arguments: Any) -> Any:
        """Ask the harness for something of this table."""
        return self.system.call(member, self.name, *arguments)

    def log(self) -> CheckedLog:
        """The log, opened anew by a source that was opened anew; each of its answers is checked as in a round."""
        with blamed("table_options"):
            options = dict(self.system.harness.table_options)
        log = CheckedLog.of(self.system.source().open(self.listed, options), self.listed)
        heard()
        self.system.closes(log)
        return log

    def expect_rows(self, found: Sequence[Row], sentence: str, rows: Sequence[Row] | None = None) -> None:
        """``found`` are the table's rows, each once: in their order, where they are of one bucket."""
        wanted = self.rows if rows is None else rows
        expect(ordered(found), ordered(wanted), sentence)


def ordered(rows: Sequence[Row]) -> list[str]:
    """Rows in an order of their own, as text: of several buckets nobody knows which row comes first."""
    return sorted(map(text_of, rows))


def text_of(row: Row) -> str:
    """A row as text that tells 1 from 1.0, and is equal for two values that are not numbers."""
    return f"{{{', '.join(f'{name}: {_text(value)}' for name, value in row.items())}}}"


def _text(value: object) -> str:
    """A moment by itself: libraries have a class of time zones each."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return f"{value.replace(tzinfo=None) - (value.utcoffset() or timedelta(0))} UTC"
    if isinstance(value, Mapping):
        return text_of(value)
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, list | tuple) else repr(value)


@contextmanager
def blamed(member: str, but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Whatever the block raises is the harness's own error."""
    before = dict(os.environ)
    try:
        with asking_a_harness():
            yield
        keep_changes(before)
    except but:
        raise
    except Exception as error:
        raise HarnessFailed(
            f"the harness's {member} ended in {told(error)}: an error of the harness is no answer of the source. "
            "Mend the harness, or say in `cannot` why the system can't have it"
        ) from error
