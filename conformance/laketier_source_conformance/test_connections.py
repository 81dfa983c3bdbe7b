"""A connection breaks in the midst of an answer: each row comes once, or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager

import pytest

from laketier.spi import LaketierError, LogSplit, TableLog
from laketier_conformance.expect import NotShown, expect
from laketier_source_conformance.reads import Read, carried, read_splits, whole
from laketier_source_conformance.system import Table, ordered
from laketier_source_conformance.way import END, RESET, STALL, Way

_CUTS = 12
_LINES = ", at the end of a line"
_PATIENCE = 300
"""Seconds until a read that waits for an answer is taken for one that waits for ever: clients have limits of a minute,
and try some times. No test asserts how long one takes."""


@contextmanager
def _way_to(table: Table) -> Iterator[Way]:
    """The way to the system of the table, which all logs take that are opened in the block."""
    made = Way(table.system.call("endpoint"))
    table.system.harness.answers_at = made.address
    try:
        yield made
    finally:
        table.system.harness.answers_at = None
        made.close()


def _filled(table: Table, way: Way) -> tuple[TableLog, list[LogSplit], int]:
    """A log, its splits, and how many bytes a read of them takes."""
    for count in (7, 1, 40):
        table.append(count)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    before = way.handed
    table.expect_rows(read_splits(carried(log), splits).rows, "a log is read by a way that hands on all bytes")
    if (total := way.handed - before) == 0:
        raise NotShown("the harness", "no byte of a read came by `answers_at`, so none can be held back")
    return log, splits, total


@pytest.mark.parametrize("times", [1, None], ids=["once", "each time"])
@pytest.mark.parametrize("how", [RESET, END])
def test_a_connection_that_breaks_costs_and_doubles_no_row(table: Table, how: str, times: int | None) -> None:
    with _way_to(table) as way:
        log, splits, total = _filled(table, way)
        for cut, lines in _cuts(total):
            with way.breaking(cut, how, times, lines):
                doing = f"a connection ends ({how}) after {cut} bytes of a read{_LINES if lines else ''}"
                _raises_or_is_whole(table, lambda: read_splits(carried(log), splits), doing)
        table.expect_rows(read_splits(carried(log), splits).rows, "a log is read after connections broke")


@pytest.mark.parametrize("how", [RESET, END])
def test_bounds_by_a_connection_that_breaks_are_an_error_or_right(table: Table, how: str) -> None:
    with _way_to(table) as way:
        for count in (7, 1, 40):
            table.append(count)
        log = table.log()
        before = way.handed
        right = log.bounds()
        total = way.handed - before
        for cut, lines in _cuts(total):
            with way.breaking(cut, how, None, lines):
                try:
                    found = table.log().bounds()
                except LaketierError:
                    continue
            at = f"after {cut} bytes{_LINES if lines else ''}"
            expect(found, right, f"`bounds`, where each connection ends ({how}) {at}")


def test_a_system_that_stalls_costs_no_row(table: Table) -> None:
    """It says nothing more, and keeps the connection: a read that waits needs an end of its patience."""
    with _way_to(table) as way:
        log, splits, total = _filled(table, way)
        with ThreadPoolExecutor(1) as pool:
            for cut in (total // 3, total - 1):
                with way.breaking(cut, STALL, None):
                    reading = pool.submit(read_splits, carried(log), splits)
                    try:
                        reading.exception(_PATIENCE)
                    except NotYet:
                        raise AssertionError(
                            f"a system says nothing more after {cut} bytes of a read: expected an error, and it still "
                            f"waits after {_PATIENCE} s. Give each answer a time limit; where there is one, let "
                            "`source_options` of the harness set a shorter one"
                        ) from None
                _raises_or_is_whole(table, reading.result, f"a system says nothing more after {cut} bytes of a read")


def _cuts(total: int) -> Iterator[tuple[int, bool]]:
    """After how many bytes of an answer, and whether at the next end of a line, where many formats look whole."""
    for cut in sorted({total * at // _CUTS for at in range(_CUTS)} | {total - 1}):
        yield cut, False
        yield cut, True


def _raises_or_is_whole(table: Table, read: Callable[[], Read], doing: str) -> None:
    try:
        found = read()
    except Exception:  # noqa: BLE001 - any error will do: a round that failed is tried again
        return
    lost = [row for row in ordered(table.rows) if row not in ordered(found.rows)]
    assert not lost, (
        f"{doing}: expected an error or each row, found {len(found.rows)} of {len(table.rows)} and no error"
    )
    expect(len(found.rows), len(table.rows), f"{doing}, and there was no error: rows, each once")
