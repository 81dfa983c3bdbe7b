"""Harnesses of landing zones of CSV, of Parquet and of Arrow's own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from laketier_source_conformance.connectors import SCHEMA, FilesHarness
from laketier_source_conformance.harness import Row


class CsvFilesHarness(FilesHarness):
    """A landing zone of CSV."""

    codec = "csv"
    cannot: ClassVar[Mapping[str, str]] = {**FilesHarness.cannot, "append_bytes": "a line of any bytes may be a row"}
    odd_text = 'ü"\u2028,'

    def encode(self, rows: Sequence[Row]) -> bytes:
        lines = [
            ",".join((str(row["id"]), _quoted(row["text"]), repr(row["score"]), row["at"].isoformat())) for row in rows
        ]
        return "\n".join(["id,text,score,at", *lines, ""]).encode()

    def append_texts(self, name: str, texts: Sequence[str]) -> Sequence[Row]:
        """Those of one line: a record is one."""
        return super().append_texts(name, [text for text in texts if not {"\n", "\r"} & set(text)])

    def append_bad(self, name: str) -> bytes | None:
        line = b"no number,x,y,z"
        self.land(name, b"id,text,score,at\n" + line + b"\n")
        return line


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


class ParquetFilesHarness(FilesHarness):
    """A landing zone of Parquet."""

    codec = "parquet"
    cannot: ClassVar[Mapping[str, str]] = {
        **FilesHarness.cannot,
        "append_bytes": "a bad file is told without its bytes",
    }

    def encode(self, rows: Sequence[Row]) -> bytes:
        sink = pa.BufferOutputStream()
        pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), sink, row_group_size=1000)
        return sink.getvalue().to_pybytes()

    def append_bad(self, name: str) -> bytes | None:
        self.land(name, b"PAR1 no such file PAR1")
        return None


class ArrowFilesHarness(ParquetFilesHarness):
    """A landing zone of Arrow's own files."""

    codec = "arrow"

    def encode(self, rows: Sequence[Row]) -> bytes:
        sink = pa.BufferOutputStream()
        with pyarrow.ipc.new_file(sink, SCHEMA) as writer:
            writer.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), max_chunksize=1000)
        return sink.getvalue().to_pybytes()
