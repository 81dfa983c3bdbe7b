"""SIGKILL at moments drawn from a seed: the same seed, the same delays."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from laketier_verification.faults.cells import Cell
from laketier_verification.faults.matrix import BareLane, Result, run_cell, scratch
from laketier_verification.faults.pipeline import Pipeline

EPOCHS = 12
MOST_KILLS = 4


def delays_of(seed: int, format: str, rounds: int, span: float) -> list[list[float]]:
    """For each round, after how many seconds each of its lives is killed."""
    draw = random.Random(f"{seed} {format}")
    return [[draw.uniform(0, span) for _ in range(draw.randint(1, MOST_KILLS))] for _ in range(rounds)]


def run_random(format: str, seed: int, rounds: int, span: float) -> Iterator[Result]:
    """Rounds of a pipeline in the bare lane. ``span``: the longest delay, in seconds."""
    with scratch() as folder, BareLane(format, folder) as lane:
        for number, delays in enumerate(delays_of(seed, format, rounds, span)):

            def script(pipeline: Pipeline, delays: list[float] = delays) -> None:
                _kill_after_each(pipeline, delays)

            cell = Cell("random", format, f"seed {seed}", f"round {number}", script)
            yield run_cell(cell, Pipeline(format, folder / str(number), lane.processes, epochs=EPOCHS))


def _kill_after_each(pipeline: Pipeline, delays: list[float]) -> None:
    for delay in delays:
        life = pipeline.start()
        time.sleep(delay)  # the fault itself: no test waits for something by it
        life.kill()
        if pipeline.end(life, "killed", "finished")["outcome"] == "finished":
            return
        pipeline.look()
    pipeline.finish()
