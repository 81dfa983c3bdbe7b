"""The harness of a landing zone of Avro files, which needs fastavro."""

from __future__ import annotations

import io
from collections.abc import Sequence

from laketier_source_conformance.harness import Row
from laketier_source_conformance.landed_files import ParquetFilesHarness

_FIELDS = {"id": "long", "text": "string", "score": "double", "at": {"type": "long", "logicalType": "timestamp-micros"}}


class AvroFilesHarness(ParquetFilesHarness):
    """A landing zone of Avro's object container files."""

    codec = "avro"

    def encode(self, rows: Sequence[Row]) -> bytes:
        import fastavro

        fields = [{"name": name, "type": kind} for name, kind in _FIELDS.items()]
        sink = io.BytesIO()
        schema = {"type": "record", "name": "row", "fields": fields}
        # The marker between blocks is drawn: the same rows would be another file each time.
        fastavro.writer(sink, schema, list(rows), sync_interval=100_000, sync_marker=b"laketier-avro-16")
        return sink.getvalue()
