"""Queries as text: versioned JSON. For queries that are stored, typed into a shell, or travel in a column."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any

from laketier.spi.errors import ConfigError, SerializationError
from laketier.spi.search_query import (
    MOST_DEPTH,
    Boolean,
    Boost,
    Hybrid,
    Match,
    MultiMatch,
    Nearest,
    Phrase,
    SearchQuery,
    as_query,
)

VERSION = 1
_KINDS: dict[str, type[SearchQuery]] = {
    "match": Match,
    "phrase": Phrase,
    "multi_match": MultiMatch,
    "boolean": Boolean,
    "boost": Boost,
    "nearest": Nearest,
    "hybrid": Hybrid,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def query_to_json(query: SearchQuery) -> str:
    """Write a query as canonical JSON: equal queries have equal text.

    Args:
        query: The query.

    Returns:
        The text, such as ``{"query":{"column":"doc","text":"lake","type":"match",…},"version":1}``.
    """
    return json.dumps({"version": VERSION, "query": _plain(query)}, sort_keys=True, separators=(",", ":"))


def query_from_json(text: str | bytes) -> SearchQuery:
    """Undo `query_to_json`. Fields with a default may be left out, and so may the version around a query.

    Args:
        text: The JSON.

    Returns:
        The query.

    Raises:
        SerializationError: The text is no JSON, of another version, or no query.
        ConfigError: A value of the query is out of its bounds.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SerializationError(
            "a query is not JSON",
            why=f"{type(error).__name__}: {error}",
            fix="Write it as query_to_json does. Words that begin with a brace have to be said to be words.",
        ) from error
    if isinstance(document, dict) and "type" not in document:
        if document.get("version") != VERSION or document.keys() != {"version", "query"}:
            raise SerializationError(
                f"a query has version {document.get('version')!r:.40}, and this laketier reads version {VERSION}",
                fix="Write it with query_to_json.",
            )
        document = document["query"]
    return _query(document, 1)


def query_of_text(text: str, *, words: bool = False) -> SearchQuery:
    """Take a query where it can be nothing but text: in a shell, in SQL, in a column. A text whose first character that
    is no blank is ``{`` is JSON, any other is the words of a `Match`.

    In Python a text is always words (`as_query`), and `query_from_json` reads JSON.

    Args:
        text: The text.
        words: Whether it is words, whatever it begins with. For what users type, who would write JSON by mistake or on
            purpose.

    Returns:
        The query.

    Raises:
        SerializationError: It begins with ``{`` and is no query in JSON.
        ConfigError: It is no text, has no words, or a value of the query is out of its bounds.
    """
    given: Any = text  # of users of Python, who may give anything
    if words or not isinstance(given, str) or not given.lstrip().startswith("{"):
        return as_query(given)
    return query_from_json(given)


def _plain(value: Any) -> Any:
    if type(value) in _NAMES:
        return {"type": _NAMES[type(value)]} | {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _query(plain: Any, depth: int) -> SearchQuery:
    kind = _KINDS.get(str(plain.get("type"))) if isinstance(plain, dict) else None
    if kind is None or depth > MOST_DEPTH + 1:
        raise SerializationError(f"{plain!r:.80} is no query", fix=f"Its type is one of {', '.join(_KINDS)}.")
    given = {name: _value(value, depth) for name, value in plain.items() if name != "type"}
    known = {each.name for each in fields(kind)}
    needed = {each.name for each in fields(kind) if each.default is MISSING}
    if given.keys() - known or needed - given.keys():
        raise SerializationError(
            f"a query of type {plain['type']} has {sorted(given)}",
            fix=f"It takes {sorted(known)} and needs {sorted(needed)}.",
        )
    if not isinstance(given.get("exact", False), bool):
        raise ConfigError("exact is true or false")
    return kind(**given)


def _value(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return _query(value, depth + 1)
    if not isinstance(value, list):
        return value
    if any(isinstance(each, list) for each in value):  # no field has lists of lists, which may be nested without end
        raise SerializationError(f"a query has the list {value!r:.80} of lists", fix="Give values, or queries.")
    return tuple(_query(each, depth + 1) if isinstance(each, dict) else each for each in value)
