"""Text that can be stored: what UTF-8 can write."""

from __future__ import annotations

from laketier.spi.errors import ConfigError
from laketier.spi.visible import is_utf8


def refuse_unwritable(what: str, text: object) -> None:
    """Raise `ConfigError` unless a table's metadata can hold ``text``. Otherwise the error would come in the middle of
    a commit, where it counts as an unknown outcome."""
    if isinstance(text, str) and not is_utf8(text):
        shown = ascii(text[:80])
        raise ConfigError(
            f"{what} {shown} can't be stored",
            why="it has half of a surrogate pair, which is no letter: its bytes were not UTF-8 where it came from",
            fix="Write it in UTF-8, or choose another text.",
        )
