"""What the values of a query may be, each refused by its name: see `laketier.spi.search_query`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from laketier.spi.errors import ConfigError

MOST_TEXT = 65_536
"""The characters of a query's text, at most."""


def check_text(text: object) -> None:
    """Refuse what is no text, or finds nothing for certain. Raises `ConfigError`, as all of these."""
    if not isinstance(text, str):
        raise ConfigError(f"the text of a query is a {type(text).__name__}", fix="Give a string.")
    if not text.strip():
        raise ConfigError("the query is empty", fix="Give it a word.")
    if len(text) > MOST_TEXT:
        raise ConfigError(f"the text of a query has {len(text):,} characters", fix=f"Give {MOST_TEXT:,} at most.")
    if "\0" in text:
        raise ConfigError("the text of a query has a NUL character", fix="Remove it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError("the text of a query is no Unicode text", why=str(error)) from error


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Refuse what is none of ``known``."""
    if value not in tuple(known):
        raise ConfigError(f"{name} is {value!r}", fix=f"Give {', '.join(known)}.")


def check_factor(name: str, value: object) -> None:
    """Refuse what is no finite number, or is negative."""
    try:
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    except OverflowError:  # an integer has no end, and libraries take floats
        good = False
    if not good:
        raise ConfigError(f"{name} is {value!r:.40}", fix="Give a finite number that is not negative.")


def check_integer(name: str, value: object, least: int, most: int) -> None:
    """Refuse what is no whole number of these bounds, both of which are allowed."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(f"{name} is {value!r}", fix=f"Give a whole number from {least} to {most:,}.")


def check_column(value: object, *, or_none: bool = False) -> None:
    """Refuse what can be the name of no column. ``or_none``: whether the table may choose one."""
    if not (isinstance(value, str) or (or_none and value is None)):
        raise ConfigError(f"a column is {value!r:.40}, a {type(value).__name__}", fix="Give its name.")


def as_tuple(name: str, value: object) -> tuple[object, ...]:
    """A list of any kind as a tuple. Text is none, though Python iterates over it."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"{name} is {value!r:.80}", fix="Give a list.")
    return tuple(value)
