"""A layout that names a column twice is refused before a table is made, for every format alike."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from laketier.registry import configure, open_lake
from laketier.spi import ConfigError
from laketier.tables import TableLayout, prepare_table

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("day", pa.string()), ("at", pa.timestamp("us", "UTC"))]
)


@pytest.mark.parametrize("lake_format", ["delta", "iceberg", "lance", "localfile"])
@pytest.mark.parametrize(
    ("keys", "layout", "says"),
    [
        ({"partition-by": "day, id, day"}, TableLayout(), "'day' is named twice as a partition"),
        ({"partition-by": "day(at), day(at)"}, TableLayout(), r"'day\(at\)' is named twice as a partition"),
        ({"bucket-by": "bucket(4, id, id)"}, TableLayout(), "'id' is named twice as a bucket key"),
        ({}, TableLayout(primary_key=("id", "day", "id")), "'id' is named twice as a column of the primary key"),
    ],
)
def test_a_column_is_named_twice(
    tmp_path: Path, lake_format: str, keys: dict[str, str], layout: TableLayout, says: str
) -> None:
    options = {"format": lake_format, "warehouse": str(tmp_path), "table": "db.t", **keys}
    lake = open_lake(configure({f"lake.{key}": value for key, value in options.items()}))
    with pytest.raises(ConfigError, match=says):
        prepare_table(lake, SCHEMA, layout=layout)
    assert lake.storage.catalog().list_tables() == []
