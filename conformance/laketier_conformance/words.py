"""Words of others, as they may stand in a report: of plugins, harnesses, libraries and the system."""

from __future__ import annotations

from typing import Any

from laketier.spi.redaction import redacted
from laketier.spi.visible import visible

_LONGEST = 1000


def plainly(words: Any) -> Any:
    """The same in one line, cut, without passwords, and without characters that a terminal would act upon or that no
    file can hold. Of lists, tuples and mappings all that they hold."""
    if isinstance(words, str):
        # Before it is cut, and no more than it may be long: a pattern takes its time.
        line = visible(redacted(words[: 2 * _LONGEST])).replace("\n", "\\n").replace("\t", "\\t")
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
    if isinstance(words, dict):
        return {plainly(key): plainly(value) for key, value in words.items()}
    if isinstance(words, list | tuple):
        return type(words)(map(plainly, words))
    return words
