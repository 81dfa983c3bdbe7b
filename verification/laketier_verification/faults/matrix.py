"""Running cells one after the other, and what each of them showed."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from laketier.registry import load_format
from laketier.spi import Feature, support_of
from laketier_verification.faults.cells import EPOCH, Cell, Passage, bare_cells
from laketier_verification.faults.pipeline import Pipeline, Unexpected
from laketier_verification.faults.processes import Forked, Processes
from laketier_verification.faults.sabotage import NotHere

FORMATS = ("delta", "iceberg", "lance", "localfile")


@dataclass(frozen=True)
class Result:
    """What became of a cell. ``status``: ``passed``, ``failed``, or ``not run`` with ``why``. Rows and epochs are
    summed over every look at the table, while it recovered and at the end. ``leftovers`` are files that no snapshot
    needs, ``unexplained`` those of them that orphan collection does not find (None where the format has none).
    ``recovery_seconds``: from the start of the next driver until the interrupted epoch was acknowledged."""

    lane: str
    format: str
    fault: str
    point: str
    status: str
    why: str = ""
    lost: int = 0
    doubled: int = 0
    alien: int = 0
    torn: int = 0
    leftovers: int = 0
    unexplained: int | None = None
    endangered: int | None = None
    recovery_seconds: float | None = None
    seconds: float = 0.0
    lives: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.lane} {self.format}: {self.fault}, {self.point}"

    def to_plain(self) -> dict[str, Any]:
        """As JSON's own types."""
        return asdict(self)


def passage_of(format: str, processes: Processes, folder: Path, **settings: Any) -> tuple[Passage, list[str]]:
    """What a driver without faults passes, and which modules it imported."""
    pipeline = Pipeline(format, folder, processes, settings=settings)
    result = pipeline.live("", "finished", record=True, modules=True, tasks=2)
    return Passage.of([tuple(item) for item in result["passed"]]), result["modules"]


class Lane:
    """Some cells of a format, and the processes to run them with. ``settings``: of each life in it."""

    def __init__(self, format: str, cells: Iterable[Cell], processes: Forked, **settings: Any) -> None:
        self.format = format
        self.cells = list(cells)
        self.processes = processes
        self._settings = settings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.close()

    def cell(self, fault: str, point: str) -> Cell:
        """The cell of that name."""
        return next(cell for cell in self.cells if (cell.fault, cell.point) == (fault, point))

    def run(self, cell: Cell, folder: Path, **settings: Any) -> Result:
        """One cell, in a folder of its own."""
        return run_cell(cell, Pipeline(self.format, folder, self.processes, settings=self._settings | settings))


class BareLane(Lane):
    """The cells of one format, bare."""

    def __init__(self, format: str, folder: Path) -> None:
        cold = Forked()
        try:
            passage, modules = passage_of(format, cold, folder / f"{format}-record")
            replacing = {
                mode: passage_of(format, cold, folder / f"{format}-{mode}", overwrite=EPOCH, overwrite_by=mode)[0]
                for mode, feature in (("overwrite", Feature.OVERWRITE), ("upsert", Feature.UPSERT))
                if support_of(load_format(format).features, feature).full
            }
        finally:
            cold.close()
        names = [name for name in modules if name != "__main__"]
        self.points = passage.points
        super().__init__(format, bare_cells(format, passage, replacing), Forked(names))


def run_cell(cell: Cell, pipeline: Pipeline) -> Result:
    """Play the script, then judge."""
    about: dict[str, Any] = {"lane": cell.lane, "format": cell.format, "fault": cell.fault, "point": cell.point}
    if cell.needs == "orphans" and not support_of(load_format(cell.format).features, Feature.ORPHAN_COLLECTION).full:
        return Result(**about, status="not run", why="orphan collection is not built")
    started = time.monotonic()
    problem = ""
    try:
        cell.script(pipeline)
    except NotHere as reason:
        return Result(**about, status="not run", why=str(reason))
    except Unexpected as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - a table that a reader can't read is a result, and so is a hang
        problem = f"{type(error).__name__}: {error}"
    try:
        verdict = pipeline.verdict()
    except Exception as error:  # noqa: BLE001 - a table that can't be read is a result too
        why = problem or f"the table can't be judged: {error!r}"
        return Result(**about, status="failed", why=why, lives=pipeline.lives)
    files = verdict.files
    if not problem and not verdict.clean:
        named = [*files.unexplained, *(f"would be deleted: {path}" for path in files.endangered)]
        problem = "; ".join(named[:5]) or "rows differ"
    return Result(
        **about,
        status="failed" if problem or not verdict.clean else "passed",
        why=problem,
        lost=verdict.lost,
        doubled=verdict.doubled,
        alien=verdict.alien,
        torn=verdict.torn,
        leftovers=len(files.unreferenced),
        unexplained=len(files.unexplained) if files.built else None,
        endangered=len(files.endangered) if files.built else None,
        recovery_seconds=pipeline.recovery_seconds,
        seconds=time.monotonic() - started,
        lives=pipeline.lives,
    )


Chosen = Callable[[Cell], bool]
Begun = Callable[[str, int], None]


def run_bare(formats: Sequence[str], chosen: Chosen, begun: Begun) -> Iterator[Result]:
    """All chosen cells of the formats. ``begun`` is told each format and how many cells it has."""
    for name in formats:
        with scratch() as folder, BareLane(name, folder) as lane:
            cells = [cell for cell in lane.cells if chosen(cell)]
            begun(f"bare {name}", len(cells))
            for number, cell in enumerate(cells):
                with removed(folder / f"cell-{number}") as place:
                    yield lane.run(cell, place)


def run_spark(formats: Sequence[str], chosen: Chosen, begun: Begun, *, every: bool = False) -> Iterator[Result]:
    """The cells on Spark. One driver serves them all, until a cell kills it."""
    from laketier_verification.faults.spark_cells import spark_cells
    from laketier_verification.faults.spark_lane import SparkPipeline, SparkProcesses

    processes = SparkProcesses()
    try:
        for name in formats:
            with scratch() as folder:
                with BareLane(name, folder) as bare:
                    points = bare.points
                cells = [cell for cell in spark_cells(name, points, FORMATS.index(name), every=every) if chosen(cell)]
                begun(f"Spark {name}", len(cells))
                for number, cell in enumerate(cells):
                    with removed(folder / f"cell-{number}") as place:
                        result = run_cell(cell, SparkPipeline(name, place, processes, lane=cell.lane))
                        if result.status == "failed":
                            processes.kill()  # what is left of it is no concern of the next cell
                        yield result
    finally:
        processes.close()


@contextmanager
def removed(folder: Path) -> Iterator[Path]:
    """A folder that may be made, and is gone afterwards."""
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="laketier-faults-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
