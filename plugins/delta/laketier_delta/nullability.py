"""Not-null fields inside structs, lists and maps.

A null struct has nothing where its not-null fields would be, which Delta allows and Parquet's writer in pyarrow does
not. So files declare everything inside a column nullable; `laketier.kit.conform` checks what the table declares.
"""

from __future__ import annotations

import pyarrow as pa

from laketier.kit.nested import rebuilt


def relaxed(schema: pa.Schema) -> pa.Schema:
    """``schema`` with everything inside its columns nullable; ``schema`` itself where it is so already."""
    result = pa.schema([field.with_type(_relaxed(field.type)) for field in schema])
    return schema if result.equals(schema) else result


def declared(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """``array`` as ``kind``, which may declare more not null inside than the type that was read."""
    if array.type.equals(kind):
        return array
    if not _relaxed(array.type).equals(_relaxed(kind)):
        return array.cast(kind)
    # Arrow's cast refuses a null struct whose not-null fields have nothing. Nullability is not in the buffers, so the
    # same bytes read under the other schema are the answer.
    message = pa.RecordBatch.from_arrays([array], ["c"]).serialize()
    return pa.ipc.read_record_batch(message, pa.schema([("c", kind)])).column(0)


def _relaxed(kind: pa.DataType) -> pa.DataType:
    return rebuilt(kind, _nullable)


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_type(_relaxed(field.type)).with_nullable(True)
