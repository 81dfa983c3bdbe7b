"""A library's message about bytes from outside, as text for any table and any terminal."""

from __future__ import annotations

import re

_MOST = 1000
"""Characters. Libraries quote what they could not read, whole."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def said(error: BaseException) -> str:
    """An exception's own words, or its name where it has none."""
    text = str(error)
    if isinstance(error, MemoryError):
        text = f"it needs more memory than there is ({text or 'out of memory'})"
    elif isinstance(error, RecursionError):
        text = "it is nested too deeply"
    return shown(text or type(error).__name__)


def shown(text: str, most: int = _MOST) -> str:
    """``text`` on few lines, without what a terminal obeys and what is not UTF-8; the middle of a long one left out."""
    if len(text) > most:
        text = f"{text[: most * 2 // 3]} … {text[-most // 4 :]}"
    text = text.encode("utf-8", "backslashreplace").decode()
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
