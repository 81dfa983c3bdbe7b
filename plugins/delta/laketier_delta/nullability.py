"""Not-null fields inside structs, lists and maps.

A null struct has nothing where its not-null fields would be, which Delta allows and Parquet's writer in pyarrow does
not. So files declare everything inside a column nullable; `laketier.kit.conform` checks what the table declares.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children, rebuilt
from laketier.spi import CorruptTable


def relaxed(schema: pa.Schema) -> pa.Schema:
    """``schema`` with everything inside its columns nullable; ``schema`` itself where it is so already."""
    result = pa.schema([field.with_type(_relaxed(field.type)) for field in schema])
    return schema if result.equals(schema) else result


def declared(array: pa.Array, kind: pa.DataType, *, where: str) -> pa.Array:
    """``array`` of the file ``where`` as ``kind``, which may declare more not null inside than the type that was read,
    or be a wider one. Raises `CorruptTable` for a type of another family: Arrow casts numbers to texts, moments and
    truths, which would be values that nobody wrote."""
    if array.type.equals(kind):
        return array
    if not _relaxed(array.type).equals(_relaxed(kind)):
        if not _is_of_the_family(array.type, kind):
            raise CorruptTable(
                f"a column of a data file is {array.type}, and that of the table is {kind}",
                where=where,
                why="another tool wrote the file anew, or gave the column another type since",
                fix="Restore the file from a backup, or read from a version on that has files of this type alone.",
            )
        return array.cast(kind)
    # Arrow's cast refuses a null struct whose not-null fields have nothing. Nullability is not in the buffers, so the
    # same bytes read under the other schema are the answer.
    message = pa.RecordBatch.from_arrays([array], ["c"]).serialize()
    return pa.ipc.read_record_batch(message, pa.schema([("c", kind)])).column(0)


def _is_of_the_family(source: pa.DataType, target: pa.DataType) -> bool:
    """Texts and bytes are one family, as some writers mark no text; so are numbers, and dates and moments. An extension
    is what it is stored as: DuckDB marks texts that are JSON."""
    if pt.is_dictionary(source):
        return _is_of_the_family(source.value_type, target)
    if isinstance(source, pa.BaseExtensionType):
        return _is_of_the_family(source.storage_type, target)
    if pt.is_null(source):
        return True
    if any(is_one(source) != is_one(target) for is_one in (_is_text, pt.is_boolean, pt.is_temporal)):
        return False
    inside, wanted = children(source), children(target)
    if pt.is_struct(target):
        wanted = [(name, field) for name, field in wanted if name in dict(inside)]
        inside = [(name, dict(inside)[name]) for name, _ in wanted]
    pairs = zip(inside, wanted, strict=False)
    return all(_is_of_the_family(found.type, field.type) for (_, found), (_, field) in pairs)


def _is_text(kind: pa.DataType) -> bool:
    one_of = (pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_binary, pt.is_large_binary, pt.is_binary_view)
    return any(is_one(kind) for is_one in (*one_of, pt.is_fixed_size_binary))


def _relaxed(kind: pa.DataType) -> pa.DataType:
    return rebuilt(kind, _nullable)


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_type(_relaxed(field.type)).with_nullable(True)
