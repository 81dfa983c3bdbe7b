"""Wall time and CPU-seconds of this process and all below it: the JVM, its Python workers, our own processes."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil


@dataclass(frozen=True)
class Sample:
    """One run."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Case:
    """Something to measure. ``run`` gets a folder that is new and empty; ``check`` raises when what ``run`` left
    there is not what it should have written, and is not measured."""

    name: str
    run: Callable[[Path], object]
    check: Callable[[Path], object] | None = None


class TreeCpu:
    """CPU-seconds that this process and all below it use from now on.

    Each process is counted by itself. What a parent says of children that ended can't be used: pyspark's daemon ignores
    SIGCHLD, so the time of its workers is in nobody's account, and an idle worker that Spark ends meanwhile would take
    its whole past from the sum. A process that both begins and ends in between is not counted; the cases have none.
    """

    def __init__(self) -> None:
        self._before = _cpu_by_process()

    def used(self) -> float:
        """CPU-seconds since this was made."""
        return sum(cpu - self._before.get(process, 0.0) for process, cpu in _cpu_by_process().items())


def _cpu_by_process() -> dict[tuple[int, float], float]:
    """CPU-seconds of this process and its living descendants, by process id and start time."""
    found: dict[tuple[int, float], float] = {}
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            found[process.pid, process.create_time()] = times.user + times.system
    return found


@contextmanager
def measured(into: list[Sample]) -> Iterator[None]:
    """Measure the block and append the sample."""
    gc.collect()
    cpu, wall = TreeCpu(), time.perf_counter()
    yield
    into.append(Sample(time.perf_counter() - wall, cpu.used()))


@dataclass(frozen=True)
class Measured:
    """The runs of one case, and how many bytes one left in its folder."""

    samples: list[Sample]
    bytes: int


def interleaved(
    cases: Sequence[Case], scratch: Path, repetitions: int, say: Callable[[str], None]
) -> Mapping[str, Measured]:
    """Run every case once unmeasured, checking what it wrote, and then all of them in turn, ``repetitions`` times: what
    else the machine does then falls on all alike. The order turns round each time."""
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    sizes: dict[str, int] = {}
    for case in cases:
        say(f"warming up: {case.name}")
        with own_folder(scratch) as folder:
            case.run(folder)
            sizes[case.name] = folder_bytes(folder)
            if case.check is not None:
                case.check(folder)
    for repetition in range(repetitions):
        for case in cases if repetition % 2 == 0 else reversed(cases):
            say(f"{repetition + 1}/{repetitions}: {case.name}")
            with own_folder(scratch) as folder, measured(samples[case.name]):
                case.run(folder)
    return {name: Measured(taken, sizes[name]) for name, taken in samples.items()}


def median(samples: Sequence[Sample]) -> Sample:
    """The median of each figure by itself."""
    return Sample(statistics.median(s.wall for s in samples), statistics.median(s.cpu for s in samples))


def folder_bytes(folder: Path) -> int:
    """The size of all files below ``folder``."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def own_folder(scratch: Path) -> Iterator[Path]:
    """A folder of its own for each run: what a library remembers of a place must not meet other files there."""
    scratch.mkdir(parents=True, exist_ok=True)
    # Python that Spark called for a micro-batch goes on for a moment after its query was stopped, and makes files.
    with TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
