"""One driver of a pipeline, in a process of its own:
``python -m laketier_verification.faults.driver FORMAT WAREHOUSE NAME``.

It stages its own rows for an epoch, says so, waits for the word, and commits. Asked to be gated, it also stops between
the check of the watermark and the commit, where a zombie stops in real life.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from laketier.kit.failpoints import observed
from laketier.spi import Refused, Token
from laketier.tiering import TieringRound
from laketier.tiering.failpoints import PUBLISH_BEFORE
from laketier_verification.faults.asking import Answers, serve
from laketier_verification.faults.marked import PATIENT, MarkedTable, rows_of


def main() -> None:
    kind, warehouse, name = sys.argv[1:4]
    table = MarkedTable(kind, warehouse)
    table.plugin  # noqa: B018 - imports the plugin before the first request
    serve({"race": lambda answers, request: _race(table, name, answers, request)})


def _race(table: MarkedTable, name: str, answers: Answers, request: dict[str, Any]) -> dict[str, Any]:
    """Run one round, and say how it ended, and which files it had staged."""
    epoch, rows = request["epoch"], request["rows"]
    factory = table.factory
    tiering = TieringRound(factory, token=Token("raced", "run", epoch, request["fence"]), policy=PATIENT)
    staged: list[str] = []
    passes = 0

    def gate(point: str) -> None:
        nonlocal passes
        if point != PUBLISH_BEFORE:
            return
        passes += 1
        if request["gated"] and passes == 1:
            answers.say(at=point)
            answers.wait()

    try:
        tiering.begin()
        results = table.stage(factory, [[rows_of(epoch, name, rows, part)] for part in ("a", "b")])
        staged = [file.path for result in results for file in result.files]
        answers.say(staged=len(staged))
        answers.wait()
        with ExitStack() as stack:
            stack.enter_context(observed(gate))
            result = tiering.commit(results)
        outcome = result.outcome.name
    except Refused as refusal:
        outcome = type(refusal).__name__
    return {"outcome": outcome, "files": staged, "passes": passes}


if __name__ == "__main__":
    main()
