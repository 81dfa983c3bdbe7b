"""A read takes little memory, however many rows there are."""

from __future__ import annotations

import pytest

from laketier_conformance.expect import NotShown, expect
from laketier_source_conformance.children import Processes
from laketier_source_conformance.reads import whole
from laketier_source_conformance.system import Table

_MIB = 1 << 20
_MOST = 400 * _MIB
"""Less than a million rows as objects of Python."""
_ROWS = 1_000_000


def test_a_million_rows_are_read_in_little_memory(
    table: Table, processes: Processes, pytestconfig: pytest.Config
) -> None:
    count = pytestconfig.getoption("log_rows")
    if count < _ROWS:
        raise NotShown("a million rows", f"--log-rows={count}")
    table.ask("append_many", count)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    told = processes.count(log.log, splits)
    expect(told["rows"], count, "rows of a large table that are read")
    assert told["largest"] <= count // 4, (
        f"{count} rows are read: expected batches of some thousands, found one of {told['largest']} rows"
    )
    assert told["grown"] < _MOST, (
        f"{count} rows are read, and no batch is kept: expected less than {_MOST // _MIB} MiB, the process grew by "
        f"{told['grown'] // _MIB} MiB"
    )
