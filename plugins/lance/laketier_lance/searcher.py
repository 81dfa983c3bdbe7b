"""Searching one version of a dataset: by its full-text indexes, by vectors, and by both."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.fusion import fused
from laketier.spi import (
    DISTANCE,
    SCORE,
    ConfigError,
    FeatureNotSupported,
    Hybrid,
    IndexUse,
    LakeSearcher,
    Match,
    MultiMatch,
    Nearest,
    Phrase,
    SearchExplain,
    SearchRequest,
    SearchResult,
    SearchSnapshot,
    TextQuery,
)
from laketier.spi.search_query import clauses_of
from laketier_lance.dataset import indexes_of, open_dataset
from laketier_lance.features import FORMAT
from laketier_lance.filters import to_sql
from laketier_lance.graph_walk import kept_candidates
from laketier_lance.index_settings import METRICS
from laketier_lance.options import LanceOptions
from laketier_lance.private import moment_of
from laketier_lance.questions import columns_asked, is_fuzzy, lance_query
from laketier_lance.ranked import Ranked
from laketier_lance.table import TABLE_UUID, metadata_of
from laketier_lance.words import dropped, is_dropped, texts_of

if TYPE_CHECKING:
    from lance import LanceDataset

_PIECES = "ngram"
_LONGEST = 1e19
"""Of a query's vector by l2: the square of more is beyond the distances that Lance tells."""
_MIDDLE = 10
"""Powers of two that a float of 16 bits has, and whose squares one of 32 bits has."""


@dataclass(frozen=True)
class LanceSearcher(LakeSearcher):
    """Opens versions. Holds no handle, so that tasks can have it."""

    location: str
    name: str
    options: LanceOptions

    def at(self, snapshot_id: int | None = None) -> LanceSearchSnapshot:
        dataset = open_dataset(self.location, self.options.storage_options(), snapshot_id)
        return LanceSearchSnapshot(dataset, self.name)


@dataclass
class _Asked:
    """What one request took."""

    columns: set[str] = field(default_factory=set)
    exact: bool = False
    milliseconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class LanceSearchSnapshot(SearchSnapshot):
    """One version, with its indexes as they were when it was opened."""

    def __init__(self, dataset: LanceDataset, name: str) -> None:
        self._dataset = dataset
        self._name = name
        self._schema: pa.Schema = dataset.schema.remove_metadata()
        self._indexes = indexes_of(dataset)
        self._ranked = Ranked(dataset, name)
        self._rows = {int(f.fragment_id): int(f.count_rows()) for f in dataset.get_fragments()}

    @property
    def snapshot_id(self) -> int:
        return int(self._dataset.version)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def identity(self) -> str:
        """The table's own, where laketier made it, and the moment of the commit, which a manifest keeps for ever."""
        stored = metadata_of(self._dataset).get(TABLE_UUID, b"").decode()
        return f"{stored}@{round(moment_of(self._dataset).timestamp() * 1_000_000)}"

    def search(self, request: SearchRequest) -> SearchResult:
        schema = request.projected(self._schema, where=self._name)
        condition = self._condition(request)
        asked = _Asked()
        query = request.query
        if isinstance(query, Hybrid):
            depth = max(query.depth, request.k)
            text = [row for row, _ in self._text(query.text, depth, condition, asked)]
            near = [row for row, _ in self._nearest(query.nearest, depth, condition, asked)]
            best = fused([text, near], query.constant)[: request.k]
        elif isinstance(query, Nearest):
            best = self._nearest(query, request.k, condition, asked)
        else:
            best = self._text(query, request.k, condition, asked)
        begun = time.perf_counter()
        rows = self._ranked.rows(best, schema)
        asked.milliseconds["rows"] = _since(begun)
        return SearchResult(rows=rows, snapshot_id=self.snapshot_id, explain=self._explain(asked))

    def _condition(self, request: SearchRequest) -> str | None:
        sqls = []
        for predicate in request.filters:
            sql = to_sql(predicate, self._schema)
            if sql is None:
                raise FeatureNotSupported(
                    "search with this filter",
                    format=FORMAT,
                    reason=f"Lance might not agree with {predicate} on some row, and a filter chooses what is searched",
                    fix="Filter by a column of integers, text, dates or booleans, with a value of the column's type.",
                )
            sqls.append(f"({sql})")
        return " AND ".join(sqls) or None

    # -- text ----------------------------------------------------------------------------------------------------------

    def _text(self, query: TextQuery, k: int, condition: str | None, asked: _Asked) -> list[tuple[int, float]]:
        only = self._only_text_column() if _names_none(query) else None
        for column, phrase in columns_asked(query, only):
            self._check_text_column(column, phrase)
            asked.columns.add(column)
        self._check_fuzzy(query, asked.columns)
        # Lance cuts the parts of a compound query before it puts them together, so that a limit loses rows that
        # belong to the best: such a query is asked without one.
        simple = isinstance(query, Match | Phrase)
        begun = time.perf_counter()
        found = self._ranked.best(
            {"full_text_query": lance_query(query, only)}, SCORE, k, condition, limited=simple, descending=True
        )
        asked.milliseconds["text"] = _since(begun)
        if not found:
            # Only now, as a tokenizer may have to read a dictionary.
            of = ((text, self._index_of(column)) for column, text in texts_of(query, only))
            asked.notes.extend(
                dict.fromkeys(dropped(text, index.name) for text, index in of if is_dropped(text, index))
            )
        return found

    def _only_text_column(self) -> str:
        columns = sorted({each.field_names[0] for each in self._indexes if each.index_type.lower() == "inverted"})
        if len(columns) == 1:
            return str(columns[0])
        if not columns:
            raise ConfigError(
                "the table has no full-text index",
                where=self._name,
                fix="Build one: `create_index` of `laketier.spark`.",
            )
        raise ConfigError(
            f"the columns {', '.join(columns)} have full-text indexes",
            where=self._name,
            fix="Name the column that the query is about.",
        )

    def _check_text_column(self, column: str, phrase: bool) -> None:
        self._check_column(column)
        index = self._index_of(column)
        if index is None:
            raise ConfigError(
                f"column {column!r} has no full-text index",
                where=self._name,
                fix="Build one: `create_index` of `laketier.spark`.",
            )
        if phrase and (index.details or {}).get("base_tokenizer") == _PIECES:
            raise FeatureNotSupported(
                f"search for a phrase in column {column!r}",
                format=FORMAT,
                reason=f"index {index.name!r} keeps pieces of words, and Lance would find rows that have any of them",
                fix="Ask for words, or build the index again with another base_tokenizer.",
            )
        if phrase and not (index.details or {}).get("with_position"):
            raise ConfigError(
                f"index {index.name!r} has no positions, which a phrase needs",
                where=self._name,
                fix="Build it again with with_position = true.",
            )

    def _check_fuzzy(self, query: TextQuery, columns: set[str]) -> None:
        """Lance compares words that are nearly alike in its indexes only: it would leave other rows out in silence."""
        flat = sum(self._rows.values()) - min(self._covered(self._index_of(column)) for column in columns)
        if flat and is_fuzzy(query):
            raise FeatureNotSupported(
                "search for words that are nearly alike",
                format=FORMAT,
                reason=f"{flat:,} rows are not in the index, and Lance would not look at them",
                fix="Index them first: `create_index` of `laketier.spark`, mode `append`. Or ask with fuzziness = 0.",
            )

    def _index_of(self, column: str) -> Any:
        return self._only(column, "inverted")

    def _only(self, column: str, kind: str) -> Any:
        """The index of a column whose kind begins so, None without one. Lance asks one of two, and tells not which:
        what is checked of the one would be said of the other."""
        found = [
            each
            for each in self._indexes
            if list(each.field_names) == [column] and each.index_type.lower().startswith(kind)
        ]
        if len(found) > 1:
            raise ConfigError(
                f"column {column!r} has {len(found)} indexes for this: {', '.join(repr(each.name) for each in found)}",
                where=self._name,
                why="Lance asks one of them, and it is not known which",
                fix="Drop all but one: `laketier index drop`.",
            )
        return found[0] if found else None

    def _covered(self, index: Any) -> int:
        numbers = {int(number) for segment in index.segments for number in segment.fragment_ids}
        return sum(count for number, count in self._rows.items() if number in numbers)

    def _check_column(self, column: str) -> None:
        if column not in self._schema.names:
            near = get_close_matches(column, self._schema.names)
            fix = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(self._schema.names)}."
            raise ConfigError(f"there is no column {column!r}", where=self._name, fix=fix)

    # -- vectors -------------------------------------------------------------------------------------------------------

    def _nearest(self, query: Nearest, k: int, condition: str | None, asked: _Asked) -> list[tuple[int, float]]:
        column = query.column or self._only_vector_column()
        self._check_column(column)
        kind = self._schema.field(column).type
        if not _is_vector(kind):
            raise ConfigError(f"column {column!r} holds {kind}, not vectors of a fixed size", where=self._name)
        if kind.list_size != len(query.vector):
            raise ConfigError(
                f"the vectors of {column!r} have {kind.list_size} numbers, and the query {len(query.vector)}",
                where=self._name,
                fix="Make the query's vector as those of the table were made.",
            )
        index = None if query.exact and query.metric else self._only(column, "ivf")
        made_for = _metric_of(index)
        metric = query.metric or made_for or "l2"
        indexed = made_for == metric and not query.exact
        unused = ""
        if index is None:
            unused = f"column {column!r} has no index of vectors"
        elif not indexed:
            unused = f"index {index.name!r} is of metric {made_for}, and the query of {metric}"
        walk = kept_candidates(query, k, index if indexed else None, self._rows, unused, self._name)
        numbers = _of_a_middle_length(query.vector) if metric == "cosine" else query.vector
        asked_for = pa.array(numbers, pa.float64()).cast(kind.value_type)
        self._check_vector(asked_for, metric, column)
        nearest: dict[str, Any] = {
            "column": column,
            "q": asked_for,
            "metric": metric,
            "use_index": indexed,
        }
        if indexed:
            asked.columns.add(column)
            nearest |= {"minimum_nprobes": query.nprobes, "maximum_nprobes": query.nprobes} if query.nprobes else {}
            # Codes tell distances that are near the true ones at best; with cosine they are twice as large, and true
            # ones again as soon as a row has no index. So the rows that are found are compared by their vectors.
            nearest |= {"refine_factor": query.refine or 1} | walk
        else:
            asked.exact = True
        begun = time.perf_counter()
        found = self._ranked.best({"nearest": nearest}, DISTANCE, k, condition, limited=True, descending=False)
        asked.milliseconds["nearest"] = _since(begun)
        return found

    def _check_vector(self, vector: pa.Array, metric: str, column: str) -> None:
        """Refuse what has no distance to any row: Lance would find nothing, without an error."""
        numbers = [float(each) for each in vector.to_pylist()]
        if not all(map(math.isfinite, numbers)) or (metric == "l2" and math.hypot(*numbers) > _LONGEST):
            raise ConfigError(
                f"the query's vector has a number that is too large for {column!r}",
                where=self._name,
                why=f"the column holds {vector.type}, and distances are floats of 32 bits",
                fix="Make the query's vector as those of the table were made.",
            )
        if metric == "cosine" and not any(numbers):
            raise ConfigError(
                "the query's vector is all zeros",
                where=self._name,
                why="it has no direction, which the metric cosine compares",
                fix="Ask with another vector, or with metric = l2.",
            )

    def _only_vector_column(self) -> str:
        columns = [each.name for each in self._schema if _is_vector(each.type)]
        if len(columns) != 1:
            what = f"the columns {', '.join(columns)} hold vectors" if columns else "no column holds vectors"
            raise ConfigError(what, where=self._name, fix="Name the column that the query is about." if columns else "")
        return columns[0]

    def _explain(self, asked: _Asked) -> SearchExplain:
        uses: list[IndexUse] = []
        flat = sum(self._rows.values()) if asked.exact else 0
        for column in sorted(asked.columns):
            index = self._only(column, "inverted") or self._only(column, "ivf")
            rows = self._covered(index)
            uses.append(IndexUse(index.name, column, index.index_type, rows))
            flat = max(flat, sum(self._rows.values()) - rows)
        return SearchExplain(
            indexes=tuple(uses),
            rows=sum(self._rows.values()),
            rows_flat=flat,
            milliseconds=asked.milliseconds,
            notes=tuple(asked.notes),
        )


def _names_none(query: TextQuery) -> bool:
    if isinstance(query, MultiMatch):
        return False
    clauses = clauses_of(query)
    return any(map(_names_none, clauses)) if clauses else getattr(query, "column", None) is None


def _metric_of(index: Any) -> str | None:
    details = {} if index is None else index.details or {}
    metric = str(details.get("metric_type")).lower()
    return metric if metric in METRICS else None


def _of_a_middle_length(vector: Sequence[float]) -> list[float]:
    """In the same direction: Lance squares the numbers, and finds nothing where that is zero or infinite."""
    _, exponent = math.frexp(max(map(abs, vector)))
    if abs(exponent) <= _MIDDLE:
        return list(vector)
    return [math.ldexp(each, -exponent) for each in vector]  # exact, so that no distance changes


def _is_vector(kind: pa.DataType) -> bool:
    return bool(pt.is_fixed_size_list(kind) and pt.is_floating(kind.value_type))


def _since(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000
