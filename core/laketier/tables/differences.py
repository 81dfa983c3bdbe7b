"""What tells two schemas apart, and what a round makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from laketier.kit.conform import fits
from laketier.spi import widens


@dataclass(frozen=True)
class Difference:
    """One column. ``here`` and ``there``: its types, None where it is missing. ``meaning``: what a round with rows as
    they are there does."""

    column: str
    here: str | None
    there: str | None
    meaning: str

    def __str__(self) -> str:
        if self.here is None:
            return f"+ {self.column} {self.there}: {self.meaning}"
        if self.there is None:
            return f"- {self.column} {self.here}: {self.meaning}"
        return f"~ {self.column} {self.here} → {self.there}: {self.meaning}"


def differences(here: pa.Schema, there: pa.Schema) -> list[Difference]:
    """Column by column, in the order of ``here``, then what only ``there`` has."""
    found = [_of(column, there) for column in here]
    found += [
        Difference(column.name, None, _shown(column), "added with mergeSchema, refused without")
        for column in there
        if column.name not in here.names
    ]
    return [each for each in found if each is not None]


def _of(column: pa.Field, there: pa.Schema) -> Difference | None:
    if column.name not in there.names:
        meaning = "null in new rows" if column.nullable else "refused, as it is not null"
        return Difference(column.name, _shown(column), None, meaning)
    other = there.field(column.name)
    if column.type.equals(other.type) and column.nullable == other.nullable:
        return None
    if column.type.equals(other.type):
        meaning = "nulls are refused" if other.nullable else "fits"
    elif widens(column.type, other.type):
        meaning = "the column may be widened; without that, values that do not fit are refused"
    elif fits(other.type, column.type):
        meaning = "cast, and values that do not fit are refused"
    else:
        meaning = "refused"
    return Difference(column.name, _shown(column), _shown(other), meaning)


def _shown(column: pa.Field) -> str:
    return f"{column.type}{'' if column.nullable else ' not null'}"
