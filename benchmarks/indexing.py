"""``python -m benchmarks.indexing``: an index built by one and by two Spark workers, beside pylance alone.

Workers are executors of their own (local-cluster), each with one task and pinned to one core, as the process of "one
thread" is. Every case leaves the index committed; before each run the table has none. All processes are warm: each has
built an index before.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import psutil
import pyspark
from rich.console import Console

from benchmarks import paragraphs
from benchmarks.documents import ANALYSES, Documents, rows_of
from benchmarks.measure import Case, Measured, Sample, interleaved, median
from benchmarks.others import environment, other, told
from benchmarks.report import Section, save, show

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_THREAD = {
    "LANCE_CPU_THREADS": "1",
    "LANCE_FTS_NUM_SHARDS": "1",
    "OMP_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKIO_WORKER_THREADS": "1",
}
"""What holds a process to about one thread; it is pinned to a core as well. Without ``LANCE_IO_THREADS``: a full-text
build of pylance 14.0.2 hangs where that is 1."""

ALL_CORES = {"LANCE_CPU_THREADS": str(os.cpu_count())}
"""By default Lance leaves two cores to reading and writing, and so builds with one thread on a machine of two."""

FRAGMENTS = 16
ALONE_ONE, ALONE_ALL = "pylance alone, one thread", "pylance alone, all cores"
HALVES = "pylance alone, two processes, a table of half the rows each"
MACHINE_ONE, MACHINE_TWO = "the machine: a process that only computes", "the machine: two, half each"
"""What two cores of this machine can give at the same time, while others use them too: the bound of two workers."""
_DIGESTS = 8_000
"""Of a MB each: some seconds."""
WORKERS = {1: "1 Spark worker of one thread", 2: "2 Spark workers of one thread"}
COLUMNS = {"inverted": "text", "btree": "size"}


def run(
    documents: Documents,
    kind: str,
    options: Mapping[str, Any],
    settings: argparse.Namespace,
    say: Callable[[str], None],
) -> list[Section]:
    """Wall time and CPU-seconds of a build, and the memory that each worker took at most."""
    column = COLUMNS[kind]
    scratch: Path = settings.work / "scratch"
    peaks: dict[str, list[int]] = {}
    with ExitStack() as stack:
        spark = stack.enter_context(_cluster(settings.work, settings.partition_mb))
        alone = {
            ALONE_ONE: stack.enter_context(_process(ONE_THREAD | _partition(settings.partition_mb), {0})),
            ALONE_ALL: stack.enter_context(
                _process(ALL_CORES | _partition(settings.partition_mb), os.sched_getaffinity(0))
            ),
        }
        location = documents.lake.load_table().location

        def case(name: str, build: Callable[[], object], pids: Callable[[], list[int]]) -> Case:
            def measured(_: Path) -> None:
                for pid in pids():
                    _forget_peak(pid)
                build()
                peaks.setdefault(name, []).extend(_peak(pid) for pid in pids())

            def checked(_: Path) -> None:
                (index,) = documents.lake.indexer(documents.lake.load_table()).indexes()
                if index.rows_not_indexed:
                    raise AssertionError(f"{name}: {index}")

            return Case(name, measured, checked)

        cases = [case(name, _alone(pool, location, kind, column, options), _pids(pool)) for name, pool in alone.items()]
        cases += [
            case(name, _on_spark(documents, spark, kind, column, options, parts), _python_workers)
            for parts, name in WORKERS.items()
        ]
        if settings.machine:
            cores = [stack.enter_context(_process(ONE_THREAD, {core})) for core in range(2)]
            cases.append(Case(MACHINE_ONE, lambda _: _computing(cores[:1])))
            cases.append(Case(MACHINE_TWO, lambda _: _computing(cores)))
            halves = _halves(documents, settings.work / "halves")
            cases.append(Case(HALVES, lambda _: _built_at_once(cores, halves, kind, column, options)))
        for engine, (name, python) in _others(settings).items():
            child = stack.enter_context(
                other(python, engine, location, column, options, ONE_THREAD if engine == "ray" else {})
            )
            cases.append(case(name, partial(told, child), _descendants(child)))
        measured = interleaved(cases, scratch, settings.repetitions, say)
    title = f"{kind} of {column}, {documents.dataset().count_rows():,} rows, {FRAGMENTS} fragments"
    return [_section(title, measured, peaks)]


def _section(title: str, measured: Mapping[str, Measured], peaks: Mapping[str, list[int]]) -> Section:
    section = Section(title)
    middle = {name: median(case.samples) for name, case in measured.items()}
    for name, sample in middle.items():
        alone = MACHINE_ONE if name in (MACHINE_ONE, MACHINE_TWO) else ALONE_ONE
        one = middle[alone]
        section.rows.append(
            {
                "case": name,
                "wall_s": round(sample.wall, 2),
                "cpu_s": round(sample.cpu, 2),
                "times as fast": round(one.wall / sample.wall, 2),
                "best, times": round(_best(measured[alone]).wall / _best(measured[name]).wall, 2),
                "CPU ratio": round(sample.cpu / one.cpu, 2),
                "best, CPU": round(_best(measured[name]).cpu / _best(measured[alone]).cpu, 2),
                "CPU per wall": round(sample.cpu / sample.wall, 2),
                "peak RSS, MB": round(max(peaks.get(name, [0])) / 1e6),
                "wall_s min-max": _range(measured[name].samples),
            }
        )
    section.notes.append("Commit and durability are included; Spark's are those of create_index. CPU: all processes.")
    section.notes.append(f"Load of the machine at the end, over a minute: {psutil.getloadavg()[0]:.1f}.")
    return section


def _best(case: Measured) -> Sample:
    """The least of each figure: what others on the machine do can only add to it."""
    return Sample(min(each.wall for each in case.samples), min(each.cpu for each in case.samples))


def _range(samples: list[Sample]) -> str:
    return f"{min(each.wall for each in samples):.2f}-{max(each.wall for each in samples):.2f}"


# -- cases -------------------------------------------------------------------------------------------------------------


def _alone(
    pool: ProcessPoolExecutor, location: str, kind: str, column: str, options: Mapping[str, Any]
) -> Callable[[], object]:
    def build() -> None:
        _drop(location)
        pool.submit(_build, location, kind, column, dict(options)).result()

    return build


def _build(location: str, kind: str, column: str, options: dict[str, Any]) -> None:
    word: Any = kind.upper()
    lance.dataset(location).create_scalar_index(column, word, name=f"{column}_idx", **options)


def _computing(processes: list[ProcessPoolExecutor]) -> None:
    """The same work, by one process or by several at once. It needs no memory and no disk."""
    for each in [pool.submit(_digest, _DIGESTS // len(processes)) for pool in processes]:
        each.result()


def _halves(documents: Documents, folder: Path) -> list[str]:
    """Two tables with half of the rows each, in half as many fragments."""
    shutil.rmtree(folder, ignore_errors=True)
    rows = documents.dataset().to_table()
    size = -(-len(rows) // FRAGMENTS)
    places = [str(folder / f"{half}.lance") for half in range(2)]
    for half, place in enumerate(places):
        part = rows.slice(half * len(rows) // 2, (half + 1) * len(rows) // 2 - half * len(rows) // 2)
        lance.write_dataset(part, place, max_rows_per_file=size)
    return places


def _built_at_once(
    processes: list[ProcessPoolExecutor], tables: list[str], kind: str, column: str, options: Mapping[str, Any]
) -> None:
    for table in tables:
        _drop(table)
    pairs = zip(processes, tables, strict=True)
    for each in [pool.submit(_build, table, kind, column, dict(options)) for pool, table in pairs]:
        each.result()


def _digest(times: int) -> None:
    data = bytes(1 << 20)
    for _ in range(times):
        hashlib.sha256(data)


def _on_spark(
    documents: Documents, spark: SparkSession, kind: str, column: str, options: Mapping[str, Any], parts: int
) -> Callable[[], object]:
    def build() -> None:
        _drop(documents.lake.load_table().location)
        documents.build(spark, column, kind, parts, options=options)

    return build


def _others(settings: argparse.Namespace) -> dict[str, tuple[str, Path]]:
    """The libraries beside which ours is measured, with the interpreters that have them."""
    given = {"ray": ("lance-ray, 2 workers", settings.ray), "daft": ("daft-lance, all cores", settings.daft)}
    return {engine: (name, python) for engine, (name, python) in given.items() if python is not None}


def _drop(location: str) -> None:
    dataset = lance.dataset(location)
    for index in dataset.describe_indices():
        dataset.drop_index(index.name)


# -- processes ---------------------------------------------------------------------------------------------------------


def _partition(megabytes: int | None) -> dict[str, str]:
    return {} if megabytes is None else {"LANCE_FTS_PARTITION_SIZE": str(megabytes)}


@contextmanager
def _process(variables: Mapping[str, str], cores: set[int]) -> Iterator[ProcessPoolExecutor]:
    """A process with an environment and cores of its own."""
    with ProcessPoolExecutor(1, get_context("spawn"), _pin, (cores,)) as pool:
        with environment(variables):
            pool.submit(os.getpid).result()
        yield pool


def _pin(cores: set[int]) -> None:
    os.sched_setaffinity(0, cores)


@contextmanager
def _cluster(work: Path, partition_mb: int | None) -> Iterator[SparkSession]:
    """Two executors of one core each, in processes of their own."""
    from benchmarks.session import spark_session

    executors = {f"spark.executorEnv.{key}": value for key, value in (ONE_THREAD | _partition(partition_mb)).items()}
    with spark_session(work, master="local-cluster[2,1,1024]", more=executors) as spark:
        tasks = spark.sparkContext.parallelize(range(4), 4)
        while len(found := set(tasks.map(_daemon).collect())) < len(WORKERS):
            pass
        # Their threads and what they fork inherit it; none has any yet.
        for core, daemon in enumerate(sorted(found)):
            for pid in [daemon, *(worker.pid for worker in psutil.Process(daemon).children())]:
                os.sched_setaffinity(pid, {core})
        yield spark
    shutil.rmtree(Path(pyspark.__file__).parent / "work", ignore_errors=True)  # local-cluster leaves its folders there


def _daemon(_: int) -> int:
    time.sleep(0.2)  # so that one executor does not get all of them
    return os.getppid()


def _pids(pool: ProcessPoolExecutor) -> Callable[[], list[int]]:
    return lambda: [pool.submit(os.getpid).result()]


def _descendants(child: subprocess.Popen[str]) -> Callable[[], list[int]]:
    return lambda: [child.pid, *(each.pid for each in psutil.Process(child.pid).children(recursive=True))]


def _python_workers() -> list[int]:
    """Processes of pyspark that run tasks."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "pyspark.daemon" in " ".join(each.cmdline()):
                found.append(each.pid)
    return found


def _forget_peak(pid: int) -> None:
    with suppress(OSError):  # it may have ended
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _peak(pid: int) -> int:
    """The bytes of memory that a process has held at most since `_forget_peak`."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    """Build each kind asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.indexing", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["inverted"], help=", ".join(COLUMNS))
    parser.add_argument("--rows", type=int, help="paragraphs of English at most")
    parser.add_argument("--repetitions", type=int, default=3, help="measured runs of each case (3)")
    parser.add_argument("--positions", action="store_true", help="with positions, for phrases")
    parser.add_argument("--partition-mb", type=int, help="LANCE_FTS_PARTITION_SIZE: what a worker collects in memory")
    parser.add_argument("--machine", action="store_true", help="beside it, what two processes that only compute gain")
    parser.add_argument("--ray", type=Path, help="a Python with lance-ray, to measure that, too")
    parser.add_argument("--daft", type=Path, help="a Python with daft and daft-lance")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where everything goes (build/bench)")
    given = parser.parse_args()
    given.work = given.work.resolve()
    console, progress = Console(width=170), Console(stderr=True)
    folder = given.work / "indexing"
    shutil.rmtree(folder, ignore_errors=True)
    documents = Documents(folder)
    documents.create()
    documents.append(rows_of(paragraphs.texts(given.work, paragraphs.ENGLISH, given.rows)), FRAGMENTS)
    sections: list[Section] = []
    for kind in given.kinds:
        options = {**ANALYSES[0].options, "with_position": given.positions} if kind == "inverted" else {}
        for section in run(documents, kind, options, given, lambda line: progress.print(f"  {line}", style="dim")):
            sections.append(section)
            show(section, console)
    if given.json:
        save(sections, {"rows": documents.dataset().count_rows()}, given.json)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
