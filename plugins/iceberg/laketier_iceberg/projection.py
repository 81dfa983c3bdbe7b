"""From the columns of a file to those of a table, by the rules of Iceberg's specification. Executor: pyarrow only.

A column of the table is the one of the file with its field id. Where the file has none, it is, in this order: the value
of the file's identity partition, the column without an id that the table's name mapping names, the field's initial
default, null. A file's own names say nothing: a name may have belonged to another column when the file was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.kit.nested import children
from laketier.spi import CorruptTable, FeatureNotSupported
from laketier.spi.schema import FIELD_ID
from laketier_iceberg.listed_file import ListedFile
from laketier_iceberg.promotion import promoted

FORMAT = "iceberg"


def id_of(field: pa.Field) -> int | None:
    """The field id that a file or a table gives it; None where there is none."""
    found = (field.metadata or {}).get(FIELD_ID)
    return None if found is None else int(found)


def by_id(fields: Sequence[pa.Field]) -> Mapping[int | None, Sequence[int]]:
    """The positions of a file's fields, by field id; under None of those without one."""
    found: dict[int | None, list[int]] = {}
    for index, field in enumerate(fields):
        found.setdefault(id_of(field), []).append(index)
    return found


def values_to_bytes(values: Mapping[int, pa.Scalar]) -> bytes:
    """One value per field id, of any type, for a `ListedFile`."""
    # Not through Python's own values, which end with the year 9999.
    arrays = [pa.repeat(value, 1) for value in values.values()]
    row = pa.RecordBatch.from_arrays(arrays, names=[str(field_id) for field_id in values])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, row.schema) as writer:
        writer.write_batch(row)
    return bytes(sink.getvalue())


def values_from_bytes(data: bytes) -> dict[int, pa.Scalar]:
    """Undo `values_to_bytes`; nothing for none."""
    if not data:
        return {}
    with pa.ipc.open_stream(data) as reader:
        row = reader.read_next_batch()
    return {int(name): row.column(index)[0] for index, name in enumerate(row.schema.names)}


@dataclass(frozen=True)
class Projection:
    """How one file is read as columns of its table.

    ``names``: field id → its names in the table's name mapping, where these are not just the field's own name now; None
    for a table without a mapping. ``partition`` and ``defaults``: field id → value.
    """

    path: str
    names: Mapping[int, Sequence[str]] | None
    partition: Mapping[int, pa.Scalar]
    defaults: Mapping[int, pa.Scalar]

    @classmethod
    def of(cls, file: ListedFile) -> Projection:
        """From what a split says of its file."""
        names = None if file.names is None else {int(key): value for key, value in file.names.items()}
        return cls(file.path, names, values_from_bytes(file.partition), values_from_bytes(file.defaults))

    def find(
        self, fields: Sequence[pa.Field], ids: Mapping[int | None, Sequence[int]], wanted: pa.Field, above: str = ""
    ) -> int | None:
        """Which of a file's ``fields`` is ``wanted``; None where it has none, or its partition's value goes first.
        ``ids`` are theirs, as `by_id` gives them.

        Raises `FeatureNotSupported` where nothing says what columns without ids are, and `CorruptTable` where two are
        the same column.
        """
        field_id = id_of(wanted)
        assert field_id is not None, "fields of a table have ids"
        found = ids.get(field_id, ())
        if not found:
            if field_id in self.partition:
                return None
            nameless = ids.get(None, ())
            if nameless and self.names is None:
                raise FeatureNotSupported(
                    "reading files without field ids in a table without a name mapping",
                    format=FORMAT,
                    reason=f"the columns of {self.path} have no ids ({fields[nameless[0]].name!r} is one), and nothing "
                    f"says which of them is {above}{wanted.name!r}",
                    fix="Set the table's property schema.name-mapping.default, as Spark's add_files does.",
                )
            names = [] if self.names is None else self.names.get(field_id, (wanted.name,))
            found = [index for index in nameless if fields[index].name in names]
        if len(found) > 1:
            both = " and ".join(repr(fields[index].name) for index in found[:2])
            raise CorruptTable(
                f"two columns of a file are the table's column {above}{wanted.name!r}: {both}",
                where=self.path,
                why="the name mapping names both" if id_of(fields[found[0]]) is None else "they have the same field id",
                fix="Take one of the names out of schema.name-mapping.default, or rewrite the file.",
            )
        return found[0] if found else None

    def missing(self, wanted: pa.Field, rows: int, above: str = "") -> pa.Array:
        """What a column that the file lacks reads as. Raises `CorruptTable` where it must not be null."""
        field_id = id_of(wanted)
        assert field_id is not None, "fields of a table have ids"
        for given in (self.partition, self.defaults):
            if field_id in given:
                return pa.repeat(given[field_id].cast(wanted.type), rows)
        if not wanted.nullable:
            raise CorruptTable(
                f"a file has no column {above}{wanted.name!r}, which is required and has no default",
                where=self.path,
                fix="Make the column optional, or rewrite the file.",
            )
        return pa.nulls(rows, wanted.type)

    def project(self, array: pa.Array, target: pa.Field, above: str = "") -> pa.Array:
        """``array`` as ``target`` wants it: fields of structs found as columns are, promoted types cast."""
        kind = target.type
        inside = f"{above}{target.name}."
        if pt.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pt.is_null(array.type):
            return array.cast(kind)
        if not _alike(array.type, kind):
            raise self._other_type(array.type, target, above)
        if pt.is_struct(kind):
            return self._struct(array, kind, inside)
        if array.offset and (pt.is_list(kind) or pt.is_map(kind)):
            array = pa.concat_arrays([array])  # Arrow builds no list with nulls from offsets that are a slice
        if pt.is_list(kind):
            if not pt.is_list(array.type):
                array = _as_list(array)
            if _has_no_struct(kind) and array.type.equals(kind):
                return array
            values = self.project(array.values, kind.value_field, inside)
            return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=_mask(array))
        if pt.is_map(kind):
            if _has_no_struct(kind) and array.type.equals(kind):
                return array
            keys = self.project(array.keys, kind.key_field, inside)
            items = self.project(array.items, kind.item_field, inside)
            return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=_mask(array))
        try:
            cast = promoted(array, kind)
        except pa.ArrowInvalid as error:
            raise self._other_type(array.type, target, above, str(error)) from error
        if cast is None:
            raise self._other_type(array.type, target, above)
        return cast

    def _struct(self, array: Any, kind: pa.DataType, inside: str) -> pa.Array:
        fields = [array.type.field(index) for index in range(array.type.num_fields)]
        ids = by_id(fields)
        children = []
        for wanted in (kind.field(position) for position in range(kind.num_fields)):
            index = self.find(fields, ids, wanted, inside)
            children.append(
                self.missing(wanted, len(array), inside)
                if index is None
                else self.project(array.field(index), wanted, inside)
            )
        return pa.StructArray.from_arrays(
            children, fields=[kind.field(i) for i in range(kind.num_fields)], mask=_mask(array)
        )

    def _other_type(self, found: pa.DataType, target: pa.Field, above: str, why: str | None = None) -> CorruptTable:
        return CorruptTable(
            f"column {above}{target.name!r} is {target.type}, and a file has it as {found}",
            where=self.path,
            why=why or "no promotion leads from one to the other",
            fix="Rewrite the file with the table's types.",
        )


def _alike(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether both are structs, lists, maps, or neither."""
    lists = pt.is_list(source) or pt.is_large_list(source) or pt.is_fixed_size_list(source)
    lists = lists or pt.is_list_view(source) or pt.is_large_list_view(source)
    return (
        pt.is_struct(source) == pt.is_struct(target)
        and pt.is_map(source) == pt.is_map(target)
        and lists == pt.is_list(target)
    )


def _as_list(array: pa.Array) -> pa.ListArray:
    """A list of another kind as a plain one. Of list views pyarrow's own cast makes lists with other items."""
    kind = pa.list_(array.type.value_field)
    if not (pt.is_list_view(array.type) or pt.is_large_list_view(array.type)):
        return array.cast(kind)
    ends = pc.cumulative_sum(array.value_lengths().fill_null(0)).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.ListArray.from_arrays(offsets, array.flatten(), type=kind, mask=_mask(array))


def _has_no_struct(kind: pa.DataType) -> bool:
    """Whether nothing below it has to be found by id."""
    return not pt.is_struct(kind) and all(_has_no_struct(child.type) for _, child in children(kind))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
