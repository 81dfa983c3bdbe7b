"""What users may write for an option, by the type that the plugin declares: what fits, what nearly does, and what does
not."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Any

from laketier.spi import LakeStoragePlugin, LaketierError, Passthrough, Secret, StorageError
from laketier.spi.redaction import is_secret

HUGE = 10**30
"""More than 64 bits hold."""
LARGEST = 2**63 - 1
CANARY = "cAnArY-0f-th3-0pt10ns"
_TEXTS = ("", " ", "Odd Case", "no such thing", "../up", 'a"b', "ä\n", "x" * 300)
"""None is a name of a host that somebody might look for."""
_KINDS = (str, int, float, bool, Secret, Passthrough)
_SHOWN = 40
"""So much of a long value is in a sentence about it, at least."""


@dataclass(frozen=True)
class Declared:
    """An option. ``key``: as users write it, below ``lake.<format>.``. ``kind``: its type, without None."""

    key: str
    kind: Any
    least: float | None
    most: float | None

    @property
    def can_be_set(self) -> bool:
        """Whether it is of a type that laketier makes of a text."""
        return self.kind in _KINDS or (isinstance(self.kind, type) and issubclass(self.kind, Enum))

    @property
    def is_hidden(self) -> bool:
        """Whether no text may show its value."""
        return self.kind in (Secret, Passthrough) or is_secret(self.key)


def declared(options_type: type) -> list[Declared]:
    """The options of a plugin, in their order."""
    kinds = typing.get_type_hints(options_type)
    return [
        Declared(
            each.name.replace("_", "-"),
            _without_none(kinds[each.name]),
            each.metadata.get("least"),
            each.metadata.get("most"),
        )
        for each in dataclasses.fields(options_type)
    ]


def values(option: Declared) -> Iterator[Any]:
    """What users may write for it, as a text, or as what YAML makes of it."""
    kind = option.kind
    if option.is_hidden:
        yield from () if kind is Passthrough else (CANARY,)
        return
    if kind is bool:
        yield from ("true", "FALSE", True, " false ", "maybe", "", 7)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        each = [str(member.value) for member in kind]
        yield from (*each, each[-1].upper(), f" {each[0]} ", "no-such-choice", "", 7)
    elif kind is int:
        least = 0 if option.least is None else math.ceil(option.least)
        most = LARGEST if option.most is None else math.floor(option.most)
        yield from (least, str(min(least + 1, most)), f" {most} ", least - 1, most + 1, HUGE, -HUGE)
        yield from ("many", "", " ", "1.5e3x", "0x10")
    elif kind is float:
        low = 0.0 if option.least is None else float(option.least)
        yield from (low, str(low + 0.5), low - 0.5, "nan", "inf", "-inf", "1e400", "many", "")
    else:
        yield from _TEXTS
    yield from ([1], {"a": 1})


def why_no_help(
    error: LaketierError, key: str, value: Any, *, hidden: bool = False, of_a_server: bool = False
) -> str | None:
    """Whether a refusal lacks something: the key, the value, or a word on what is allowed. None for a good one.
    ``of_a_server``: a server may say it in words of its own (of an account: `role "x" does not exist`), which tell the
    value, and can't know our key."""
    said = str(error)
    if hidden:
        return "it shows the value, which is a secret" if str(value) in said else None
    by_server, is_named = of_a_server and isinstance(error, StorageError), key in said
    if not is_named and not by_server:
        return f"it does not name {key}"
    if not (error.fix or error.why):
        return "it does not say what is allowed"
    plain = str(value).strip()
    has_none = not isinstance(value, str | int | float) or isinstance(value, bool) or not plain
    if has_none or (by_server and is_named):
        return None
    shown = {each[:_SHOWN].casefold() for each in (plain, repr(value), repr(plain), _rounded(value))}
    is_there = any(each in said.casefold() for each in shown)
    return None if is_there else f"it does not tell the value, {value!r:.60}"


def _rounded(value: Any) -> str:
    """As a float is shown that was written in another way."""
    try:
        return str(float(value))
    except (ValueError, OverflowError):
        return repr(value)


def ending_early(plugin: LakeStoragePlugin, *, files: bool) -> Mapping[str, str]:
    """Options by which a task's files end after 300 rows, or else what files are made of, after 60. Empty for a format
    without such options."""
    kinds = typing.get_type_hints(plugin.options_type)
    names = [name for name, kind in kinds.items() if name.endswith(("_rows", "_rows_per_file")) and kind is int]
    return {name.replace("_", "-"): "300" if files else "60" for name in names if ("file" in name) is files}


def says_where_files_end(name: str) -> bool:
    """Other options may have rows of files in their names, too: of how many a small one has, or one that is read."""
    return name.startswith(("target-", "max-")) or name.endswith("-rows-per-file")


def _without_none(kind: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, UnionType):
        return next(each for each in typing.get_args(kind) if each is not type(None))
    return kind
