"""Two pipelines of ours, and others who append, compact, expire and index, each in a process of its own, all at once.

Theirs may give way, as their libraries say; ours may not. In the end each row that anybody was told is in the table is
there, once. The others work by ration, a bit more with each epoch of ours: that nothing is lost is shown, and not how
long others who never rest can hold two pipelines up.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laketier.tiering import RoundOutcome
from laketier_verification.faults.asking import Answers, Process, serve
from laketier_verification.faults.foreign_read import ForeignReader
from laketier_verification.faults.housekeeping import THEIRS, foreigner_for
from laketier_verification.faults.marked import MarkedTable, marks_of, rows_of
from laketier_verification.faults.watcher import Scoreboard

PIPELINES = ("p", "q")
ROWS = 3
RATION = 8
"""So many pieces of work does each of the others get with the start, and with each epoch of ours."""
WORK = {
    "delta": ("append", "compact", "vacuum"),
    "iceberg": ("append", "compact", "expire"),
    "lance": ("append", "compact", "expire", "index"),
    "localfile": ("append",),
}


@dataclass
class Meddling:
    """What each worker did: ``done``, and ``gave_way`` by the name of its library's error."""

    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def run(format: str, epochs: int, folder: Path) -> Meddling:
    """Run ``epochs`` of each pipeline on a new table while the others work."""
    warehouse = str(folder / "warehouse")
    table = MarkedTable(format, warehouse).create()
    location = str(table.location)
    board = Scoreboard(folder / "scoreboard", new=True)
    result = Meddling()
    with ExitStack() as stack:
        stack.callback(board.close)

        def start(name: str) -> Process:
            arguments = (format, warehouse, str(folder / "scoreboard"), name)
            return stack.enter_context(Process("laketier_verification.faults.meddling", *arguments))

        ours = {name: start(name) for name in PIPELINES}
        others = {name: start(name) for name in WORK[format]}
        for process in others.values():
            process.begin("meddle")
        for process in ours.values():
            process.begin("drive", epochs=epochs)
        for process in [*ours.values(), *others.values()]:
            assert process.answer() == {"ready": True}
        for process in [*ours.values(), *others.values()]:
            process.say()
        driving = {process: name for name, process in ours.items()}
        while driving:
            process = Process.first_of(list(driving))
            answer = process.answer()
            if "published" not in answer:
                result.workers[driving.pop(process)] = answer
            for other in others.values():
                other.say()
        board.set(0, 0, over=True)
        for name, process in others.items():
            process.say("over")
            result.workers[name] = process.answer()
    expected = Counter({(epoch, name): ROWS for name in PIPELINES for epoch in range(epochs)})
    for name, answer in result.workers.items():
        if "done" not in answer:
            result.wrong.append(f"{name}: {answer}")
    expected.update({(number, THEIRS): 1 for number in result.workers["append"].get("appended", [])})
    reader = ForeignReader(format, warehouse, location)
    try:
        found = marks_of(reader.read())
    finally:
        reader.close()
    if found != expected:
        result.wrong.append(f"lost {expected - found}, more {found - expected}")
    if table.marks() != expected:
        result.wrong.append("our own reader sees something else")
    return result


def _drive(answers: Answers, request: dict[str, Any]) -> dict[str, Any]:
    table, _, name = _arguments()
    answers.say(ready=True)
    answers.wait()
    conflicts = 0
    for epoch in range(request["epochs"]):
        result = table.append(epoch, rows_of(epoch, name, ROWS), pipeline=name)
        assert result.outcome is RoundOutcome.PUBLISHED, result
        conflicts += result.conflicts
        answers.say(published=epoch)
    return {"done": request["epochs"], "conflicts": conflicts}


def _meddle(answers: Answers, _: dict[str, Any]) -> dict[str, Any]:
    table, board, name = _arguments()
    other = foreigner_for(table)
    gave_way: Counter[str] = Counter()
    appended: list[int] = []
    done = number = left = 0
    answers.say(ready=True)
    try:
        while not (board.get()[2] and done):
            if not left and not board.get()[2]:
                answers.wait()
                left = RATION
            left -= 1
            try:
                other.work(name, number)
                done += 1
                if name == "append":
                    appended.append(number)
                    number += 1
            except Exception as error:  # noqa: BLE001 - counted, and judged by the rows
                gave_way[f"{type(error).__name__}: {str(error)[:60]}"] += 1
                # Whether it landed is for them to find out; so that nobody has to, the number is not used again, and
                # must not be in the table.
                number += name == "append"
    finally:
        other.close()
    while answers.wait() != "over":
        pass
    return {"done": done, "gave_way": dict(gave_way), "appended": appended}


def _arguments() -> tuple[MarkedTable, Scoreboard, str]:
    format_name, warehouse, board, name = sys.argv[1:5]
    return MarkedTable(format_name, warehouse), Scoreboard(Path(board)), name


if __name__ == "__main__":
    serve({"drive": _drive, "meddle": _meddle})
