"""What a caller asks for, in the shape that requests have."""

from __future__ import annotations

from collections.abc import Iterable, Set

from laketier.spi.errors import ConfigError
from laketier.spi.predicate import Predicate


def as_filters(filters: object) -> tuple[Predicate, ...]:
    """Take the filters of a scan or search, which are several.

    Args:
        filters: An iterable of predicates.

    Returns:
        The predicates.

    Raises:
        ConfigError: It is a single one, a text, or no iterable. What it holds is looked at by the request.
    """
    if isinstance(filters, Predicate | str) or not isinstance(filters, Iterable):
        raise ConfigError(
            f"filters is {filters!r:.80}, a {type(filters).__name__}",
            fix="Give a list of predicates, such as [Leaf('id', Op.LT, 100)].",
        )
    return tuple(filters)


def as_columns(columns: object) -> tuple[str, ...] | None:
    """Take the columns of a scan or search, which are several and have an order.

    Args:
        columns: An iterable of names but a set, or None for all.

    Returns:
        The names. None for all.

    Raises:
        ConfigError: It is a text, a set, or no iterable.
    """
    if columns is None:
        return None
    # Of a text, characters would be names, and a set has no order.
    if isinstance(columns, str | bytes | Set) or not isinstance(columns, Iterable):
        what = "the text" if isinstance(columns, str) else f"a {type(columns).__name__},"
        raise ConfigError(f"columns is {what} {columns!r:.80}", fix="Give a list of names.")
    return tuple(columns)
