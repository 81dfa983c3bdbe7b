"""``python -m benchmarks.index_memory``: the memory of each worker that builds a part of an index, by the limit that it
is given.

Two executors of one core each (local-cluster) build a full-text index with positions in two parts. A worker's limit is
half of the text of its part, and a quarter; beside it a build without one. A worker's peak is its process's own
(``VmHWM``, which the build tells), and the largest resident size that was seen in ``/proc`` from outside, every 20 ms.
What its part took of that is what it did not hold yet when it had only opened the table. Lance keeps no limit below
96 MiB, so a part needs four times as much text.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow.compute as pc
import pyspark
from rich.console import Console

from benchmarks import paragraphs
from benchmarks.documents import ANALYSES, Documents, rows_of
from benchmarks.indexing import FRAGMENTS, ONE_THREAD
from benchmarks.report import Row, Section, save, show
from benchmarks.session import spark_session
from laketier.maintenance.index_builds import IndexProgress
from laketier.spi import IndexResources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS = 2
SHARES = (0, 2, 4)
_EVERY = 0.02
_OPENED = """
import sys, lance
lance.dataset(sys.argv[1]).count_rows()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@contextmanager
def watched(peaks: dict[int, int]) -> Iterator[None]:
    """The largest resident size of each process of Python below this one, by its id."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(_EVERY):
            for each in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    if "python" in each.name():
                        peaks[each.pid] = max(peaks.get(each.pid, 0), each.memory_info().rss)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def built(spark: SparkSession, documents: Documents, share: int, text: int) -> Row:
    """A build in two parts. ``text``: the bytes of both."""
    limit = text // WORKERS // share if share else None
    own: list[IndexProgress] = []
    seen: dict[int, int] = {}

    def told(progress: IndexProgress) -> None:
        own.append(progress)

    options = {**ANALYSES[0].options, "with_position": True}
    resources = IndexResources(workers=WORKERS, memory=limit)
    began = time.perf_counter()
    with watched(seen):
        info = documents.build(
            spark, "text", "inverted", WORKERS, options=options, mode="replace", resources=resources, progress=told
        )
    taken = time.perf_counter() - began
    if info.rows_not_indexed or len(own[-1].taken) != WORKERS:
        raise AssertionError(f"{info}, {own}")
    return {
        "limit of a worker, MB": "none" if limit is None else round(limit / 1e6),
        "text of a part, MB": round(text / WORKERS / 1e6),
        "taken by each part, MB": ", ".join(f"{each / 1e6:.0f}" for each in sorted(own[-1].taken)),
        "peak of each worker, MB": ", ".join(f"{each / 1e6:.0f}" for each in sorted(own[-1].memory)),
        "as seen from outside, MB": ", ".join(f"{each / 1e6:.0f}" for each in sorted(seen.values())[-WORKERS:]),
        "partitions": _partitions(documents),
        "wall_s": round(taken, 1),
    }


def _partitions(documents: Documents) -> int:
    (index,) = documents.dataset().describe_indices()
    folder = Path(documents.lake.load_table().location, "_indices")
    return sum(len(list((folder / segment.uuid).glob("*_docs.lance"))) for segment in index.segments)


def main() -> None:
    """Build with each limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index_memory", description=__doc__)
    parser.add_argument("--rows", type=int, help="paragraphs of English at most")
    parser.add_argument("--times", type=int, default=5, help="all paragraphs so many times (5)")
    parser.add_argument(
        "--shares", type=int, nargs="+", default=SHARES, help="parts of a part's text; 0: no limit (0 2 4)"
    )
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where everything goes (build/bench)")
    given = parser.parse_args()
    work: Path = given.work.resolve()
    folder = work / "index_memory"
    shutil.rmtree(folder, ignore_errors=True)
    rows = rows_of(paragraphs.texts(work, paragraphs.ENGLISH, given.rows))
    text = pc.sum(pc.binary_length(rows["text"])).as_py()
    documents = Documents(folder)
    documents.create()
    for _ in range(given.times):
        documents.append(rows, FRAGMENTS)
    text *= given.times
    section = Section(
        f"Full text with positions: {given.times * len(rows):,} paragraphs, {text / 1e6:.0f} MB, {WORKERS} workers"
    )
    executors = {f"spark.executorEnv.{key}": value for key, value in ONE_THREAD.items()}
    for share in given.shares:
        # New workers each: what one freed, its allocator keeps.
        with spark_session(work, master=f"local-cluster[{WORKERS},1,1024]", more=executors) as spark:
            section.rows.append(built(spark, documents, share, text))
    shutil.rmtree(Path(pyspark.__file__).parent / "work", ignore_errors=True)  # local-cluster leaves its folders there
    opened = subprocess.run(
        [sys.executable, "-c", _OPENED, documents.lake.load_table().location],
        capture_output=True,
        text=True,
        check=True,
    )
    section.notes.append(f"A process that only opens the table: {int(opened.stdout) * 1024 / 1e6:.0f} MB.")
    section.notes.append(f"Load of the machine at the end, over a minute: {psutil.getloadavg()[0]:.1f}.")
    show(section, Console(width=170))
    if given.json:
        save([section], {"rows": len(rows)}, given.json)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
