"""A new process that replays the epoch of `foreign` once: what a recovery costs that remembers nothing.

It replays an epoch on a table of its own first, so that what is measured is not the import of an engine.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

from laketier.tiering import RoundOutcome
from laketier_verification.faults.foreign import OUR_ROWS
from laketier_verification.faults.marked import MarkedTable, rows_of


def replay(table: MarkedTable) -> float:
    """The milliseconds of CPU that it took. Raises `AssertionError` when the epoch was not recognised."""
    before = time.process_time()
    outcome = table.append(0, rows_of(0, "ours", OUR_ROWS)).outcome
    assert outcome is RoundOutcome.ALREADY_THERE, outcome
    return (time.process_time() - before) * 1000


def main(format: str, warehouse: str) -> None:
    with tempfile.TemporaryDirectory(prefix="laketier-newcomer-") as folder:
        warm = MarkedTable(format, folder)
        warm.create()
        warm.append(0, rows_of(0, "ours", OUR_ROWS))
        replay(warm)
    first = replay(MarkedTable(format, warehouse))
    print(json.dumps({"first": first, "process": time.process_time() * 1000}))


if __name__ == "__main__":
    main(*sys.argv[1:])
