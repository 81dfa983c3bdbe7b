"""Typed options: how a plugin declares its ``lake.<format>.*`` keys.

A plugin's options are a frozen dataclass. Each field is a key: ``target_file_rows`` is set by
``lake.<format>.target-file-rows``. Types: str, int, float, bool, an Enum, Secret, ``X | None``, and `Passthrough`
for a whole prefix handed on to a library (``lake.<format>.storage.*``). Every field has a default and a doc::

    @dataclass(frozen=True)
    class MyOptions:
        target_file_rows: int = option(1_048_576, "Rows per data file.")
        storage: Passthrough = option(Passthrough(), "Handed to my library's store.")
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any


class Secret:
    """A value that is never shown: ``repr``, ``str`` and formatting give ``***``."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, for the library that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class Passthrough(Mapping[str, str]):
    """The keys below one prefix, for a library. Its repr shows the keys and no value, as any value may be a secret."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key}: ***" for key in sorted(self._values)) + "}"


def option(default: Any, doc: str, *, least: float | None = None, most: float | None = None) -> Any:
    """Declare a field of an options dataclass.

    Args:
        default: The default.
        doc: One line for people.
        least: The least value of a number. The configuration refuses a smaller one, by its key.
        most: The greatest one. Of integers, 64 bits are the most without it.

    Returns:
        The field.
    """
    if isinstance(default, Passthrough):
        return dataclasses.field(default_factory=Passthrough, metadata={"doc": doc})
    return dataclasses.field(default=default, metadata={"doc": doc, "least": least, "most": most})


@dataclasses.dataclass(frozen=True)
class NoOptions:
    """The options of a plugin without any."""
