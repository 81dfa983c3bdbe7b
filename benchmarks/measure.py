"""Wall time and CPU-seconds of this process and all below it: the JVM, its Python workers, our own processes."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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


def tree_cpu() -> float:
    """CPU-seconds of this process, its living descendants, and those of them that have ended and were waited for."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


@contextmanager
def measured(into: list[Sample]) -> Iterator[None]:
    """Measure the block and append the sample."""
    gc.collect()
    cpu, wall = tree_cpu(), time.perf_counter()
    yield
    into.append(Sample(time.perf_counter() - wall, tree_cpu() - cpu))


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
    with TemporaryDirectory(dir=scratch) as folder:
        yield Path(folder)
