"""Folders by time: a pattern such as ``%Y/%m/%d/%H``, in place of a Hive folder. Pure functions.

A folder has to stand for one span of time, so that its files can be skipped by it: a pattern has all the directives
down to that of the partition's unit, each at least once, in any order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from laketier.kit.time_spans import UNITS, TimeSpan
from laketier.spi import ConfigError, Transform

TIME_PATTERN = "partition.time-pattern"
"""The table's property. A table without it has a Hive folder for its partition by time."""
NULL_FOLDER = "null"
"""Of rows without a time, for each folder of the pattern that is no ``key=``. Hive's own name for null begins with
``_``, so plain readers would pass over these rows."""
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_DIRECTIVES = dict(zip(UNITS, ("%Y", "%m", "%d", "%H", "%M"), strict=True))
_PIECE = re.compile(r"%[YmdHM]|[0-9A-Za-z=.,@+_-]")
_MOST = 128
_FOLDER = re.compile(rf"(?:{NULL_FOLDER}|(?=[^/]*[0-9]{{2}})[0-9A-Za-z+-][0-9A-Za-z.,@+_-]*)\Z")


@dataclass(frozen=True)
class TimePattern:
    """A pattern of a partition by ``unit``. Raises `ConfigError` for one that names no folders of such spans."""

    text: str
    unit: Transform

    def __post_init__(self) -> None:
        directives = set(re.findall(r"%.", self.text))
        needed = list(_DIRECTIVES.values())[: UNITS.index(self.unit) + 1]
        folders = self.text.split("/")
        if len(self.text) > _MOST or _PIECE.sub("", self.text).strip("/"):
            self._refuse(
                f"it may have {', '.join(_DIRECTIVES.values())}, letters, digits and any of / = . , @ + _ -, and at "
                f"most {_MOST} characters"
            )
        if directives != set(needed):
            self._refuse(f"a partition by {self.unit.value} needs {', '.join(needed)}, and no other directive")
        if any(not re.match(r"%|[0-9A-Za-z]", folder) or "%" not in folder for folder in folders):
            self._refuse("each of its folders has a directive, and begins with one, a letter or a digit")
        keys = [folder.partition("=")[0] for folder in folders if "=" in folder]
        if any(folder.count("=") > 1 for folder in folders) or any("%" in key for key in keys):
            self._refuse("a folder with = is key=…, and its key has no directive")
        if len({key.lower() for key in keys}) < len(keys):
            self._refuse("two of its folders have the same key")

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """What readers of Hive-style folders take for columns."""
        return tuple(folder.partition("=")[0] for folder in self.text.split("/") if "=" in folder)

    def folders(self, text: str | None) -> list[str]:
        """The folders of a partition's value, outermost first. Raises `ValueError` for what is no span."""
        names = self.text.split("/")
        if text is None:
            return [f"{key}={HIVE_NULL}" if equals else NULL_FOLDER for key, equals, _ in map(_split, names)]
        parts = TimeSpan.parse(text, self.unit).parts
        values = dict(zip(_DIRECTIVES.values(), parts, strict=False))
        return [re.sub(r"%.", lambda match: values[match[0]], name) for name in names]

    def _refuse(self, why: str) -> None:
        raise ConfigError(
            f"{self.text!r} is no pattern of folders by {self.unit.value}",
            why=why,
            fix="Set lake.localfile.time-pattern to %Y/%m/%d/%H for hour(ts), or to dt=%Y-%m-%d for day(ts).",
        )


def is_time_folder(name: str) -> bool:
    """Whether a folder that is no ``key=value`` may be of a pattern."""
    return _FOLDER.match(name) is not None


def is_below_time(path: str) -> bool:
    """Whether a file lies in such a folder."""
    return any(map(is_time_folder, path.split("/")[:-1]))


def _split(name: str) -> tuple[str, str, str]:
    return name.partition("=")
