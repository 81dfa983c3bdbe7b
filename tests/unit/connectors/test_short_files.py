"""A storage that calls an earlier place the end of a file."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

from laketier.connectors.files.options import FileFormat, LandingTableOptions
from laketier.connectors.files.readers import FileReader
from laketier.spi import StorageError

PACKED = gzip.compress(b'{"id": 1}\n')
SCHEMA = pa.schema([("id", pa.int64())])


def read(data: bytes, size: int, form: FileFormat, name: str) -> int:
    reader = FileReader(SCHEMA, LandingTableOptions(format=form), True)
    found = reader.read(pa.BufferReader(data), name, size, SCHEMA, None, lambda *_: None)
    return sum(batch.num_rows for batch in found)


@pytest.mark.parametrize(
    ("form", "name", "data"),
    [
        (FileFormat.JSON, "a.json", b'{"id": 1}\n{"id": 2}\n'),
        (FileFormat.CSV, "a.csv", b"id\n1\n2\n"),
        (
            FileFormat.JSON,
            "a.json.gz",
            PACKED + gzip.compress(b'{"id": 2}\n'),
        ),
    ],
    ids=["json", "csv", "gzip"],
)
def test_text_that_ends_before_its_size_is_no_shorter_file(form: FileFormat, name: str, data: bytes) -> None:
    assert read(data, len(data), form, name) == 2
    cut = len(PACKED) if name.endswith("gz") else len(data) // 2
    for length in (cut, 0):
        with pytest.raises(StorageError, match=f"ended after {length} of its {len(data)} bytes"):
            read(data[:length], len(data), form, name)
