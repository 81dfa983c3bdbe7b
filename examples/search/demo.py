"""A stream of documents with an index that keeps up: ``make demo-search``, or ``python demo.py`` where
``laketier[lance,spark]`` and ``plotext`` are installed.

The documents are paragraphs of the docstrings of Python's own library, each with a word of its own. After each batch
the demo notes the share of rows without an index, and how long a search takes. At the end it draws both, looks for
every document by its own word, and compares answers with those of an index that is built anew.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import plotext
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import laketier.spark
from laketier.maintenance.index_policy import IndexPolicy
from laketier.registry import configure, open_lake
from laketier.spi import IndexKind, IndexSpec, Match, SearchRequest, SearchSnapshot

BATCHES = 60
PER_BATCH = 150
POLICY = IndexPolicy(IndexSpec("words", "text", IndexKind.INVERTED), max_unindexed_rows=1000, max_segments=4)
QUERIES = ("file", "regular expression", "thread lock", "return the current date", "socket address in use")
REPEATED = 10
COMPARED = 200


@dataclass(frozen=True)
class Seen:
    """One batch: the share of rows without an index, the index's segments, and the median of a search in ms."""

    tail: float
    segments: int
    milliseconds: float


def paragraphs() -> Iterator[str]:
    """The paragraphs of the docstrings of the standard library, in the order of its files."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "test" in path.parts or "site-packages" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield from (part for part in text.split("\n\n") if len(part) > 20)


def land(folder: Path, batches: int) -> list[str]:
    """Files of documents, one for each batch. Returns the texts."""
    texts = []
    for text, _ in zip(paragraphs(), range(batches * PER_BATCH), strict=False):
        texts.append(f"{text} doc{len(texts)}x")
    folder.mkdir()
    for first in range(0, len(texts), PER_BATCH):
        lines = [
            json.dumps({"id": first + at, "text": text}) for at, text in enumerate(texts[first : first + PER_BATCH])
        ]
        hidden = folder / f".{first:08}.json"
        hidden.write_text("\n".join(lines), encoding="utf-8")
        hidden.rename(folder / f"{first:08}.json")
    return texts


def stream(spark: SparkSession, folder: Path, docs: dict[str, str], batches: int, console: Console) -> list[Seen]:
    """Run the stream until all files are in, with upkeep and a look after each batch."""
    seen: list[Seen] = []
    with Progress(console=console) as progress:
        task = progress.add_task("batches", total=batches)

        def each_batch(df: DataFrame, batch_id: int) -> None:
            laketier.spark.write_batch(df, batch_id, docs)
            (done,) = laketier.spark.maintain_indexes(spark, docs, [POLICY])
            if done.error is not None or done.info is None or done.tail_share is None:
                raise SystemExit(f"batch {batch_id}: {done.error}")
            opened = open_searches(docs)
            taken = []
            for query in QUERIES * REPEATED:
                begun = time.perf_counter()
                opened.search(asked(query))
                taken.append((time.perf_counter() - begun) * 1000)
            seen.append(Seen(done.tail_share, len(done.info.segments), statistics.median(taken)))
            progress.advance(task)

        query = (
            spark.readStream.schema("id long, text string")
            .option("maxFilesPerTrigger", 1)
            .json(str(folder / "landing"))
            .writeStream.foreachBatch(each_batch)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        laketier.spark.await_termination(query)
    return seen


def open_searches(docs: dict[str, str]) -> SearchSnapshot:
    """The newest snapshot."""
    lake = open_lake(configure(docs))
    return lake.searcher(lake.load_table()).at()


def asked(query: str) -> SearchRequest:
    """A request for the best ten."""
    return SearchRequest(query=Match(query), k=10, columns=("id",))


def lost(docs: dict[str, str], texts: list[str]) -> int:
    """Documents that a search for their own word does not find, or finds more than once."""
    opened = open_searches(docs)
    return sum(opened.search(asked(f"doc{at}x")).rows["id"].to_pylist() != [at] for at in range(len(texts)))


def different(spark: SparkSession, docs: dict[str, str], texts: list[str]) -> int:
    """Queries of two words that a fresh index answers otherwise, of `COMPARED`: other documents, or other scores."""
    chance = random.Random(1)
    words = sorted({word for text in texts for word in text.split() if word.isalpha() and len(word) > 3})
    queries = [" ".join(chance.sample(words, 2)) for _ in range(COMPARED)]
    laketier.spark.create_index(spark, docs, "text", "inverted", name="words", mode="append")
    before = answers(docs, queries)
    laketier.spark.create_index(spark, docs, "text", "inverted", name="words", mode="replace", tasks=1)
    return sum(not one.equals(other) for one, other in zip(before, answers(docs, queries), strict=True))


def answers(docs: dict[str, str], queries: list[str]) -> list[pa.Table]:
    """The best ten of each query, with their scores."""
    opened = open_searches(docs)
    return [opened.search(asked(query)).rows for query in queries]


def draw(seen: list[Seen]) -> str:
    """Two pictures over the batches."""
    drawn = []
    for title, values in (
        ("rows without an index, percent", [100 * each.tail for each in seen]),
        ("a search, ms (median of 50)", [each.milliseconds for each in seen]),
    ):
        plotext.clear_figure()
        plotext.theme("clear")
        plotext.plot_size(90, 14)
        plotext.title(title)
        plotext.plot(list(range(len(seen))), values)
        plotext.ylim(0, None)
        drawn.append(plotext.uncolorize(plotext.build()))
    return "\n".join(drawn)


def main() -> int:
    """Exit code 1 when a document is not found, or an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=BATCHES)
    batches = parser.parse_args().batches
    console = Console()
    with tempfile.TemporaryDirectory(prefix="laketier-search-") as name:
        folder = Path(name)
        docs = {
            "lake.format": "lance",
            "lake.warehouse": str(folder / "lake"),
            "lake.table": "python.docs",
            "lake.pipeline": "docs-v1",
        }
        texts = land(folder / "landing", batches)
        console.print(f"{len(texts):,} paragraphs in {len(list((folder / 'landing').iterdir()))} batches")
        spark = laketier.spark.get_or_create()
        seen = stream(spark, folder, docs, len(list((folder / "landing").iterdir())), console)
        console.print(draw(seen), markup=False, highlight=False)
        missing = lost(docs, texts)
        told = Table("", "")
        told.add_row("documents not found once by their own word", f"{missing} of {len(texts):,}")
        changed = different(spark, docs, texts)
        told.add_row("answers that differ from a fresh index", f"{changed} of {COMPARED}")
        told.add_row("segments, at most", str(max(each.segments for each in seen)))
        told.add_row(
            "rows without an index, at most, after the first batches", f"{max(e.tail for e in seen[10:] or seen):.0%}"
        )
        console.print(told)
        spark.stop()
    return 1 if missing or changed else 0


if __name__ == "__main__":
    raise SystemExit(main())
