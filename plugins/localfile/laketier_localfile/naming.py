"""The names of data files: what users choose of them, around what makes them unique. Pure functions.

A name is ``<prefix><serial>part-<task>-<bucket>-<id>-<number><suffix><end>``. The *core*, from ``part-`` to the number,
is chosen by the task that stages the file. Its id is that of the task's attempt, in one of several spellings, so no two
attempts ever choose the same name, and whoever finds a file knows the attempt. Everything around the core is added by
the commit, and taken off again to find the file where it was staged.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from laketier.kit.manifests import FileEntry
from laketier.spi import ConfigError
from laketier_localfile.names import SUFFIX

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_DIGITS = 26
_FREE_BITS = 122
"""Of a UUID, besides its version and variant."""
# An odd factor has an inverse modulo a power of two: each id has one spelling, and each spelling one id.
_SPREAD = 0x278DDE6E5FD29E1CF9E3779B97F4A7C15
_GATHER = pow(_SPREAD, -1, 1 << _FREE_BITS)

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_ID = rf"[0-9a-f]{{32}}|{_UUID}|[0-7][0-9A-HJKMNP-TV-Z]{{25}}"
_CORE = rf"part-\d{{5,}}-(?:b(?P<bucket>\d{{5,}})-)?(?P<id>{_ID})-\d{{4,}}"
_WORD = r"[0-9A-Za-z.@+_-]*"
_NAME = re.compile(rf"(?P<before>(?:[0-9A-Za-z]{_WORD})?)(?P<core>{_CORE})(?P<after>{_WORD}?)(?P<end>{SUFFIX})\Z")
_PREFIX = re.compile(r"(?:[0-9A-Za-z][0-9A-Za-z.@+_-]{0,63})?\Z")
_SUFFIX = re.compile(r"(?:[A-Za-z.@+_-][0-9A-Za-z.@+_-]{0,63})?\Z")


class FileNames(Enum):
    """How names of data files tell them apart."""

    ATTEMPT = "attempt"
    SERIAL = "serial"
    UUID = "uuid"
    UUIDV7 = "uuidv7"
    ULID = "ulid"


@dataclass(frozen=True)
class Naming:
    """What a commit adds to the names of its files: ``prefix`` before and ``suffix`` behind them, and with ``serial``
    the number of the commit and of the file in it. Raises `ConfigError` for a text that can't be part of a name."""

    prefix: str = ""
    suffix: str = ""
    serial: bool = False

    def __post_init__(self) -> None:
        for key, text, allowed in (
            ("file-prefix", self.prefix, _PREFIX),
            ("file-suffix", self.suffix, _SUFFIX),
        ):
            if not allowed.match(text) or re.search(_CORE, text):
                raise ConfigError(
                    f"lake.localfile.{key} is {text!r}",
                    why="readers skip names that begin with _ or ., a number stands before the suffix, and other "
                    "characters mean something in a path",
                    fix="Use up to 64 letters, digits and any of . @ + _ -. A prefix begins with a letter or digit, a "
                    "suffix with no digit.",
                )

    def applied(self, number: int, entries: Sequence[FileEntry]) -> list[FileEntry]:
        """The entries of commit ``number`` under their final names. Serial numbers never come again, as numbers of
        commits do not: after a restart they go on, and of two writers one gets the number."""
        return [replace(entry, path=self._final(entry.path, number, index)) for index, entry in enumerate(entries)]

    def _final(self, path: str, number: int, index: int) -> str:
        folder, slash, name = path.rpartition("/")
        match = _NAME.match(name)
        if match is None:
            return path
        serial = f"{number:08}-{index:04}-" if self.serial else ""
        return f"{folder}{slash}{self.prefix}{serial}{match['core']}{self.suffix}{match['end']}"


def core_of(name: str) -> str:
    """The name under which the file ``name`` was staged: without what the commit added."""
    match = _NAME.match(name)
    return name if match is None else f"{match['core']}{match['end']}"


def is_name(name: str) -> bool:
    """Whether a commit could have given it."""
    return _NAME.match(name) is not None


def attempt_in(name: str) -> str | None:
    """The attempt in the name of a data file. None for other names."""
    match = _NAME.match(name)
    return None if match is None else _attempt(match["id"])


def bucket_in(name: str) -> int | None:
    """The bucket in the name of a data file. None for names without one."""
    match = _NAME.match(name)
    return None if match is None or match["bucket"] is None else int(match["bucket"])


def spelled(attempt: str, names: FileNames) -> str:
    """The id of an attempt in a name: `FileNames.UUIDV7` and `FileNames.ULID` sort by time, and `FileNames.UUID` looks
    random. An attempt that `laketier.spi.new_attempt_id` did not make is spelled as it is."""
    if names in (FileNames.ATTEMPT, FileNames.SERIAL) or not re.fullmatch(_UUID, _dashed(attempt)):
        return attempt
    number = int(attempt, 16)
    if names is FileNames.ULID:
        return "".join(_CROCKFORD[number >> (5 * place) & 31] for place in reversed(range(_ULID_DIGITS)))
    if names is FileNames.UUIDV7:
        return _dashed(attempt)
    return str(uuid.UUID(int=_as_uuid(_free_bits(number) * _SPREAD % (1 << _FREE_BITS), version=4)))


def _attempt(spelling: str) -> str:
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
