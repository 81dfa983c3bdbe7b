"""The cells of the open lane: a driver that leaves a file open from epoch to epoch, and whoever comes after it.

Its first task appends to the open file, and the others write files of their own beside it. While files are open,
laketier's reader sees the rows; when all is over, other readers do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from laketier.tiering.failpoints import PUBLISH_BEFORE
from laketier_verification.faults.cells import EPOCH, Cell, Passage, collected, error, kill
from laketier_verification.faults.matrix import Begun, Chosen, Lane, Result, removed, scratch
from laketier_verification.faults.pipeline import Pipeline, Unexpected
from laketier_verification.faults.processes import Forked

FILE_FORMATS = ("json", "csv", "arrow")
LANES = tuple(f"open {name}" for name in FILE_FORMATS)
_ENDING = 4
"""The epoch in which the first file reaches its size, and gets its end."""
_MOST_ROWS = 24


def settings_of(file_format: str) -> dict[str, Any]:
    """Of each life (see `bare.live`). All have two tasks, so that a file's size is reached in epoch `_ENDING`."""
    keys = {"open-files": "true", "file-format": file_format, "target-file-rows": str(_MOST_ROWS)}
    return {
        "open_files": True,
        "tasks": 2,
        "keys": {f"lake.localfile.{key}": value for key, value in keys.items()},
    }


class OpenLane(Lane):
    """The cells of one file format."""

    def __init__(self, file_format: str, folder: Path) -> None:
        self.lane = f"open {file_format}"
        settings = settings_of(file_format)
        cold = Forked()
        try:
            first = Pipeline("localfile", folder / "record", cold, settings=dict(settings))
            told = first.live("", "finished", record=True, modules=True)
            second = Pipeline("localfile", folder / "recover", cold, settings=dict(settings))
            second.die(_KILLED)
            recovery = second.live("", "finished", record=True)
        finally:
            cold.close()
        self.passage, self.recovery = (Passage.of([tuple(hit) for hit in each["passed"]]) for each in (told, recovery))
        processes = Forked([name for name in told["modules"] if name != "__main__"])
        super().__init__("localfile", open_cells(self.lane, self.passage, self.recovery), processes, **settings)


def run_open(file_formats: Sequence[str], chosen: Chosen, begun: Begun) -> Iterator[Result]:
    """All chosen cells of the file formats. ``begun`` is told each lane and how many cells it has."""
    for name in file_formats:
        with scratch() as folder, OpenLane(name, folder) as lane:
            cells = [cell for cell in lane.cells if chosen(cell)]
            begun(lane.lane, len(cells))
            for number, cell in enumerate(cells):
                with removed(folder / f"cell-{number}") as place:
                    yield lane.run(cell, place)


def open_cells(lane: str, passage: Passage, recovery: Passage) -> Iterator[Cell]:
    """All cells. ``recovery``: of a driver that begins with epoch `EPOCH` and finishes what another left open."""

    def cell(fault: str, point: str, script: Callable[[Pipeline], None], needs: str = "") -> Cell:
        return Cell(lane, "localfile", fault, point, script, needs)

    for point in passage.points:
        hit = passage.hit(point)
        yield cell("kill with a file open", point, partial(kill, point=point, hit=hit))
        yield cell("kill in the first epoch", point, partial(kill, point=point, hit=1))
        if _ENDING in passage.hits[point]:
            ending = passage.hit(point, _ENDING)
            yield cell("kill while a file gets its end", point, partial(kill, point=point, hit=ending))
        last = sum(passage.hits[point].values())
        yield cell("kill while the last files are finished", point, partial(_kill_at_the_end, point=point, hit=last))
        yield cell("error once, a file open", point, partial(error, point=point, hit=f"@{hit}"))
        if EPOCH in passage.hits[point]:
            yield cell("pause with a file open, while a second driver finishes it", point,
                       partial(_overtaken, point=point, hit=hit))  # fmt: skip
            yield cell("pause with a file open, while a driver with a newer lease finishes it", point,
                       partial(_overtaken, point=point, hit=hit, fence=1))  # fmt: skip
            yield cell("pause with a file open, while it is finished by hand", point,
                       partial(_finished_by_hand, point=point, hit=hit))  # fmt: skip
            yield cell("pause with a file open, while orphans are collected", point,
                       partial(collected, point=point, hit=hit), "orphans")  # fmt: skip
    for point in recovery.points:
        if EPOCH in recovery.hits[point]:
            hit = recovery.hit(point)
            yield cell("kill who finishes an open file", point, partial(_kill_successor, point=point, hit=hit))
            yield cell("fail who finishes an open file", point, partial(_fail_successor, point=point, hit=hit))
            yield cell("pause who finishes an open file, while another does", point,
                       partial(_overtaken_successor, point=point, hit=hit))  # fmt: skip
            if EPOCH not in passage.hits.get(point, ()):
                yield cell("kill who finishes an open file by hand", point, partial(_kill_by_hand, point=point))
    yield cell("write behind what was recorded of an open file", "after a kill", _written_behind)
    yield cell("lose an open file", "after a kill", partial(_damaged, damage=lambda path: path.unlink()))
    yield cell("cut an open file", "to half", partial(_damaged, damage=_cut))
    yield cell("change an open file", "one byte", partial(_damaged, damage=_changed))


_KILLED = f"{PUBLISH_BEFORE}=kill@{EPOCH + 1}"
"""Epochs before `EPOCH` have landed, and are in a file that is open."""


def _overtaken(pipeline: Pipeline, point: str, hit: int, fence: int = 0) -> None:
    """A driver stands still with its file open; another finishes the file by copy, and goes on; the first wakes up,
    appends to what it has open, and is refused."""
    first = pipeline.start(f"{point}=pause(FLAG)@{hit}")
    if not first.until_paused():
        raise Unexpected(f"it did not reach {point}: {first.wait()}")
    pipeline.look()
    pipeline.finish(fence=fence)
    first.resume()
    pipeline.end(first, "Fenced" if fence else "Stale", "Overtaken", "StagedFileLost")
    pipeline.look()
    pipeline.settings["fence"] = fence
    pipeline.finish()


def _finished_by_hand(pipeline: Pipeline, point: str, hit: int) -> None:
    """A driver stands still with its file open; a person takes it for dead; it wakes up. Its epoch is refused, or goes
    into another file."""
    first = pipeline.start(f"{point}=pause(FLAG)@{hit}")
    if not first.until_paused():
        raise Unexpected(f"it did not reach {point}: {first.wait()}")
    _finish_by_hand(pipeline)
    first.resume()
    pipeline.end(first, "finished", "Overtaken", "StagedFileLost")
    pipeline.look()
    pipeline.finish()


def _finish_by_hand(pipeline: Pipeline) -> None:
    pipeline.live("", "finished", finish_by_hand=True)
    pipeline.look()


def _kill_at_the_end(pipeline: Pipeline, point: str, hit: int) -> None:
    """All epochs may be acknowledged then, so the pipeline has no reason to come back."""
    kill(pipeline, point, hit)
    _finish_by_hand(pipeline)


def _kill_by_hand(pipeline: Pipeline, point: str) -> None:
    pipeline.die(_KILLED)
    pipeline.die(f"{point}=kill", finish_by_hand=True)
    _finish_by_hand(pipeline)
    pipeline.finish()


def _kill_successor(pipeline: Pipeline, point: str, hit: int) -> None:
    pipeline.die(_KILLED)
    pipeline.die(f"{point}=kill@{hit}")
    pipeline.finish()


def _fail_successor(pipeline: Pipeline, point: str, hit: int) -> None:
    pipeline.die(_KILLED)
    pipeline.live(f"{point}=error@{hit}", "finished", "failed")
    pipeline.look()
    pipeline.finish()


def _overtaken_successor(pipeline: Pipeline, point: str, hit: int) -> None:
    pipeline.die(_KILLED)
    _overtaken(pipeline, point, hit)


def _the_open_file(pipeline: Pipeline) -> Path:
    """Of what lies where files are staged, the one that is recorded as open."""
    (entry,) = pipeline.lake.storage.state(pipeline.info).head.open_files  # type: ignore[attr-defined]
    return Path(pipeline.info.location) / "__in_progress" / f"{Path(entry.path).name}.inprogress"


def _written_behind(pipeline: Pipeline) -> None:
    pipeline.die(_KILLED)
    with _the_open_file(pipeline).open("ab") as file:
        file.write(b'{"id": 77, "name": "of nobody"}\n' * 3)
    pipeline.look()
    pipeline.finish()


def _damaged(pipeline: Pipeline, damage: Callable[[Path], None]) -> None:
    """Rows are lost, by somebody who harms files: what counts is that it is said, and nothing published."""
    pipeline.die(_KILLED)
    path = _the_open_file(pipeline)
    kept = path.read_bytes()
    damage(path)
    result = pipeline.live("", "CorruptTable", "OpenFileDamaged")
    if path.name not in result["message"]:
        raise Unexpected(f"it does not say which file is damaged: {result['message']}")
    path.write_bytes(kept)  # from the backup
    pipeline.look()
    pipeline.finish()


def _cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
