"""Spark's own types, at the schema: no session is needed to refuse what Arrow would make another type of."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import types as st

from laketier.spark.schema import table_schema
from laketier.spi import UnsupportedType

REFUSED = {
    "variant": (st.VariantType(), "to_json"),
    "geometry": (st.GeometryType(4326), "ST_AsBinary"),
    "geography": (st.GeographyType(4326), "ST_AsBinary"),
    "user-defined type VectorUDT": (VectorUDT(), "vector_to_array"),
    "collation UTF8_LCASE": (st.StringType("UTF8_LCASE"), "COLLATE UTF8_BINARY"),
    "interval year to month": (st.YearMonthIntervalType(), "Cast it"),
    "interval": (st.CalendarIntervalType(), "Cast it"),
    "array<void>": (st.ArrayType(st.NullType(), containsNull=False), "Cast it"),
}


@pytest.mark.parametrize("named", REFUSED)
def test_types_that_would_become_others_are_refused_at_every_level(named):
    kind, fix = REFUSED[named]
    for nested in (
        kind,
        st.ArrayType(kind),
        st.MapType(st.StringType(), kind),
        st.StructType([st.StructField("x", st.ArrayType(st.StructType([st.StructField("y", kind)])))]),
    ):
        with pytest.raises(UnsupportedType) as refused:
            table_schema(st.StructType([st.StructField("id", st.LongType()), st.StructField("c", nested)]))
        assert "column 'c" in refused.value.what
        assert named in refused.value.what
        assert fix in (refused.value.fix or "")


def test_what_arrow_can_say_is_kept():
    struct = st.StructType([st.StructField("value", st.BinaryType()), st.StructField("metadata", st.BinaryType())])
    columns = {
        "honest": (struct, pa.struct([("value", pa.binary()), ("metadata", pa.binary())])),
        "time": (st.TimeType(3), pa.time64("ns")),
        "elapsed": (st.DayTimeIntervalType(), pa.duration("us")),
        "plain": (st.StringType(), pa.string()),
    }
    schema = table_schema(st.StructType([st.StructField(name, kind) for name, (kind, _) in columns.items()]))
    assert schema == pa.schema([(name, arrow) for name, (_, arrow) in columns.items()])


def test_the_length_of_char_and_varchar_stays_behind():
    """A table that is made from such a column gets strings: the values are right, and no format is told a rule that
    laketier would have to keep."""
    field = st.StructField("c", st.StringType(), True, {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
    assert table_schema(st.StructType([field])).field(0).metadata is None
