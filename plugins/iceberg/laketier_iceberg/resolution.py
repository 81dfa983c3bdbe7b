"""The table's names, partition values and defaults for columns that a file may lack. Driver."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children
from laketier.spi import ConfigError, CorruptTable
from laketier_iceberg.listed_file import ListedFile
from laketier_iceberg.metrics import leaves
from laketier_iceberg.projection import id_of, values_to_bytes

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.partitioning import PartitionField
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.name_mapping import MappedField

NAME_MAPPING = "schema.name-mapping.default"


@dataclass(frozen=True)
class Resolution:
    """Of one scan: ``wanted`` is what it reads of ``schema``. Raises `CorruptTable` for a name mapping that can't be
    understood, and for a value that is none of its column's type."""

    metadata: TableMetadata
    schema: Schema
    wanted: pa.Schema
    where: str
    _specs: dict[int, list[tuple[int, PartitionField]]] = field(default_factory=dict, init=False, compare=False)
    _encoded: dict[tuple[str, Hashable], bytes] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def names(self) -> Mapping[str, tuple[str, ...]] | None:
        """The name mapping, see `ListedFile.names`."""
        mapped = name_mapping(self.metadata, self.where)
        if mapped is None:
            return None
        return dict(_names(self.wanted, mapped))

    @cached_property
    def _types(self) -> dict[int, pa.DataType]:
        return {leaf.field_id: leaf.type for leaf in leaves(self.wanted)}

    @cached_property
    def _defaults(self) -> dict[int, pa.Scalar]:
        found = ((field_id, self.schema.find_field(field_id).initial_default) for field_id in self._types)
        return {field_id: self._value(field_id, value) for field_id, value in found if value is not None}

    def listed(self, file: DataFile, deletes: tuple[str, ...]) -> ListedFile:
        """Make the payload for the reader of ``file``."""
        known = frozenset(file.column_sizes or ())
        defaults = frozenset(self._defaults.keys() - known)
        return ListedFile(
            file.file_path,
            self.names,
            self._partition(file, known),
            self._bytes("defaults", defaults, lambda: {i: self._defaults[i] for i in sorted(defaults)}),
            deletes,
        )

    def _partition(self, file: DataFile, known: frozenset[int]) -> bytes:
        """Of the identity partitions' columns, those that are not known to be in the file with their ids: files that
        were moved in from Hive leave them out."""
        given = {
            each.source_id: file.partition[position]
            for position, each in self._identities(file.spec_id)
            if self.names is not None or each.source_id not in known
        }
        # By its text: 0.0 is equal to -0.0, and True to 1.
        key = tuple((field_id, repr(value)) for field_id, value in given.items())
        return self._bytes("partition", key, lambda: {i: self._value(i, value) for i, value in given.items()})

    def _identities(self, spec_id: int) -> list[tuple[int, PartitionField]]:
        found = self._specs.get(spec_id)
        if found is None:
            fields = enumerate(self.metadata.specs()[spec_id].fields)
            found = self._specs[spec_id] = [
                (position, each)
                for position, each in fields
                if str(each.transform) == "identity" and each.source_id in self._types
            ]
        return found

    def _bytes(
        self, kind: str, key: frozenset[int] | tuple[Hashable, ...], values: Callable[[], Mapping[int, pa.Scalar]]
    ) -> bytes:
        """Once for all files of one partition; nothing for no values."""
        if not key:
            return b""
        found = self._encoded.get((kind, key))
        if found is None:
            found = self._encoded[kind, key] = values_to_bytes(values())
        return found

    def _value(self, field_id: int, value: Any) -> pa.Scalar:
        kind = self._types[field_id]
        try:
            return pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            name = self.schema.find_column_name(field_id)
            raise CorruptTable(
                f"{value!r}, which files without column {name!r} have there, is no {kind}",
                where=self.where,
                why="a partition value or an initial default in the table's metadata is of another type",
                fix="Rewrite these files with the engine that made them.",
            ) from error


def name_mapping(metadata: TableMetadata, where: str) -> Sequence[MappedField] | None:
    """The table's; None where it has none. Raises `CorruptTable` for one that can't be understood."""
    try:
        return _mapped(metadata.properties)
    except (ValueError, TypeError) as error:
        raise CorruptTable(
            f"the table's property {NAME_MAPPING} can't be understood",
            where=where,
            why=_reason(error),
            fix="Set it again as Iceberg's specification says; files without field ids can't be read without it.",
        ) from error


def refuse_odd_mapping(properties: Mapping[str, str], where: str) -> None:
    """Raise `ConfigError` for the properties of a new table that nobody could read."""
    try:
        _mapped(properties)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"the table property {NAME_MAPPING} can't be understood",
            where=where,
            why=_reason(error),
            fix="Leave it out: laketier's files have field ids. Or write it as Iceberg's specification says.",
        ) from error


def _mapped(properties: Mapping[str, str]) -> Sequence[MappedField] | None:
    text = properties.get(NAME_MAPPING)
    if text is None:
        return None
    from pyiceberg.table.name_mapping import parse_mapping_from_json

    mapped = parse_mapping_from_json(text).root
    _check(mapped)
    return mapped


def _reason(error: Exception) -> str:
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{first['msg']} (at {'.'.join(map(str, first['loc'])) or 'its beginning'})"


def _check(mapped: Iterable[MappedField]) -> None:
    """Raises ValueError or TypeError where a name, or an id, is twice in one struct."""
    names: set[str] = set()
    ids: set[int] = set()
    for each in mapped:
        if not isinstance(each.names, list):
            raise TypeError(f"field {each.field_id} has no list of names")
        for name in dict.fromkeys(each.names):
            if name in names:
                raise ValueError(f"the name {name!r} is given to two fields")
            names.add(name)
        if each.field_id is not None:
            if each.field_id in ids:
                raise ValueError(f"field {each.field_id} is there twice")
            ids.add(each.field_id)
        _check(each.fields)


def _names(fields: Iterable[pa.Field], mapped: Iterable[MappedField]) -> Iterator[tuple[str, tuple[str, ...]]]:
    by_id: Mapping[int | None, MappedField] = {each.field_id: each for each in mapped}
    for each in fields:
        field_id = id_of(each)
        entry = by_id.get(field_id)
        names = [] if entry is None else entry.names
        if names != [each.name]:
            yield str(field_id), tuple(names)
        yield from _inside(each.type, () if entry is None else entry.fields)


def _inside(kind: pa.DataType, mapped: Sequence[MappedField]) -> Iterator[tuple[str, tuple[str, ...]]]:
    inside = children(kind)
    if pt.is_struct(kind):
        yield from _names((child for _, child in inside), mapped)
        return
    for part, child in inside:
        yield from _inside(child.type, _of(mapped, part))


def _of(mapped: Sequence[MappedField], part: str) -> Sequence[MappedField]:
    """What is mapped inside the elements of a list, or the keys or values of a map: the specification's names for them,
    whatever a file calls them."""
    return next((each.fields for each in mapped if part in each.names), ())
