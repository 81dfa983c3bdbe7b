"""Makes text from outside safe for terminals and logs.

Names of tables, columns and files, values, and the errors of libraries may hold anything: escape sequences that clear a
terminal or set its title, characters that turn the direction of text. These are shown, not sent.
"""

from __future__ import annotations

import re

# What a terminal acts upon: the control characters but tab and line feed, and those that turn directions.
_SENT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


# Libraries in Rust print the next cause of a chain as a line that begins with a coloured arrow, other words in colours,
# and below it all their own calls, as numbered lines.
_CAUSE = re.compile(r"\s*\x1b\[\d+m\u21b3\x1b\[0m\s*")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_CALL = re.compile(r" +(?:(\d+): |at )")


def plain(text: str) -> str:
    """Take from a library's words what is for a terminal, and for its authors.

    Args:
        text: The words.

    Returns:
        The text without colours and without the library's own calls.
    """
    return _COLOUR.sub("", _CAUSE.sub(": ", _without_calls(text))) if "\n" in text or "\x1b" in text else text


def _without_calls(text: str) -> str:
    """Rust counts calls from 0; a list that begins otherwise is for people. By lines, as a pattern for all of them
    takes minutes for a message of a few thousand."""
    lines = text.rstrip().split("\n")
    numbers: list[str] = []
    while len(lines) > 1 and (call := _CALL.match(lines[-1])) is not None:
        lines.pop()
        numbers += [call[1]] if call[1] else []
    return "\n".join(lines) if len(numbers) > 1 and int(numbers[-1]) == 0 else text


def visible(text: str) -> str:
    r"""Escape the characters that a terminal would act upon, as ``\x1b`` or ``\u202e``."""
    return text if text.isprintable() else _SENT.sub(lambda found: ascii(found[0])[1:-1], text)


def visible_json(text: str) -> str:
    """Escape the same characters in JSON text. Its strings keep their values."""
    return _SENT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def is_utf8(value: object) -> bool:
    """Whether a value is text that a document in UTF-8 can hold: without half of a surrogate pair.

    Args:
        value: The value.

    Returns:
        Whether it is.
    """
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
