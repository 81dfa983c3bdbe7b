"""The published vectors of the four bucket functions. Where they come from stands in vectors.json itself."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from laketier.bucketing import assigner_for
from laketier.bucketing.fluss import compacted_key
from laketier.bucketing.iceberg import iceberg_hash
from laketier.bucketing.keys import bucket_keys
from laketier.bucketing.murmur3 import flink_bit_mix, murmur3_flink, murmur3_standard
from laketier.bucketing.rows import ByteRows
from laketier.spi import BucketSpec, TableDescriptor

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())


def vector_bytes(vector: dict[str, str]) -> bytes:
    return bytes.fromhex(vector["hex"]) if "hex" in vector else vector["utf8"].encode()


def assign(function: str, count: int, columns: dict[str, pa.Array]) -> list[int]:
    batch = pa.RecordBatch.from_pydict(columns)
    descriptor = TableDescriptor(batch.schema, buckets=BucketSpec(count, tuple(columns), function))
    return assigner_for(descriptor).assign(batch).to_pylist()


@pytest.mark.parametrize("vector", VECTORS["bucket_of_bytes"], ids=str)
def test_bucket_of_encoded_key(vector: dict[str, Any]) -> None:
    rows = ByteRows.of(pa.array([vector_bytes(vector)]))
    count = vector["n"]
    assert (flink_bit_mix(murmur3_flink(rows)) % count).tolist() == [vector["fluss"]]
    assert (np.abs(murmur3_flink(rows).view(np.int32).astype(np.int64)) % count).tolist() == [vector["paimon"]]
    assert ((murmur3_standard(rows) & np.uint32(0x7FFFFFFF)) % count).tolist() == [vector["iceberg"]]


@pytest.mark.parametrize("vector", VECTORS["flink_murmur32_seed42"], ids=str)
def test_flink_murmur(vector: dict[str, str]) -> None:
    assert murmur3_flink(ByteRows.of(pa.array([vector["utf8"]]))).tolist() == [int(vector["hash"], 16)]


@pytest.mark.parametrize("vector", VECTORS["mathutils_murmurHash"], ids=str)
def test_flink_bit_mix(vector: dict[str, Any]) -> None:
    code = np.array([vector["in"]], dtype=np.int32).view(np.uint32)
    assert flink_bit_mix(code).tolist() == [int(vector["out"], 16)]


TYPES = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string()}


def typed_columns(key: list[str]) -> dict[str, pa.Array]:
    columns = {}
    for i, field in enumerate(key):
        kind, _, text = field.partition(" ")
        columns[f"k{i}"] = pa.array([text if kind == "string" else int(text)], TYPES[kind])
    return columns


@pytest.mark.parametrize("vector", VECTORS["fluss_compacted_key"], ids=str)
def test_compacted_key(vector: dict[str, Any]) -> None:
    columns = typed_columns(vector["row"])
    schema = pa.schema([(name, column.type) for name, column in columns.items()])
    descriptor = TableDescriptor(schema, buckets=BucketSpec(1, tuple(columns)))
    from laketier.bucketing.fluss import _ALLOWED

    keys = bucket_keys(descriptor, "fluss", _ALLOWED)
    assert compacted_key(keys, list(columns.values())).to_arrow().to_pylist() == [bytes.fromhex(vector["hex"])]


@pytest.mark.parametrize("function", ["fluss", "paimon"])
@pytest.mark.parametrize("count_index", [0, 1, 2])
def test_computed_keys(function: str, count_index: int) -> None:
    for vector in VECTORS["computed"][function]:
        bucket = assign(function, (3, 10, 16)[count_index], typed_columns(vector["key"]))
        assert bucket == [vector["n3_10_16"][count_index]], vector


@pytest.mark.parametrize("vector", VECTORS["computed"]["hudi_n10"], ids=str)
def test_hudi(vector: dict[str, Any]) -> None:
    columns = {f"k{i}": pa.array([text], pa.string()) for i, text in enumerate(vector["key"])}
    assert assign("hudi", 10, columns) == [vector["bucket"]]


def test_hudi_hashes_a_date_as_its_days() -> None:
    columns = {"day": pa.array([date(2023, 10, 25)])}
    assert assign("hudi", 10, columns) == assign("hudi", 10, {"text": pa.array(["19655"])}) == [7]


ICEBERG = {
    "int/long": [
        lambda v, kind=kind: pa.array([int(v)], kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    ],
    "decimal": [lambda v, p=p: pa.array([Decimal(v)], pa.decimal128(p, 2)) for p in (9, 38)],
    "date": [lambda v, kind=kind: pa.array([date.fromisoformat(v)], kind) for kind in (pa.date32(), pa.date64())],
    "time": [
        lambda v, kind=kind: pa.array([time.fromisoformat(v)], kind) for kind in (pa.time32("ms"), pa.time64("us"))
    ],
    "timestamp": [
        lambda v: pa.array([datetime.fromisoformat(v)], pa.timestamp("us")),
        lambda v: pa.array([datetime.fromisoformat(v)], pa.timestamp("us")).cast(pa.timestamp("ns", "UTC")),
    ],
    "string": [lambda v, kind=kind: pa.array([v], kind) for kind in (pa.string(), pa.large_string(), pa.string_view())],
    "uuid": [
        lambda v: pa.array([UUID(v).bytes], pa.binary(16)),
        lambda v: pa.array([UUID(v).bytes], pa.uuid()),
    ],
    "binary": [
        lambda v, kind=kind: pa.array([bytes.fromhex(v)], kind)
        for kind in (pa.binary(), pa.large_binary(), pa.binary(4))
    ],
}


@pytest.mark.parametrize("vector", VECTORS["iceberg_hash"], ids=str)
def test_iceberg_hash(vector: dict[str, Any]) -> None:
    for make in ICEBERG[vector["type"]]:
        batch = pa.RecordBatch.from_pydict({"k": make(vector["value"])})
        assigner = assigner_for(TableDescriptor(batch.schema, buckets=BucketSpec(2**31 - 1, ("k",), "iceberg")))
        (key,) = assigner.keys  # type: ignore[attr-defined]
        assert iceberg_hash(key, key.column(batch)).view(np.int32).tolist() == [vector["hash"]]
