"""What can be asked of a table: queries as frozen, picklable values. A query checks itself when it is made; columns are
checked by the table that is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from laketier.spi.errors import ConfigError
from laketier.spi.query_values import as_tuple, check_choice, check_column, check_factor, check_integer, check_text

MOST_DEPTH = 32
"""How deep queries may be nested."""
MOST_CLAUSES = 1024
MOST_DIMENSIONS = 65_536
MOST_EF = 100_000
OPERATORS = ("or", "and")
METRICS = ("l2", "cosine", "dot")


@dataclass(frozen=True)
class Match:
    """Rows whose text has any (``or``) or all (``and``) of the words. A string as a query is one of these.

    Attributes:
        text: The words. The index's own tokenizer cuts them: words that it drops, as "the", find nothing. Where it
            drops all of them, `SearchExplain.notes` says so.
        column: The column. None for the only column with a full-text index.
        operator: ``or`` or ``and``.
        fuzziness: The edits by which a word may differ: 0, 1 or 2.
        boost: The factor of the score.
    """

    text: str
    column: str | None = None
    operator: str = "or"
    fuzziness: int = 0
    boost: float = 1.0

    def __post_init__(self) -> None:
        check_text(self.text)
        check_choice("operator", self.operator, OPERATORS)
        check_factor("boost", self.boost)
        check_integer("fuzziness", self.fuzziness, 0, 2)
        check_column(self.column, or_none=True)


@dataclass(frozen=True)
class Phrase:
    """Rows that have the words side by side, in this order. An index needs positions for it.

    Attributes:
        text: The words.
        column: The column. None for the only column with a full-text index.
        slop: How many words may be in between.
    """

    text: str
    column: str | None = None
    slop: int = 0

    def __post_init__(self) -> None:
        check_text(self.text)
        check_integer("slop", self.slop, 0, 1000)
        check_column(self.column, or_none=True)


@dataclass(frozen=True)
class MultiMatch:
    """Rows of which some column matches. The score is that of the best column.

    Attributes:
        text: The words.
        columns: The columns, at least one.
        boosts: A factor for each column. None for 1.
        operator: ``or`` or ``and``, within one column.
    """

    text: str
    columns: tuple[str, ...]
    boosts: tuple[float, ...] | None = None
    operator: str = "or"

    def __post_init__(self) -> None:
        check_text(self.text)
        check_choice("operator", self.operator, OPERATORS)
        object.__setattr__(self, "columns", as_tuple("columns", self.columns))
        for column in self.columns:
            check_column(column)
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise ConfigError("a MultiMatch needs columns, each once", fix="Name the columns to look into.")
        if self.boosts is not None:
            object.__setattr__(self, "boosts", as_tuple("boosts", self.boosts))
            for boost in self.boosts:
                check_factor("boost", boost)
            if len(self.boosts) != len(self.columns):
                raise ConfigError(f"there are {len(self.columns)} columns and {len(self.boosts)} boosts")


@dataclass(frozen=True)
class Boolean:
    """Rows that match all of ``must`` and none of ``must_not``; and one of ``should``, where ``must`` is empty. The
    score is the sum of those of ``must`` and ``should``.

    Attributes:
        must: What each row matches.
        should: What adds to the score.
        must_not: What no row matches.
    """

    must: tuple[TextQuery, ...] = ()
    should: tuple[TextQuery, ...] = ()
    must_not: tuple[TextQuery, ...] = ()

    def __post_init__(self) -> None:
        for name in ("must", "should", "must_not"):
            queries = tuple(_as_text_query(each) for each in as_tuple(name, getattr(self, name)))
            object.__setattr__(self, name, queries)
        if not self.must and not self.should:
            raise ConfigError("a Boolean has neither must nor should", fix="Say what rows have to match.")
        if len((*self.must, *self.should, *self.must_not)) > MOST_CLAUSES:
            raise ConfigError(f"a Boolean has more than {MOST_CLAUSES} clauses")
        _check_depth(self)


@dataclass(frozen=True)
class Boost:
    """Rows that match ``query``; those that match ``against`` too lose ``factor`` times its score.

    Attributes:
        query: What rows match.
        against: What speaks against a row.
        factor: The part of its score that is taken away.
    """

    query: TextQuery
    against: TextQuery
    factor: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", _as_text_query(self.query))
        object.__setattr__(self, "against", _as_text_query(self.against))
        check_factor("factor", self.factor)
        _check_depth(self)


@dataclass(frozen=True)
class Nearest:
    """Rows whose vector is nearest.

    Attributes:
        vector: The vector to compare with, without NaN and infinity.
        column: The column of vectors. None for the only one.
        metric: ``l2`` (squared), ``cosine`` or ``dot``. None for the metric of the index, ``l2`` without one. An index
            of another metric is not used.
        nprobes: The partitions of an index to look into. None for the library's choice.
        refine: Fetch this many times ``k`` by the index, and rank these by the vectors themselves. None for the
            library's choice. Distances are those of the vectors, either way.
        exact: Compare with every row, whatever indexes there are.
        ef: How many candidates the walk through a graph keeps (HNSW): the more, the more of the nearest are found.
            At least ``k``. None for the format's choice. Refused where no index with a graph answers.
    """

    vector: tuple[float, ...]
    column: str | None = None
    metric: str | None = None
    nprobes: int | None = None
    refine: int | None = None
    exact: bool = False
    ef: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.vector, str | bytes | bytearray):  # each character would be a number
            raise ConfigError(f"a vector is a {type(self.vector).__name__}", fix="Give a list of numbers.")
        try:
            given = tuple(self.vector)
            vector = tuple(float(each) for each in given)
        except (TypeError, ValueError, OverflowError) as error:
            raise ConfigError("a vector is a list of numbers", why=str(error)) from error
        odd = next((each for each in given if isinstance(each, str | bytes | bool)), None)
        if odd is not None:  # of which Python makes numbers, too
            raise ConfigError(f"a vector has {odd!r:.40}, a {type(odd).__name__}", fix="Give a list of numbers.")
        object.__setattr__(self, "vector", vector)
        if not 0 < len(vector) <= MOST_DIMENSIONS:
            raise ConfigError(f"a vector has {len(vector)} numbers", fix=f"Give 1 to {MOST_DIMENSIONS:,}.")
        bad = next((place for place, each in enumerate(vector) if not math.isfinite(each)), None)
        if bad is not None:
            raise ConfigError(f"number {bad} of the vector is {vector[bad]}", why="nothing is near to that")
        check_column(self.column, or_none=True)
        if self.metric is not None:
            check_choice("metric", self.metric, METRICS)
        for name, most in (("nprobes", 1_000_000), ("refine", 1000), ("ef", MOST_EF)):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1, most)
        if self.exact and self.ef is not None:
            raise ConfigError(
                f"exact and ef = {self.ef} contradict each other",
                why="ef bounds the walk through a graph, and exact compares with every row",
                fix="Leave one of them out.",
            )


@dataclass(frozen=True)
class Hybrid:
    """A text and a vector, fused by reciprocal rank: the score of a row is the sum of ``1 / (constant + rank)`` over
    the lists that it is in, ranks from 1.

    Attributes:
        text: The query of the one list.
        nearest: The query of the other.
        depth: How many rows of each list are fused; ``k`` if that is more.
        constant: What is added to each rank. The greater, the less the first places count.
    """

    text: TextQuery
    nearest: Nearest
    depth: int = 100
    constant: float = 60.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _as_text_query(self.text))
        if not isinstance(self.nearest, Nearest):
            raise ConfigError("a Hybrid needs a Nearest beside the text")
        check_integer("depth", self.depth, 1, 10_000)
        check_factor("constant", self.constant)


TextQuery = Match | Phrase | MultiMatch | Boolean | Boost
SearchQuery = TextQuery | Nearest | Hybrid


def as_query(query: str | SearchQuery) -> SearchQuery:
    """Take a string for the `Match` that it stands for.

    Args:
        query: A query, or the words of one.

    Returns:
        The query.

    Raises:
        ConfigError: It is neither, or the words are none.
    """
    if isinstance(query, Nearest | Hybrid):
        return query
    return _as_text_query(query)


def with_ef(query: str | SearchQuery, ef: int) -> SearchQuery:
    """Set `Nearest.ef` of a query, also of the one within a `Hybrid`.

    Args:
        query: The query.
        ef: The candidates that a walk through a graph keeps.

    Returns:
        The query with it.

    Raises:
        ConfigError: The query is not about vectors, names another ``ef``, or ``ef`` is out of its bounds.
    """
    query = as_query(query)
    if isinstance(query, Hybrid):
        return replace(query, nearest=_with_ef(query.nearest, ef))
    if isinstance(query, Nearest):
        return _with_ef(query, ef)
    raise ConfigError(
        f"ef = {ef} has no effect", why="the query is about words, and ef is of a graph of vectors", fix="Leave it out."
    )


def _with_ef(query: Nearest, ef: int) -> Nearest:
    if query.ef not in (None, ef):
        raise ConfigError(f"ef is {ef}, and {query.ef} in the query", fix="Give it once.")
    return replace(query, ef=ef)


def _as_text_query(query: object) -> TextQuery:
    if isinstance(query, str):
        return Match(query)
    if not isinstance(query, Match | Phrase | MultiMatch | Boolean | Boost):
        raise ConfigError(f"a {type(query).__name__} is no query for text")
    return query


def clauses_of(query: TextQuery) -> tuple[TextQuery, ...]:
    """The queries that a query consists of.

    Args:
        query: The query.

    Returns:
        Its parts. Empty for a query without any.
    """
    match query:
        case Boolean(must=must, should=should, must_not=must_not):
            return (*must, *should, *must_not)
        case Boost(query=inner, against=against):
            return (inner, against)
    return ()


def _check_depth(query: TextQuery) -> None:
    level: Sequence[TextQuery] = [query]
    for _ in range(MOST_DEPTH):
        level = [clause for each in level for clause in clauses_of(each)]
        if len(level) > MOST_CLAUSES:
            raise ConfigError(f"a query has more than {MOST_CLAUSES} clauses")
        if not level:
            return
    raise ConfigError(f"a query is nested more than {MOST_DEPTH} deep")
