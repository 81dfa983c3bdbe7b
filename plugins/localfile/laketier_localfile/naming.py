"""The names of data files: what users choose of them, around what makes them unique. Pure functions.

A name is ``<prefix><serial>part-<task>-<bucket>-<id>-<number><suffix><end>``. The *core*, from ``part-`` to the number,
is chosen by the task that stages the file. Its id is that of the task's attempt, in one of several spellings, so no two
attempts ever choose the same name, and whoever finds a file knows the attempt. Everything around the core is added by
the commit, and taken off again to find the file where it was staged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from laketier.kit.file_names import ID, attempt_of_spelling
from laketier.kit.manifests import FileEntry
from laketier.spi import ConfigError
from laketier_localfile.names import SUFFIX

_CORE = rf"part-\d{{5,}}-(?:b(?P<bucket>\d{{5,}})-)?(?P<id>{ID})-\d{{4,}}"
_WORD = r"[0-9A-Za-z.@+_-]*"
_NAME = re.compile(rf"(?P<before>(?:[0-9A-Za-z]{_WORD})?)(?P<core>{_CORE})(?P<after>{_WORD}?)(?P<end>{SUFFIX})\Z")
_PREFIX = re.compile(r"(?:[0-9A-Za-z][0-9A-Za-z.@+_-]{0,63})?\Z")
_SUFFIX = re.compile(r"(?:[A-Za-z.@+_-][0-9A-Za-z.@+_-]{0,63})?\Z")


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
    return None if match is None else attempt_of_spelling(match["id"])


def bucket_in(name: str) -> int | None:
    """The bucket in the name of a data file. None for names without one."""
    match = _NAME.match(name)
    return None if match is None or match["bucket"] is None else int(match["bucket"])
