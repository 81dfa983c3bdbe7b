"""Whose fault an error over a file of an object store is: its bytes', or the storage's."""

from __future__ import annotations

import gzip
import io
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.connectors.files import readers
from laketier.connectors.files.options import FileFormat, LandingTableOptions
from laketier.connectors.files.readers import FileReader, UnreadableFile

TABLE = pa.table({"id": range(3_000)})


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, compression="zstd", use_dictionary=False)
    return sink.getvalue()


def arrow() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, TABLE.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


def avro() -> bytes:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
    fastavro.writer(sink, schema, TABLE.to_pylist(), codec="deflate")
    return sink.getvalue()


LINES = b"".join(b'{"id": %d}\n' % at for at in range(3_000))
FILES: dict[str, tuple[FileFormat, str, bytes]] = {
    "json": (FileFormat.JSON, "f", LINES),
    "json.gz": (FileFormat.JSON, "f.gz", gzip.compress(LINES)),
    "json.zst": (FileFormat.JSON, "f.zst", pa.compress(LINES, codec="zstd", asbytes=True)),
    "parquet": (FileFormat.PARQUET, "f", parquet()),
    "large parquet": (FileFormat.PARQUET, "f", parquet()),
    "arrow": (FileFormat.ARROW, "f", arrow()),
    "avro": (FileFormat.AVRO, "f", avro()),
}


class Flaky(io.BytesIO):
    """Refuses what is behind ``working`` bytes as an object store does: without a number."""

    working = 1 << 62

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() + (size or 0) > self.working:
            raise OSError("When reading information for key: AWS Error NETWORK_CONNECTION")
        return super().read(size)


def read(case: str, data: bytes, monkeypatch: pytest.MonkeyPatch, working: int = 1 << 62) -> int:
    kind, path, _ = FILES[case]
    if case.startswith("large"):
        monkeypatch.setattr(readers, "_IN_MEMORY", 0)
    file = Flaky(data)
    file.working = working
    reader = FileReader(TABLE.schema, LandingTableOptions(format=kind), is_local=False)
    bad: list[Any] = []
    native = pa.PythonFile(file, mode="r")
    batches = reader.read(native, path, len(data), TABLE.schema, None, lambda *line: bad.append(line))
    return sum(batch.num_rows for batch in batches)


@pytest.mark.parametrize("case", FILES)
def test_a_file_of_an_object_store_is_read(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(case, FILES[case][2], monkeypatch) == 3_000


@pytest.mark.parametrize("case", [case for case in FILES if case != "json"])
def test_a_file_whose_bytes_are_damaged_is_a_bad_file(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one to be asked for again for ever."""
    data = bytearray(FILES[case][2])
    frame = data.find(b"\x28\xb5\x2f\xfd")  # of zstd, which has no checksum here
    start = frame + 8 if frame >= 0 else len(data) // 3
    data[start : start + 22] = b"\xff" * 22
    with pytest.raises(UnreadableFile):
        read(case, bytes(data), monkeypatch)


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("share", [0, 0.5])
def test_what_the_storage_refuses_is_no_bad_file(case: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    data = FILES[case][2]
    with pytest.raises(OSError, match="NETWORK_CONNECTION"):
        read(case, data, monkeypatch, working=int(share * len(data)))
