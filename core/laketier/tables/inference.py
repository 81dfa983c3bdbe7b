"""The schema of many files: what each of them says, and what all of them can be read as.

Only *which schemas there are* is gathered, each with the first file that has it, by name. So any order of files, any
sample and any way to share them among threads leads to the same schema, and to the same words where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as pt

from laketier.codecs.bounds import SCHEMA_COLUMNS, SCHEMA_DEPTH
from laketier.codecs.said import shown
from laketier.config.suggest import did_you_mean
from laketier.kit.nested import children, rebuilt
from laketier.spi import ConfigError, IncompatibleData, schema_fingerprint
from laketier.tables.evolution import logical_schema
from laketier.tables.promotion import Spelling, merged, promoted

_MOST_FIELDS = 10_000_000
"""Of all schemas that differ, together: what honest files never come near."""


@dataclass
class SchemaSet:
    """The schemas of some files. ``spelling``: how these hold values. ``first``: by its fingerprint each schema that
    there is, with the first file that has it. Not safe among threads: each fills its own, and
    one takes them all (`update`)."""

    spelling: Spelling = Spelling.TYPED
    files: int = 0
    first: dict[str, tuple[str, int, pa.Schema]] = field(default_factory=dict)
    _fields: int = 0
    _names: set[str] = field(default_factory=set)

    def add(self, schema: pa.Schema, file: str, place: int = 0) -> None:
        """Take what one file says, or a part of it at ``place``. Raises `IncompatibleData` for columns that no table
        can have."""
        _refuse_odd(schema, file)
        logical = logical_schema(schema)
        self.files += 1
        self._take(schema_fingerprint(logical), file, place, logical)

    def update(self, others: Iterable[SchemaSet]) -> None:
        """Take what others hold."""
        for other in others:
            self.files += other.files
            for key, known in other.first.items():
                self._take(key, *known)

    def schema(self, given: Mapping[str, pa.DataType] | None = None) -> pa.Schema:
        """As `joined`, and a column that no file has a value of is text."""
        return pa.schema([filled(column) for column in self.joined(given)])

    def joined(self, given: Mapping[str, pa.DataType] | None = None) -> pa.Schema:
        """What all of them can be read as. Columns are in the order in which files, by their names, have them first.
        One that some file lacks may be null. ``given``: types that the user chose.

        Raises `IncompatibleData` naming the column, two types of it and a file of each, for types without a join, for
        columns that differ by case only, and where there are no files.
        """
        found = self.schemas()
        if not found:
            raise IncompatibleData("there are no files to take columns from", fix="Name a folder that holds some.")
        result: dict[str, pa.Field] = {}
        for at, (file, schema) in enumerate(found):
            for column in schema:
                known = result.get(column.name)
                if known is None:
                    result[column.name] = column.with_nullable(True) if at else column
                    continue
                joined = merged(known, column, self.spelling)
                if joined is None and column.name not in (given or {}):
                    raise self._conflict(column, file, found[:at])
                result[column.name] = joined or known.with_nullable(known.nullable or column.nullable)
            for name in result.keys() - set(schema.names):
                result[name] = result[name].with_nullable(True)
        _refuse_folded(result, found)
        chosen = {name: kind for name, kind in (given or {}).items() if name in result}
        return pa.schema([each.with_type(chosen.get(each.name, each.type)) for each in result.values()])

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """Those that differ, each with the first file that has it, by the names of these."""
        found = sorted(self.first.values(), key=lambda each: each[:2])
        return [(file, schema) for file, _, schema in found]

    def _take(self, key: str, file: str, place: int, schema: pa.Schema) -> None:
        known = self.first.get(key)
        if known is None:
            self._fields += len(schema)
            self._names.update(schema.names)
            if len(self._names) > SCHEMA_COLUMNS:
                raise _too_many(file)
            if self._fields > _MOST_FIELDS:
                raise IncompatibleData(
                    f"the schemas of {len(self.first):,} files all differ, with {self._fields:,} columns together",
                    where=file,
                    fix="Infer from fewer files, or give the columns.",
                )
        if known is None or (file, place) < known[:2]:
            self.first[key] = (file, place, schema)

    def _conflict(self, column: pa.Field, file: str, before: list[tuple[str, pa.Schema]]) -> IncompatibleData:
        holders = [(name, schema.field(column.name)) for name, schema in before if column.name in schema.names]
        apart = [each for each in holders if promoted(each[1].type, column.type, self.spelling) is None]
        other, theirs = (apart or holders[-1:])[0]
        path, one, two = _where_apart(theirs.type, column.type, column.name, self.spelling)
        kinds = [shown(str(kind), 200) for kind in (one, two)]
        return IncompatibleData(
            f"column {shown(path, 200)!r} is {kinds[0]} in {other!r} and {kinds[1]} in {file!r}",
            why="no type holds the values of both unchanged",
            fix="Give the column's type, leave one of the files out, or write it again with the other's type.",
        )


def refuse_strangers(schemas: SchemaSet, where: str) -> None:
    """Raise `IncompatibleData` for two files of CSV without a common column: the first line of one is no header, as it
    seems, and its first record would be lost."""
    if schemas.spelling is not Spelling.CSV:
        return
    found = schemas.schemas()
    for file, schema in found[1:]:
        if not set(schema.names) & set(found[0][1].names):
            raise IncompatibleData(
                f"{found[0][0]!r} and {file!r} have no column in common",
                where=where,
                why=f"by their first lines one has {shown(str(found[0][1].names), 200)}, and the other "
                f"{shown(str(schema.names), 200)}: a line of names is missing, as it seems",
                fix="Write a line of names as the first of each file, or move one of them away.",
            )


def _too_many(file: str) -> IncompatibleData:
    return IncompatibleData(
        f"the files have more than {SCHEMA_COLUMNS:,} columns together",
        where=file,
        why="no table has as many; are some of their values the names of fields?",
        fix="Leave the file out, or write it again.",
    )


def _where_apart(
    one: pa.DataType, two: pa.DataType, path: str, spelling: Spelling
) -> tuple[str, pa.DataType, pa.DataType]:
    """The innermost field at which two types differ."""
    if type(one) is type(two):
        inner = dict(children(two))
        for name, field_ in children(one):
            if name in inner and promoted(field_.type, inner[name].type, spelling) is None:
                return _where_apart(field_.type, inner[name].type, f"{path}.{name}", spelling)
    return path, one, two


def refuse_misplaced_types(given: Mapping[str, pa.DataType] | None, schema: pa.Schema, where: str) -> None:
    """Raise `ConfigError` where the user chose the type of a column that is not in ``schema``."""
    for name in given or {}:
        if name not in schema.names:
            raise ConfigError(
                f"a type is given for column {name!r}, and there is no such column",
                where=where,
                fix=did_you_mean(name, schema.names),
            )


def filled(column: pa.Field) -> pa.Field:
    """With text for what never had a value: nobody knows its type, and tables have none for it."""
    if pt.is_null(column.type):
        return column.with_type(pa.string())
    return column.with_type(rebuilt(column.type, filled))


def _refuse_odd(schema: pa.Schema, file: str) -> None:
    columns = 0
    pending = [("", schema, 1)]
    while pending:
        path, fields, depth = pending.pop()
        names: set[str] = set()
        for each in fields:
            columns += 1
            here = f"{path}{each.name}"
            if depth > SCHEMA_DEPTH:
                raise _odd(schema.field(0).name if not path else path.split(".")[0], "is nested too deeply", file)
            if each.name in names:
                raise _odd(here, "is there twice", file)
            if not each.name and depth == 1:
                raise _odd(here, "has no name", file)
            if columns > SCHEMA_COLUMNS:
                raise _odd(here, f"is one of more than {SCHEMA_COLUMNS:,}", file)
            names.add(each.name)
            inner = [each.type.field(at) for at in range(each.type.num_fields)] if pt.is_nested(each.type) else []
            if inner:
                pending.append((f"{here}." if depth <= 3 else path, inner, depth + 1))


def _odd(column: str, why: str, file: str) -> IncompatibleData:
    return IncompatibleData(
        f"column {shown(column, 200)!r} {why}", where=file, fix="Leave the file out, or write it again."
    )


def _refuse_folded(result: Mapping[str, pa.Field], found: list[tuple[str, pa.Schema]]) -> None:
    folded: dict[str, str] = {}
    for name in result:
        other = folded.setdefault(name.lower(), name)
        if other != name:
            first, second = (next(file for file, schema in found if each in schema.names) for each in (other, name))
            raise _folded(
                f"columns {shown(other, 200)!r} in {first!r} and {shown(name, 200)!r} in {second!r}",
            )
        _refuse_folded_inside(result[name].type, name)


def _refuse_folded_inside(kind: pa.DataType, path: str) -> None:
    folded: dict[str, str] = {}
    for name, child in children(kind):
        other = folded.setdefault(name.lower(), name)
        if other != name:
            raise _folded(f"fields {shown(other, 200)!r} and {shown(name, 200)!r} of column {shown(path, 200)!r}")
        _refuse_folded_inside(child.type, f"{path}.{name}")


def _folded(which: str) -> IncompatibleData:
    return IncompatibleData(
        f"{which} differ by case only",
        why="most readers fold case, and would take them for one",
        fix="Rename one of them, or leave the file out.",
    )
