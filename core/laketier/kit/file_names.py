"""What users choose of the names of data files, around what makes them unique. Pure functions.

A name holds the id of the task's attempt, in one of several spellings, so no two attempts ever choose the same one, and
whoever finds a file knows the attempt. A prefix and a suffix stand around that.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from enum import Enum

from laketier.spi.errors import ConfigError
from laketier.spi.options import option

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_DIGITS = 26
_FREE_BITS = 122
"""Of a UUID, besides its version and variant."""
# An odd factor has an inverse modulo a power of two: each id has one spelling, and each spelling one id.
_SPREAD = 0x278DDE6E5FD29E1CF9E3779B97F4A7C15
_GATHER = pow(_SPREAD, -1, 1 << _FREE_BITS)

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_OURS = _UUID.replace("[47]", "7")
"""What `laketier.spi.new_attempt_id` makes."""
ID = rf"[0-9a-f]{{32}}|{_UUID}|[0-7][0-9A-HJKMNP-TV-Z]{{25}}"
"""A regular expression of the spellings of an attempt's id. It has no groups."""
PREFIX = r"(?:[A-Za-z][0-9A-Za-z._-]{0,63})?"
SUFFIX = r"(?:[A-Za-z._-][0-9A-Za-z._-]{0,63})?"
"""Of files of tables whose paths are URIs: no character that some writer of a path would quote. A number stands before
the suffix. Names of other engines' files begin with a digit, so none of them can have a prefix."""


class FileNames(Enum):
    """How names of data files tell them apart."""

    ATTEMPT = "attempt"
    SERIAL = "serial"
    UUID = "uuid"
    UUIDV7 = "uuidv7"
    ULID = "ulid"


@dataclass(frozen=True)
class NameSettings:
    """The names of files that have their final name from the start. The options of a format derive from this class, and
    so have these keys."""

    file_names: FileNames = option(
        FileNames.ATTEMPT,
        "What tells names of data files apart: the attempt, also spelled as uuid (looks random), uuidv7 or ulid (both "
        "sort by time).",
    )
    file_prefix: str = option("", "Text before the names of data files.")
    file_suffix: str = option("", "Text behind the names of data files, before .parquet.")

    def check_names(self, format: str) -> None:
        """Raise `ConfigError` for what can't be part of a name. Driver, before anything is written."""
        if self.file_names is FileNames.SERIAL:
            raise ConfigError(
                f"lake.{format}.file-names is serial",
                why="files have their final names before their commit has a number, so no number could be told",
                fix="Set it to uuidv7 or ulid: their names sort by time.",
            )
        for key, text, allowed in (("prefix", self.file_prefix, PREFIX), ("suffix", self.file_suffix, SUFFIX)):
            if not re.fullmatch(allowed, text) or re.search(rf"{ID}|-b[0-9]", text):
                raise ConfigError(
                    f"lake.{format}.file-{key} is {text!r}",
                    why="a name must not be taken for a path, for another attempt's or for another bucket's",
                    fix="Use up to 64 letters, digits and any of . _ -. A prefix begins with a letter, a suffix with "
                    "no digit, and -b5 stands for a bucket.",
                )


def spelled(attempt: str, names: FileNames) -> str:
    """The id of an attempt in a name: `FileNames.UUIDV7` and `FileNames.ULID` sort by time, and `FileNames.UUID` looks
    random. An attempt that `laketier.spi.new_attempt_id` did not make is spelled as it is."""
    if names in (FileNames.ATTEMPT, FileNames.SERIAL) or not re.fullmatch(_OURS, _dashed(attempt)):
        return attempt
    number = int(attempt, 16)
    if names is FileNames.ULID:
        return "".join(_CROCKFORD[number >> (5 * place) & 31] for place in reversed(range(_ULID_DIGITS)))
    if names is FileNames.UUIDV7:
        return _dashed(attempt)
    return str(uuid.UUID(int=_as_uuid(_free_bits(number) * _SPREAD % (1 << _FREE_BITS), version=4)))


def attempt_of_spelling(spelling: str) -> str:
    """Undo `spelled`."""
    if len(spelling) == _ULID_DIGITS:
        number = 0
        for digit in spelling:
            number = number << 5 | _CROCKFORD.index(digit)
        return f"{number:032x}"
    plain = spelling.replace("-", "")
    if len(plain) == len(spelling) or plain[12] == "7":
        return plain
    return f"{_as_uuid(_free_bits(int(plain, 16)) * _GATHER % (1 << _FREE_BITS), version=7):032x}"


def _dashed(attempt: str) -> str:
    return "-".join((attempt[:8], attempt[8:12], attempt[12:16], attempt[16:20], attempt[20:]))


def _free_bits(number: int) -> int:
    """Of a UUID: 48 bits, 12 bits and 62 bits, with the version and the variant between them taken out."""
    return (number >> 80) << 74 | (number >> 64 & 0xFFF) << 62 | number & (1 << 62) - 1


def _as_uuid(bits: int, *, version: int) -> int:
    return (bits >> 74) << 80 | version << 76 | (bits >> 62 & 0xFFF) << 64 | 0b10 << 62 | bits & (1 << 62) - 1
