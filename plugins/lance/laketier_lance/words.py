"""Whether an index leaves anything of the words of a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from laketier.spi import Match, MultiMatch, Phrase, TextQuery
from laketier.spi.search_query import clauses_of
from laketier_lance.dataset import lance_errors

_SETTINGS = (
    *("base_tokenizer", "language", "lower_case", "stem", "remove_stop_words", "ascii_folding", "min_ngram_length"),
    *("max_ngram_length", "prefix_only", "split_identifiers", "split_on_numerics", "preserve_original"),
    "index_operators",
)


def texts_of(query: TextQuery, only: str | None) -> Iterator[tuple[str, str]]:
    """Each column that a query is about, and the text that it is asked for. ``only`` is that of queries without one."""
    match query:
        case Match() | Phrase():
            yield query.column or only or "", query.text
        case MultiMatch():
            yield from ((column, query.text) for column in query.columns)
        case _:
            for clause in clauses_of(query):
                yield from texts_of(clause, only)


def is_dropped(text: str, index: Any) -> bool:
    """Whether the tokenizer of a full-text index leaves no word of a text."""
    import lance

    details = index.details or {}
    given = {name: details[name] for name in _SETTINGS if details.get(name) is not None}
    if "max_token_length" in details:  # without one there is no limit
        given["max_token_length"] = details["max_token_length"]
    try:
        return not lance.tokenize(text, **given)
    except lance_errors(TypeError):
        return False  # its dictionary is not here, or its tokenizer is of another version: nothing is known


def dropped(text: str, name: str) -> str:
    """What is said of it."""
    return (
        f"index {name!r} leaves no word of {text!r:.80}, so that nothing matches it: it drops stop words and signs, "
        "and words that are too short or too long for it"
    )
