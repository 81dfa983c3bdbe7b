"""Queries of laketier in the terms of pylance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from laketier.spi import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery
from laketier.spi.search_query import clauses_of


def columns_asked(query: TextQuery, only: str | None) -> Iterator[tuple[str, bool]]:
    """The columns that a query is about, and whether as a phrase. ``only`` is that of queries that name none."""
    match query:
        case Match(column=column):
            yield column or only or "", False
        case Phrase(column=column):
            yield column or only or "", True
        case MultiMatch(columns=columns):
            yield from ((column, False) for column in columns)
        case _:
            for clause in clauses_of(query):
                yield from columns_asked(clause, only)


def is_fuzzy(query: TextQuery) -> bool:
    """Whether a query looks for words that are nearly alike."""
    return any(map(is_fuzzy, clauses_of(query))) or (isinstance(query, Match) and query.fuzziness != 0)


def lance_query(query: TextQuery, only: str | None) -> Any:
    """A query as pylance takes it. ``only`` is the column of queries that name none."""
    from lance.query import BooleanQuery, BoostQuery, FullTextOperator, MatchQuery, MultiMatchQuery, Occur, PhraseQuery

    match query:
        case Match():
            return MatchQuery(
                query.text,
                query.column or only or "",
                boost=query.boost,
                fuzziness=query.fuzziness,
                operator=FullTextOperator.AND if query.operator == "and" else FullTextOperator.OR,
            )
        case Phrase():
            return PhraseQuery(query.text, query.column or only or "", slop=query.slop)
        case MultiMatch():
            return MultiMatchQuery(
                query.text,
                list(query.columns),
                boosts=None if query.boosts is None else list(query.boosts),
                operator=FullTextOperator.AND if query.operator == "and" else FullTextOperator.OR,
            )
        case Boost():
            return BoostQuery(
                lance_query(query.query, only), lance_query(query.against, only), negative_boost=query.factor
            )
        case Boolean():
            clauses = [
                *((Occur.MUST, each) for each in query.must),
                *((Occur.SHOULD, each) for each in query.should),
                *((Occur.MUST_NOT, each) for each in query.must_not),
            ]
            return BooleanQuery([(occur, lance_query(each, only)) for occur, each in clauses])
