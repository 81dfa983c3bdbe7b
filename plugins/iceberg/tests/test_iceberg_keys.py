"""The order of a primary key, which Iceberg does not keep: its identifier fields are a set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import TableDescriptor

KEY = ("z", "M", "a")
SCHEMA = pa.schema(
    [
        pa.field("v", pa.struct([pa.field("a", pa.string()), pa.field("b", pa.int64())])),
        *(pa.field(name, pa.int64(), nullable=False) for name in ("a", "M", "z")),
    ]
)


@pytest.fixture
def keyed(make: Any) -> Any:
    return make(schema=SCHEMA, primary_key=KEY)


def written_anew(table: Any, ids: list[int], **names: str) -> None:
    """The identifier fields of the newest metadata, as another tool writes them, and other names of columns."""
    location = Path(table.metadata_location)
    metadata = json.loads(location.read_text())
    for schema in metadata["schemas"]:
        schema["identifier-field-ids"] = ids
        for field in schema["fields"]:
            field["name"] = names.get(field["name"], field["name"])
    location.write_text(json.dumps(metadata))


def test_another_tool_writes_the_key_in_an_order_of_its_own(keyed: Any) -> None:
    """A table that was the same is not made anew, and a pipeline goes on."""
    assert keyed.info.descriptor.primary_key == KEY
    written_anew(keyed.table(), [2, 3, 4])
    catalog = keyed.storage.catalog()
    assert catalog.load_table(keyed.info.path).descriptor.primary_key == KEY
    again = catalog.create_table(keyed.info.path, TableDescriptor(SCHEMA, primary_key=KEY))
    assert again.table_uuid == keyed.info.table_uuid


def test_the_order_stays_when_another_tool_renames_a_column(keyed: Any) -> None:
    written_anew(keyed.table(), [2, 3, 4], M="middle")
    assert keyed.storage.catalog().load_table(keyed.info.path).descriptor.primary_key == ("z", "middle", "a")


def test_another_tool_gives_the_table_another_key(keyed: Any) -> None:
    """The order of before is none of it."""
    written_anew(keyed.table(), [2, 3])
    assert keyed.storage.catalog().load_table(keyed.info.path).descriptor.primary_key == ("a", "M")


def test_the_order_is_no_property_of_the_users(keyed: Any) -> None:
    assert not [key for key in keyed.info.descriptor.properties if key.startswith("laketier.")]
