"""``python -m benchmarks.index_equality``: does an index built in parts answer as the one that pylance builds alone?

Each question is put to the same table twice, once with the one index and once with the other. Prints a table and ends
with 1 where an answer differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.console import Console

from benchmarks import paragraphs
from benchmarks.documents import ANALYSES, JIEBA, TEXT_COLUMNS, Analysis, Documents, rows_of
from benchmarks.report import Section, save, show
from benchmarks.session import spark_session
from laketier_verification.search.answers import Agreement, Answer, agreement, answers
from laketier_verification.search.questions import KINDS, questions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAGMENTS = 16
PARTS = (2, 4, 8)
BEST = 100
EPOCHS = 200
SCALAR = (("btree", "size"), ("bitmap", "kind"), ("zonemap", "size"), ("label-list", "tags"))


class Comparison:
    """One language's table, its questions, and what pylance's own index answers."""

    def __init__(self, analysis: Analysis, work: Path, rows: int | None, count: int) -> None:
        self.analysis = analysis
        self.rows = rows_of(paragraphs.texts(work, analysis.language, rows))
        texts = self.rows["text"].to_pylist()
        chinese = analysis.language == paragraphs.CHINESE
        phrases = analysis.options.get("base_tokenizer") != "ngram"
        self.asked = {
            kind: questions(kind, texts, count, columns=TEXT_COLUMNS, chinese=chinese, phrases=phrases)
            for kind in KINDS
        }

    def text_options(self) -> dict[str, Any]:
        return {**self.analysis.options, "with_position": True}

    def answers(self, documents: Documents) -> dict[str, list[Answer]]:
        """To all questions, by their type."""
        snapshot = documents.snapshot()
        return {kind: answers(snapshot, asked, k=BEST) for kind, asked in self.asked.items()}

    def alone(self, documents: Documents) -> dict[str, list[Answer]]:
        """The answers with the indexes that pylance builds by itself, which are dropped again."""
        for column in TEXT_COLUMNS:
            documents.build_alone(column, "inverted", self.text_options())
        found = self.answers(documents)
        for column in TEXT_COLUMNS:
            documents.drop(column)
        return found

    def in_parts(self, spark: SparkSession, documents: Documents, parts: int, mode: str = "replace") -> None:
        """Build them in tasks."""
        options = {} if mode == "append" else {"options": self.text_options()}
        for column in TEXT_COLUMNS:
            documents.build(spark, column, "inverted", parts, mode=mode, **options)

    def row(self, case: str, kind: str, expected: list[Answer], found: list[Answer]) -> dict[str, Any]:
        said = agreement(expected, found, k=BEST)
        return {"tokens": self.analysis.name, "index": case, "type": kind} | figures(said)


def figures(said: Agreement) -> dict[str, Any]:
    return {
        "questions": said.questions,
        "answered": said.answered,
        "rows": said.rows,
        "equal": said.equal,
        "last bits": said.last_bits,
        "different": len(said.different),
        "largest": f"{said.largest:.1e}" if said.largest else "0",
    }


def text(spark: SparkSession, comparison: Comparison, scratch: Path, say: Callable[[str], None]) -> Section:
    """2, 4 and 8 parts beside the single build."""
    analysis = comparison.analysis
    section = Section(f"Full text, {analysis.name}: {len(comparison.rows):,} paragraphs, the best {BEST} of each")
    with TemporaryDirectory(dir=scratch) as folder:
        documents = Documents(Path(folder))
        documents.create()
        documents.append(comparison.rows, FRAGMENTS)
        say(f"{analysis.name}: pylance alone")
        expected = comparison.alone(documents)
        for parts in PARTS:
            say(f"{analysis.name}: {parts} parts")
            comparison.in_parts(spark, documents, parts)
            found = comparison.answers(documents)
            section.rows += [comparison.row(f"{parts} parts", kind, expected[kind], found[kind]) for kind in KINDS]
    return section


def epochs(
    spark: SparkSession, comparison: Comparison, count: int, scratch: Path, say: Callable[[str], None]
) -> Section:
    """A stream of small epochs, with appends of the index, compaction and expiry in between, beside a new build."""
    analysis = comparison.analysis
    rows = comparison.rows
    section = Section(f"After {count} epochs, {analysis.name}: {len(rows):,} paragraphs, half of them streamed")
    half = len(rows) // 2
    with TemporaryDirectory(dir=scratch) as folder:
        documents = Documents(Path(folder))
        documents.create()
        documents.append(rows.slice(0, half), 4)
        comparison.in_parts(spark, documents, 4)
        compactions = 0
        bounds = [half + number * (len(rows) - half) // count for number in range(count + 1)]
        for epoch in range(count):
            documents.append(rows.slice(bounds[epoch], bounds[epoch + 1] - bounds[epoch]))
            if epoch % 10 == 9:
                comparison.in_parts(spark, documents, 2, "append")
            if epoch % 50 == 49:
                say(f"{analysis.name}: {epoch + 1} of {count} epochs, compaction and expiry")
                dataset = documents.dataset()
                compactions += dataset.optimize.compact_files().fragments_removed
                dataset.cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
        comparison.in_parts(spark, documents, 2, "append")
        info = documents.lake.indexer(documents.lake.load_table()).indexes()[-1]
        if info.rows_not_indexed or info.rows_indexed != len(rows):
            raise AssertionError(f"{info} does not cover {len(rows)} rows")
        found = comparison.answers(documents)
        fragments = len(documents.dataset().get_fragments())
        for column in TEXT_COLUMNS:
            documents.drop(column)
        say(f"{analysis.name}: pylance alone")
        expected = comparison.alone(documents)
    case = f"{len(info.segments)} segments"
    section.rows += [comparison.row(case, kind, expected[kind], found[kind]) for kind in KINDS]
    section.notes.append(
        f"Every 10 epochs the index was appended to, every 50 the table was compacted ({compactions} fragments in all, "
        f"{fragments} at the end) and old versions were deleted."
    )
    return section


def scalar(
    spark: SparkSession, comparison: Comparison, count: int, scratch: Path, say: Callable[[str], None]
) -> Section:
    """Filters with an index, beside the same filters without."""
    section = Section(f"Filters: {len(comparison.rows):,} rows, with an index in parts beside a scan")
    with TemporaryDirectory(dir=scratch) as folder:
        documents = Documents(Path(folder))
        documents.create()
        documents.append(comparison.rows, FRAGMENTS)
        for kind, column in SCALAR:
            conditions = _conditions(kind, column, count)
            say(f"{kind}: scans")
            expected = _rows(documents, conditions, indexed=False)
            for parts in PARTS:
                say(f"{kind}: {parts} parts")
                documents.build(spark, column, kind, parts, mode="replace")
                if "Index" not in documents.dataset().scanner(filter=conditions[0]).explain_plan():
                    raise AssertionError(f"{kind} is not used")
                found = _rows(documents, conditions, indexed=True)
                section.rows.append(
                    {
                        "index": f"{kind} of {column}, {parts} parts",
                        "filters": count,
                        "answered": sum(map(bool, expected)),
                        "rows": sum(map(len, expected)),
                        "equal": sum(map(list.__eq__, expected, found)),
                        "different": sum(map(list.__ne__, expected, found)),
                    }
                )
            documents.drop(column)
    return section


def _conditions(kind: str, column: str, count: int) -> list[str]:
    if kind == "label-list":
        tags = "abcdefghijklmnopqrstuvwxyz"
        pairs = [(tags[n % 26], tags[(n * 7 + n // 26) % 26]) for n in range(count)]
        words = ("array_has_any", "array_has_all")
        return [f"{words[n % 2]}({column}, ['{one}', '{two}'])" for n, (one, two) in enumerate(pairs)]
    if kind == "bitmap":
        return [f"{column} IN ({n % 13}, {n * 3 % 13})" if n % 2 else f"{column} = {n % 13}" for n in range(count)]
    shapes = ("{c} = {n}", "{c} > {n} AND {c} < {m}", "{c} >= {n} AND {c} <= {m}", "{c} IN ({n}, {m})")
    return [shapes[n % 4].format(c=column, n=40 + n, m=50 + n) for n in range(count)]


def _rows(documents: Documents, conditions: Sequence[str], *, indexed: bool) -> list[list[int]]:
    dataset = documents.dataset()
    tables = (dataset.scanner(["id"], filter=each, use_scalar_index=indexed).to_table() for each in conditions)
    return [sorted(table["id"].to_pylist()) for table in tables]


def main() -> None:
    """Run all comparisons, or those asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index_equality", description=__doc__)
    parser.add_argument("sections", nargs="*", default=["text", "epochs", "scalar"], help="text, epochs, scalar")
    parser.add_argument("--questions", type=int, default=1_000, help="questions of each type (1,000)")
    parser.add_argument("--rows", type=int, help="paragraphs of each language at most")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="epochs of the stream (200)")
    parser.add_argument("--epoch-rows", type=int, help="paragraphs of the section epochs at most; --rows by default")
    parser.add_argument("--only", help="only tokenizers whose name has this text")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where everything goes (build/bench)")
    given = parser.parse_args()
    work: Path = given.work.resolve()
    scratch = work / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    console, progress = Console(width=150), Console(stderr=True)
    began = time.perf_counter()
    sections: list[Section] = []

    def say(line: str) -> None:
        progress.print(f"  {time.perf_counter() - began:5.0f} s  {line}", style="dim", highlight=False)

    def finished(section: Section) -> None:
        sections.append(section)
        show(section, console)
        if given.json:
            save(sections, {"questions": given.questions, "seconds": round(time.perf_counter() - began)}, given.json)

    analyses = [*ANALYSES, *([JIEBA] if os.environ.get("LANCE_LANGUAGE_MODEL_HOME") else [])]
    chosen = [each for each in analyses if not given.only or given.only in each.name]
    with spark_session(work) as spark:
        for analysis in chosen:
            if "text" in given.sections:
                finished(text(spark, Comparison(analysis, work, given.rows, given.questions), scratch, say))
            if "epochs" in given.sections:
                rows = given.epoch_rows or given.rows
                comparison = Comparison(analysis, work, rows, given.questions)
                finished(epochs(spark, comparison, given.epochs, scratch, say))
        if "scalar" in given.sections:
            comparison = Comparison(ANALYSES[0], work, given.rows, 1)
            finished(scalar(spark, comparison, given.questions, scratch, say))
    sys.exit(any(row["different"] for section in sections for row in section.rows))


if __name__ == "__main__":
    main()
