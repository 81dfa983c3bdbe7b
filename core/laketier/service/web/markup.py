"""HTML that can't be forgotten to be escaped: what is not made by `html` is text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Html(str):
    """Markup. Made by `html` and `joined` alone."""

    __slots__ = ()


def html(template: str, **values: object) -> Html:
    """A literal template (`str.format`) with its values escaped, except those that are `Html`."""
    return Html(template.format(**{name: _safe(value) for name, value in values.items()}))


def joined(parts: Iterable[Html]) -> Html:
    """One after the other."""
    return Html("".join(parts))


def _safe(value: object) -> str:
    return value if isinstance(value, Html) else escape(str(value))
