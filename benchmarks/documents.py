"""Tables of real paragraphs, and their indexes: built in parts on Spark, and by pylance alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa

from benchmarks import paragraphs
from laketier.registry import Lake, configure, open_lake
from laketier.spi import SearchSnapshot, TableDescriptor, Token
from laketier.tiering import TieringRound, write_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from laketier.spi import IndexInfo

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("head", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("kind", pa.int64()),
        pa.field("tags", pa.list_(pa.string())),
    ]
)
"""``head``: the first words. ``size``: the characters. ``kind``: few values. ``tags``: the initials of its words."""

TEXT_COLUMNS = ("text", "head")


@dataclass(frozen=True)
class Analysis:
    """How the words of a language are cut."""

    name: str
    language: str
    options: Mapping[str, Any]


ANALYSES = (
    Analysis("English, simple", paragraphs.ENGLISH, {"base_tokenizer": "simple"}),
    Analysis("Chinese, icu", paragraphs.CHINESE, {"base_tokenizer": "icu", "stem": False, "remove_stop_words": False}),
    Analysis(
        "Chinese, ngram", paragraphs.CHINESE, {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 2}
    ),
)
JIEBA = Analysis(
    "Chinese, jieba", paragraphs.CHINESE, {"base_tokenizer": "jieba/default", "stem": False, "remove_stop_words": False}
)
"""Needs ``LANCE_LANGUAGE_MODEL_HOME`` with ``jieba/default/dict.txt``, as the package jieba ships it, and a
``config.json`` of ``{"main": "dict.txt"}`` beside it."""


class Documents:
    """A table of paragraphs."""

    def __init__(self, folder: Path) -> None:
        self.options = {"lake.format": "lance", "lake.warehouse": str(folder / "warehouse"), "lake.table": "bench.docs"}
        self.lake: Lake = open_lake(configure(self.options))
        self._epochs = 0

    def create(self) -> None:
        """Make the table, without rows."""
        self.lake.storage.catalog().create_table(self.lake.config.table, TableDescriptor(SCHEMA))

    def append(self, rows: pa.Table, files: int = 1) -> None:
        """One epoch of ``files`` fragments of neighbouring rows."""
        factory = self.lake.storage.tiering_factory(self.lake.load_table())
        tiering = TieringRound(factory, token=Token(pipeline="docs", run="bench", epoch=self._epochs))
        tiering.begin()
        bounds = [number * len(rows) // files for number in range(files + 1)]
        parts = [rows.slice(low, high - low) for low, high in pairwise(bounds)]
        tiering.commit_messages([write_task(factory, part.combine_chunks().to_batches()) for part in parts])
        self._epochs += 1

    def dataset(self) -> lance.LanceDataset:
        """The newest version, as pylance alone sees it."""
        return lance.dataset(self.lake.load_table().location)

    def snapshot(self) -> SearchSnapshot:
        """The newest version, opened for searches."""
        return self.lake.searcher(self.lake.load_table()).at()

    def build(self, spark: SparkSession, column: str, kind: str, parts: int, **more: Any) -> IndexInfo:
        """An index, built in tasks of Spark."""
        import laketier.spark

        return laketier.spark.create_index(spark, self.options, column, kind, tasks=parts, **more)

    def build_alone(self, column: str, kind: str, options: Mapping[str, Any] | None = None) -> None:
        """The same index, built by pylance in one piece."""
        word: Any = kind.upper().replace("-", "_")
        self.dataset().create_scalar_index(column, word, name=f"{column}_idx", **(options or {}))

    def drop(self, column: str) -> None:
        """Drop the index of a column."""
        self.dataset().drop_index(f"{column}_idx")


def rows_of(texts: pa.Table) -> pa.Table:
    """The rows of a table of documents: ``texts`` has ``id`` and ``text``."""
    given = texts["text"].to_pylist()
    columns = [
        pa.array(range(len(given)), pa.int64()),
        pa.array(given, pa.string()),
        pa.array([each[:60] for each in given], pa.string()),
        pa.array(map(len, given), pa.int64()),
        pa.array((len(each) * 7 % 11 for each in given), pa.int64()),
        pa.array((list(_tags(each)) for each in given), pa.list_(pa.string())),
    ]
    return pa.table(columns, schema=SCHEMA)


def _tags(text: str) -> Iterator[str]:
    return iter(sorted({word[0].lower() for word in re.findall(r"\w+", text)[:6]}))
