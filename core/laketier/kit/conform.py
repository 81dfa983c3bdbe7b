"""Fits a batch to a table's schema: by name, without loss, or not at all."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.hidden_nulls import without_hidden_nulls
from laketier.kit.nested import is_list
from laketier.kit.nulls import refuse_nulls
from laketier.spi.errors import IncompatibleData, UnstorableRows


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of ``batch`` in exactly ``schema``. Columns are matched by name. A missing nullable column
    becomes null. Values are cast only within a family (integers, floats, strings, timestamps with a zone, timestamps
    without, …), and only if no value changes. Raises `IncompatibleData` for an extra column, a missing column and two
    columns of one name, and `UnstorableRows` for values that would be lost, and for a null where the schema allows none
    (also inside structs, lists and maps)."""
    if batch.schema.equals(schema):
        refuse_nulls(batch)
        return without_hidden_nulls(batch).replace_schema_metadata(schema.metadata)
    known = set(schema.names)
    extra = [name for name in batch.schema.names if name not in known]
    if extra:
        raise IncompatibleData(
            f"columns {extra} are not in the table",
            fix="Set mergeSchema to add them, drop them from the input, or add them to the table first.",
        )
    names = batch.schema.names
    if len(set(names)) < len(names):
        # Arrow finds neither of the two by name, so the column would be taken for one that is missing.
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        raise IncompatibleData(f"columns {twice} are there twice", fix="Give one of the two another name in the query.")
    arrays = [_column(batch, field) for field in schema]
    result = pa.RecordBatch.from_arrays(arrays, schema=schema)
    refuse_nulls(result)
    return without_hidden_nulls(result)


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        if field.nullable:
            return pa.nulls(batch.num_rows, field.type)
        raise IncompatibleData(
            f"column {field.name!r} is missing", why="the table declares it not null", fix="Add it to the input."
        )
    array = batch.column(index)
    if array.type.equals(field.type):
        return array
    if not fits(array.type, field.type):
        raise IncompatibleData(
            f"column {field.name!r} is {array.type}, and the table's is {field.type}",
            fix="Cast it in the query, where you choose how to convert values that do not fit.",
        )
    try:
        return array.cast(field.type, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        kind = UnstorableRows if isinstance(error, pa.ArrowInvalid) else IncompatibleData
        raise kind(
            f"column {field.name!r} has values that {field.type} can't hold",
            why=str(error),
            fix="Cast it in the query, where you choose how to convert values that do not fit.",
        ) from error


def fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether ``source`` may be cast to ``target`` if its values allow: the same family, at every level."""
    if source.equals(target) or pt.is_null(source):
        return True
    if pt.is_dictionary(source):
        return fits(source.value_type, target)
    if pt.is_floating(source) and pt.is_floating(target):
        # Arrow's safe cast rounds 0.1 to the nearest float32 without a word.
        return bool(source.bit_width <= target.bit_width)
    families = (
        pt.is_integer,
        # Arrow's cast computes with any scale, and crashes beyond those that a decimal can have.
        lambda t: pt.is_decimal(t) and -76 <= t.scale <= 76,
        lambda t: pt.is_string(t) or pt.is_large_string(t) or pt.is_string_view(t),
        lambda t: pt.is_binary(t) or pt.is_large_binary(t) or pt.is_binary_view(t) or pt.is_fixed_size_binary(t),
        pt.is_date,
        pt.is_time,
        lambda t: pt.is_timestamp(t) and t.tz is None,
        lambda t: pt.is_timestamp(t) and t.tz is not None,
    )
    if any(family(source) and family(target) for family in families):
        return True
    if pt.is_struct(source) and pt.is_struct(target):
        names = {target.field(i).name: target.field(i).type for i in range(target.num_fields)}
        # Of two fields of one name Arrow's cast takes neither, and the field is null.
        return source.num_fields == target.num_fields == len(set(source.names)) and all(
            source.field(i).name in names and fits(source.field(i).type, names[source.field(i).name])
            for i in range(source.num_fields)
        )
    if pt.is_map(source) and pt.is_map(target):
        return fits(source.key_type, target.key_type) and fits(source.item_type, target.item_type)
    if is_list(source) and is_list(target):
        sizes_agree = (
            not pt.is_fixed_size_list(target)
            or (pt.is_fixed_size_list(source) and source.list_size == target.list_size)
            or not pt.is_fixed_size_list(source)
        )
        return sizes_agree and fits(source.value_type, target.value_type)
    return False
