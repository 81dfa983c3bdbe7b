"""What is marked as another type is refused in every format, before a table is made; the same struct is else kept."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from laketier.registry import configure, open_lake
from laketier.spi import ScanRequest, TableNotFound, UnsupportedType, WriterInitContext, new_attempt_id
from laketier.tables import prepare_table
from laketier.tables.marks import refuse_marked
from laketier.tables.scan import scan
from laketier.tiering import TieringRound, write_task

BINARY = pa.binary()


def parts(mark: str | None, *names: str) -> pa.DataType:
    """A struct as Spark gives it: the last field carries the mark."""
    metadata = None if mark is None else {mark: "true"}
    return pa.struct([*(pa.field(name, BINARY) for name in names[:-1]), pa.field(names[-1], BINARY, metadata=metadata)])


VARIANT = parts("variant", "value", "metadata")
HONEST = parts(None, "value", "metadata")


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (VARIANT, "c"),
        (pa.list_(VARIANT), "c.element"),
        (pa.large_list(pa.list_(VARIANT, 2)), "c.element.element"),
        (pa.struct([("x", pa.struct([("y", VARIANT)]))]), "c.x.y"),
        (pa.map_(pa.string(), VARIANT), "c.value"),
    ],
)
def test_a_variant_is_found_at_every_level(kind, path):
    with pytest.raises(UnsupportedType, match=f"column '{path}' is a variant.*to_json"):
        refuse_marked(pa.schema([("id", pa.int64()), ("c", kind)]))


@pytest.mark.parametrize(
    ("field", "named"),
    [
        (pa.field("c", parts("geometry", "srid", "wkb")), "geometry"),
        (pa.field("c", parts("geography", "srid", "wkb")), "geography"),
        (pa.field("c", HONEST, metadata={"ARROW:extension:name": "arrow.parquet.variant"}), "variant"),
        (pa.field("c", BINARY, metadata={"ARROW:extension:name": "geoarrow.wkb"}), "geometry"),
    ],
)
def test_other_types_that_arrow_only_marks(field, named):
    with pytest.raises(UnsupportedType, match=f"is a {named}"):
        refuse_marked(pa.schema([field]))


def test_marks_that_say_no_and_other_metadata_are_no_marks():
    refuse_marked(
        pa.schema(
            [
                pa.field("a", HONEST, metadata={"variant": "true"}),
                pa.field("b", pa.struct([pa.field("metadata", BINARY, metadata={"variant": "false"})])),
                pa.field("variant", BINARY, metadata={"comment": "geometry"}),
            ]
        )
    )


@pytest.mark.parametrize("format_name", ["delta", "iceberg", "lance", "localfile"])
def test_every_format_refuses_a_variant_and_keeps_an_honest_struct(tmp_path: Path, format_name):
    options = {"lake.format": format_name, "lake.warehouse": str(tmp_path), "lake.table": "db.t"}
    lake = open_lake(configure(options))
    with pytest.raises(UnsupportedType, match=r"db\.t: column 'c' is a variant"):
        prepare_table(lake, pa.schema([("id", pa.int64()), ("c", VARIANT)]))
    with pytest.raises(TableNotFound):
        lake.load_table()
    data = pa.table({"id": [1], "c": pa.array([{"value": b"v", "metadata": b"m"}], HONEST)})
    table = prepare_table(lake, data.schema)
    tiering = TieringRound(lake.tiering_factory(table))
    tiering.begin()
    context = WriterInitContext(attempt=new_attempt_id())
    tiering.commit_messages([write_task(lake.tiering_factory(table), data.to_batches(), context)])
    _, batches = scan(lake.source(lake.load_table()), ScanRequest())
    assert [row for batch in batches for row in batch.to_pylist()] == data.to_pylist()
    with pytest.raises(UnsupportedType, match="is a variant"):
        prepare_table(open_lake(configure({**options, "mergeSchema": "true"})), pa.schema([("v", VARIANT)]))
    with pytest.raises(UnsupportedType, match="is a variant"):
        prepare_table(lake, pa.schema([("id", pa.int64()), ("c", VARIANT)]))
