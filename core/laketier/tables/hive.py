"""Columns that the names of folders hold: ``region=eu/day=2026-01-01/part.parquet``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from laketier.codecs.said import shown
from laketier.spi import IncompatibleData
from laketier.tables.promotion import Spelling, promoted

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_FOLDER = re.compile(r"([^=]+)=(.*)\Z", re.DOTALL)
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,17})\Z", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", re.ASCII)


@dataclass(frozen=True)
class HivePartitions:
    """The columns in the names of folders, with types that all their values fit."""

    names: tuple[str, ...] = ()
    types: tuple[pa.DataType, ...] = ()

    @classmethod
    def of(cls, paths: Sequence[str]) -> HivePartitions:
        """Look at all paths. Raises `IncompatibleData` where they do not name the same columns, in one order."""
        found: dict[tuple[str, ...], str] = {}
        kinds: list[pa.DataType] = []
        for path in sorted(paths):
            values = values_of(path)
            names = tuple(name for name, _ in values)
            found.setdefault(names, path)
            if len(found) > 1:
                one, other = found.values()
                raise IncompatibleData(
                    f"the folders of {shown(one)!r} name the columns {list(next(iter(found)))}, and those of "
                    f"{shown(other)!r} {list(names)}",
                    fix="Put all files at the same depth of folders named column=value, or do without --partitions.",
                )
            kinds = kinds or [pa.null()] * len(values)
            kinds = [
                promoted(kind, _kind(value), Spelling.CSV) or pa.string()
                for kind, (_, value) in zip(kinds, values, strict=True)
            ]
        names = next(iter(found), ())
        if len(set(map(str.lower, names))) < len(names):
            raise IncompatibleData(f"the folders name the columns {list(names)}", why="one is there twice")
        return cls(names, tuple(pa.string() if pa.types.is_null(kind) else kind for kind in kinds))

    def without(self, names: Collection[str]) -> HivePartitions:
        """Leave columns out."""
        kept = [(name, kind) for name, kind in zip(self.names, self.types, strict=True) if name not in names]
        return HivePartitions(tuple(name for name, _ in kept), tuple(kind for _, kind in kept))

    def added_to(self, schema: pa.Schema, given: Mapping[str, pa.DataType] | None = None) -> pa.Schema:
        """The columns of files, then those of folders. A column that the files have, too, has the type of the files.
        ``given``: types that the user chose, which the folders' values need not look like."""
        for name, kind in zip(self.names, self.types, strict=True):
            taken = next((each for each in schema.names if each.lower() == name.lower()), None)
            if taken is not None and taken != name:
                raise IncompatibleData(
                    f"the folders name a column {name!r}, and the files have {taken!r}",
                    why="they differ by case only, and most readers fold case",
                    fix="Rename the folders.",
                )
            if taken is None:
                schema = schema.append(pa.field(name, (given or {}).get(name, kind)))
        return schema


def values_of(path: str) -> list[tuple[str, str | None]]:
    """The columns and values in a path, outermost first. Other folders say nothing."""
    matches = (_FOLDER.match(folder) for folder in path.split("/")[:-1])
    return [(_unshown(m[1]), None if m[2] == NULL_FOLDER else _unshown(m[2])) for m in matches if m]


def _kind(value: str | None) -> pa.DataType:
    if value is None:
        return pa.null()
    if _INTEGER.match(value):
        return pa.int64()
    if _DATE.match(value):
        try:
            date.fromisoformat(value)
        except ValueError:
            return pa.string()
        return pa.date32()
    return pa.string()


def _unshown(text: str) -> str:
    """``%`` and two digits are a byte of UTF-8, as DuckDB, Polars, Arrow and Delta write whatever is not ASCII. Hive
    and Spark leave that as it is. So what is no UTF-8 is a character below 256, as they read it: a whole run of such
    bytes, as one value has one writer."""
    return _ESCAPED.sub(_characters, text)


def _characters(escaped: re.Match[str]) -> str:
    data = bytes.fromhex(escaped[0].replace("%", ""))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
