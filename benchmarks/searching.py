"""``python -m benchmarks.searching``: the time of a query by segments and by rows without an index, beside pylance.

Each table has the same rows. Questions are put in turn to laketier and to pylance, on handles that are open; what each
answers is compared. Then a batch of questions is put by ``search_many``, beside a loop over them on the driver.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import psutil
import pyarrow as pa
from rich.console import Console

from benchmarks import paragraphs
from benchmarks.documents import ANALYSES, Documents, rows_of
from benchmarks.measure import Sample, measured
from benchmarks.report import Section, save, show
from benchmarks.session import spark_session
from laketier.spi import SearchRequest, TextQuery, query_to_json
from laketier_verification.search.questions import questions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FRAGMENTS = 64
SEGMENTS = (1, 8, 64)
TAILS = (0.0, 0.01, 0.1)
TYPES = ("term", "all-of", "phrase")
BEST = 10
COLUMN = "text"
_WARM = 100


@dataclass
class _Times:
    """Milliseconds of each question, and of CPU in all threads of this process."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.wall, n=100)[98]


def latencies(
    spark: SparkSession,
    work: Path,
    rows: pa.Table,
    count: int,
    shapes: Sequence[tuple[float, int]],
    say: Callable[[str], None],
) -> Section:
    """A row for each of ``shapes``: a share of rows without an index, and a number of segments."""
    section = Section(f"One question, {len(rows):,} paragraphs, the best {BEST}: {', '.join(TYPES)} (ms)")
    asked = _asked(rows, count)
    for tail, segments in shapes:
        say(f"{segments} segments, {tail:.0%} flat")
        ours, theirs, same = _timed(_table(spark, work, rows, tail, segments), asked)
        section.rows.append(
            {
                "segments": segments,
                "flat": f"{tail:.0%}",
                "questions": len(asked),
                "median": round(ours.median, 2),
                "p99": round(ours.p99, 2),
                "CPU": round(statistics.mean(ours.cpu), 2),
                "pylance's": round(theirs.median, 2),
                "pylance's p99": round(theirs.p99, 2),
                "pylance's CPU": round(statistics.mean(theirs.cpu), 2),
                "times": round(ours.median / theirs.median, 2),
                "times, CPU": round(sum(ours.cpu) / sum(theirs.cpu), 2),
                "same scores": same,
                "load": round(psutil.getloadavg()[0], 1),
            }
        )
    section.notes.append("CPU: the mean of a question, of all threads. Load: of the machine, over the last minute.")
    return section


def _asked(rows: pa.Table, count: int) -> list[TextQuery]:
    texts = rows[COLUMN].to_pylist()
    each = [-(-count // len(TYPES))] * len(TYPES)
    found = [
        question
        for kind, some in zip(TYPES, each, strict=True)
        for question in questions(kind, texts, some, columns=[COLUMN])
    ]
    return found[:count]


def _table(spark: SparkSession, work: Path, rows: pa.Table, tail: float, segments: int) -> Documents:
    """A new table whose last rows, a share of ``tail``, came after the index."""
    folder = work / "searching"
    shutil.rmtree(folder, ignore_errors=True)
    documents = Documents(folder)
    documents.create()
    covered = round(len(rows) * (1 - tail))
    documents.append(rows.slice(0, covered), FRAGMENTS)
    options = {**ANALYSES[0].options, "with_position": True}
    info = documents.build(spark, COLUMN, "inverted", segments, options=options)
    if tail:
        documents.append(rows.slice(covered), 4)
    if len(info.segments) != segments or info.rows_indexed != covered:
        raise AssertionError(f"{len(info.segments)} segments of {info.rows_indexed} rows")
    return documents


def _timed(documents: Documents, asked: Sequence[TextQuery]) -> tuple[_Times, _Times, int]:
    """The times of each question, ours and pylance's, and how many had the same best scores."""
    snapshot, dataset = documents.snapshot(), documents.dataset()
    ours, theirs = _Times(), _Times()
    same = 0
    warm = asked[:_WARM]
    for number, question in enumerate([*warm, *asked]):
        request = SearchRequest(query=question, k=BEST, columns=("id",))
        counted = number >= len(warm)
        with _timing(ours if counted else _Times()):
            found = snapshot.search(request).rows
        with _timing(theirs if counted else _Times()):
            alone = dataset.scanner(["id", "_score"], full_text_query=_as_pylance(question), limit=BEST).to_table()
        if counted:
            scores = sorted(alone["_score"].to_pylist(), reverse=True)
            same += scores == found["_score"].to_pylist()
    return ours, theirs, same


@contextmanager
def _timing(into: _Times) -> Iterator[None]:
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    into.wall.append((time.perf_counter() - wall) * 1000)
    into.cpu.append((time.process_time() - cpu) * 1000)


def _as_pylance(question: TextQuery) -> lance.query.FullTextQuery:
    from laketier_lance.questions import lance_query

    return lance_query(question, COLUMN)


def batch(spark: SparkSession, work: Path, rows: pa.Table, count: int, say: Callable[[str], None]) -> Section:
    """All questions of a DataFrame at once, beside one after the other on the driver."""
    import laketier.spark

    asked = _asked(rows, count)
    documents = _table(spark, work, rows, 0.0, 8)
    section = Section(f"{len(asked):,} questions, the best {BEST} of each")
    found: dict[str, int] = {}
    samples: dict[str, list[Sample]] = {}
    texts = [(query_to_json(each),) for each in asked]
    queries = (
        spark.createDataFrame(texts, "query string").repartition(4 * spark.sparkContext.defaultParallelism).cache()
    )
    queries.count()

    def on_spark(asking: DataFrame) -> int:
        return laketier.spark.search_many(spark, documents.options, asking, k=BEST, columns=["id"]).count()

    def on_driver(questions: Sequence[TextQuery]) -> int:
        snapshot = documents.snapshot()
        requests = (SearchRequest(query=each, k=BEST, columns=("id",)) for each in questions)
        return sum(snapshot.search(each).rows.num_rows for each in requests)

    say("warming up")
    on_spark(queries.limit(_WARM))
    on_driver(asked[:_WARM])
    say("search_many")
    with measured(samples.setdefault(on_tasks := "search_many, 2 tasks at a time", [])):
        found[on_tasks] = on_spark(queries)
    say("driver")
    with measured(samples.setdefault(alone := "one after the other, driver", [])):
        found[alone] = on_driver(asked)
    for name, taken in samples.items():
        best = taken[-1]
        section.rows.append(
            {
                "case": name,
                "wall_s": round(best.wall, 2),
                "cpu_s": round(best.cpu, 2),
                "questions per s": round(len(asked) / best.wall),
                "CPU ms per question": round(best.cpu * 1000 / len(asked), 2),
                "rows": found[name],
            }
        )
    section.notes.append(f"After {_WARM} questions that were not counted.")
    return section


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.searching", description=__doc__)
    parser.add_argument("--rows", type=int, help="paragraphs of English at most")
    parser.add_argument("--questions", type=int, default=1_000, help="questions of each case (1,000)")
    parser.add_argument("--batch", type=int, default=10_000, help="questions of the batch (10,000)")
    parser.add_argument("--segments", type=int, nargs="+", default=SEGMENTS, help="numbers of segments (1 8 64)")
    parser.add_argument("--tails", type=float, nargs="+", default=TAILS, help="shares without an index (0 0.01 0.1)")
    parser.add_argument("--only", choices=("latencies", "batch"), help="one of the two (both)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where everything goes (build/bench)")
    given = parser.parse_args()
    work: Path = given.work.resolve()
    console, progress = Console(width=150), Console(stderr=True)
    rows = rows_of(paragraphs.texts(work, paragraphs.ENGLISH, given.rows))
    sections: list[Section] = []

    def say(line: str) -> None:
        progress.print(f"  {line}", style="dim", highlight=False)

    def finished(section: Section) -> None:
        sections.append(section)
        show(section, console)
        if given.json:
            save(sections, {"rows": len(rows)}, given.json)

    with spark_session(work) as spark:
        if given.only != "batch":
            finished(latencies(spark, work, rows, given.questions, list(product(given.tails, given.segments)), say))
        if given.only != "latencies":
            finished(batch(spark, work, rows, given.batch, say))
    shutil.rmtree(work / "searching")


if __name__ == "__main__":
    main()
