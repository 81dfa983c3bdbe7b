"""Avro and Protobuf records, with a registry and without."""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from kafka_logs import produce, read, read_with_bad, source_at
from laketier.spi import ConfigError, StorageError
from laketier_kafka.mock_broker import KafkaBroker
from laketier_kafka.registry import _client_of
from landing import log_of, rows
from schema_registry import SchemaRegistry, framed

AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "token", "type": ["null", {"type": "string", "logicalType": "uuid"}]},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}},
        {"name": "other", "type": ["null", "Color"]},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "sku", "type": {"type": "fixed", "name": "Sku", "size": 2}},
            {"name": "ref", "type": {"type": "string", "logicalType": "uuid"}},
        ]}}},
    ],
}  # fmt: skip
TOKEN = uuid.UUID(int=7)
ORDER: dict[str, Any] = {
    "id": 2**62,
    "name": None,
    "price": decimal.Decimal("12.50"),
    "at": datetime.datetime(2024, 5, 1, 10, 0, 0, 123456, datetime.UTC),
    "day": datetime.date(2024, 5, 1),
    "token": TOKEN,
    "color": "BLUE",
    "other": "RED",
    "tags": {"a": 1},
    "lines": [{"sku": b"ab", "ref": TOKEN}],
}
ORDER_ROW = {**ORDER, "token": str(TOKEN), "tags": [("a", 1)], "lines": [{"sku": b"ab", "ref": str(TOKEN)}]}


def avro_bytes(row: dict[str, Any], schema: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(schema))), row)
    return stream.getvalue()


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as started:
        yield started


def test_bare_avro(broker: KafkaBroker, topic: str, tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO))
    good = avro_bytes(ORDER, AVRO)
    produce(broker.bootstrap, topic, [good, good + b"more", good[:5], b"", good])
    log = source_at(broker.bootstrap).open(
        topic, {"value-format": "avro", "schema-file": str(tmp_path / "order.avsc"), "include-offset": True}
    )
    rows, bad = read_with_bad(log)
    assert rows == [{**ORDER_ROW, "_offset": 0}, {**ORDER_ROW, "_offset": 4}]
    assert log.table.schema.field("at").type == pa.timestamp("us", "UTC")
    assert log.table.schema.field("lines").type == pa.list_(pa.struct([("sku", pa.binary(2)), ("ref", pa.string())]))
    assert [record.offset for record in bad] == [1, 2, 3]
    assert bad[0].error == "4 bytes are left after the Avro record"


def test_avro_means_the_same_in_a_topic_and_in_a_landing_zone(broker: KafkaBroker, topic: str, tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO))
    produce(broker.bootstrap, topic, [avro_bytes(ORDER, AVRO)])
    options = {"value-format": "avro", "schema-file": str(tmp_path / "order.avsc")}
    from_topic = read(source_at(broker.bootstrap).open(topic, options))
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(json.loads(json.dumps(AVRO))), [ORDER])
    landed = log_of(_zone(tmp_path, sink.getvalue()), {"format": "avro"})
    assert landed.table.schema.names == from_topic.schema.names
    assert rows(landed) == from_topic.to_pylist() == [ORDER_ROW]


def _zone(folder: Path, data: bytes) -> Path:
    (folder / "t").mkdir()
    (folder / "t" / "f.avro").write_bytes(data)
    return folder


def test_a_producers_schema_that_holds_itself_ends_no_worker(
    broker: KafkaBroker, topic: str, registry: SchemaRegistry
) -> None:
    """fastavro follows it by its own stack: 5,000 levels end the process."""
    tree = {
        "type": "record",
        "name": "Event",
        "fields": [{"name": "id", "type": "long"}, {"name": "next", "type": ["null", "Event"], "default": None}],
    }
    plain = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}]}
    ids = [registry.register(f"{topic}-value", json.dumps(schema)) for schema in (tree, plain)]
    deep = b"\x02\x02" * 100_000 + b"\x02\x00"
    produce(broker.bootstrap, topic, [framed(ids[0], deep), framed(ids[1], avro_bytes({"id": 7}, plain))])
    log = source_at(broker.bootstrap, **{"registry.url": registry.url}).open(topic, {"value-format": "avro"})
    found, bad = read_with_bad(log)
    assert found == [{"id": 7}]
    assert [(record.offset, record.schema_version) for record in bad] == [(0, str(ids[0]))]
    assert "contains itself" in bad[0].error


def test_framed_avro_is_read_by_its_own_schema_and_fitted_to_the_newest(
    broker: KafkaBroker, topic: str, registry: SchemaRegistry
) -> None:
    old = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "int"}]}
    new = {**old, "fields": [{"name": "id", "type": "long"}, {"name": "x", "type": "string", "default": "none"}]}
    strange = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "string"}]}
    ids = [registry.register(f"{topic}-value", json.dumps(schema)) for schema in (strange, old, new)]
    values = [
        framed(ids[1], avro_bytes({"id": 1}, old)),
        framed(ids[2], avro_bytes({"id": 2**40, "x": "y"}, new)),
        framed(ids[0], avro_bytes({"id": "one"}, strange)),
        framed(99, avro_bytes({"id": 1}, old)),
        b"\x05" + avro_bytes({"id": 1}, old) * 10,
        framed(ids[1], avro_bytes({"id": 3}, old)),
    ]
    produce(broker.bootstrap, topic, values)
    log = source_at(broker.bootstrap, **{"registry.url": registry.url}).open(topic, {"value-format": "avro"})
    assert log.table.schema == pa.schema([("id", pa.int64()), ("x", pa.string())])
    newer = {**new, "fields": [*new["fields"], {"name": "y", "type": ["null", "int"], "default": None}]}
    registry.register(f"{topic}-value", json.dumps(newer))
    reopened = source_at(broker.bootstrap, **{"registry.url": registry.url}).open(topic, {"value-format": "avro"})
    assert reopened.table.schema.names == ["id", "x", "y"]
    rows, bad = read_with_bad(log)
    assert rows == [{"id": 1, "x": "none"}, {"id": 2**40, "x": "y"}, {"id": 3, "x": "none"}]
    assert [(record.offset, record.schema_version) for record in bad] == [(2, "1"), (3, "99"), (4, None)]
    assert bad[1].error == "the registry has no schema 99"


def test_avro_that_takes_types_from_other_subjects(
    broker: KafkaBroker, topic: str, registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By reference, as Confluent's registry has it; one that refers to what is refused is asked for once."""
    city = {"type": "record", "name": "City", "namespace": "geo", "fields": [{"name": "name", "type": "string"}]}
    address = {
        "type": "record",
        "name": "Address",
        "fields": [
            {"name": "city", "type": "geo.City"},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["HOME", "WORK"]}},
        ],
    }
    order = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "to", "type": "Address"},
            {"name": "also", "type": ["null", {"type": "array", "items": "Address"}], "default": None},
            {"name": "kind", "type": "Kind"},
        ],
    }
    registry.register("city", json.dumps(city))
    registry.register(
        "address", json.dumps(address), references=[{"name": "geo.City", "subject": "city", "version": 1}]
    )
    refers = [{"name": "Address", "subject": "address", "version": 1}]
    tree = {**address, "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]}
    registry.register("tree", json.dumps(tree))
    bad_id = registry.register(
        f"{topic}-value",
        json.dumps({**order, "fields": [{"name": "id", "type": "long"}, {"name": "t", "type": "Tree"}]}),
        references=[{"name": "Tree", "subject": "tree", "version": 1}],
    )
    good_id = registry.register(f"{topic}-value", json.dumps(order), references=refers)
    fastavro.parse_schema(json.loads(json.dumps(city)), names := {})
    fastavro.parse_schema(json.loads(json.dumps(address)), names)
    whole = fastavro.parse_schema(json.loads(json.dumps(order)), names)
    home = {"city": {"name": "Bern"}, "kind": "HOME"}
    row = {"id": 1, "to": home, "also": [home, home], "kind": "WORK"}
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, whole, row)
    value = stream.getvalue()
    asked: list[str] = []
    answer = registry.answer
    monkeypatch.setattr(registry, "answer", lambda path, *more: asked.append(path) or answer(path, *more))
    produce(
        broker.bootstrap, topic, [framed(good_id, value), *[framed(bad_id, b"\x02\x00")] * 3, framed(good_id, value)]
    )
    log = source_at(broker.bootstrap, **{"registry.url": registry.url}).open(topic, {"value-format": "avro"})
    address_type = pa.struct([("city", pa.struct([("name", pa.string())])), ("kind", pa.string())])
    assert log.table.schema.field("also").type == pa.list_(address_type)
    found, bad = read_with_bad(log)
    assert found == [row, row]
    assert [(record.offset, "the Avro type Tree contains itself" in record.error) for record in bad] == [
        (at, True) for at in (1, 2, 3)
    ]
    assert sum(path.startswith("/subjects/tree") for path in asked) == 1


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("oops", "the Avro schema is not JSON"),
        ('"string"', "the Avro schema is not a record"),
        ({"name": "u", "type": ["int", "string"]}, "has a union of 2 types, because a column has one type"),
        ({"name": "u", "type": ["null", "R"]}, "the Avro type R contains itself"),
        ({"name": "u", "type": "Nowhere"}, "names a type 'Nowhere' that it does not have"),
    ],
)
def test_avro_schemas_that_give_no_columns(
    broker: KafkaBroker, topic: str, tmp_path: Path, schema: Any, says: str
) -> None:
    record = {"type": "record", "name": "R", "fields": [schema]}
    (tmp_path / "r.avsc").write_text(schema if isinstance(schema, str) else json.dumps(record))
    options = {"value-format": "avro", "schema-file": str(tmp_path / "r.avsc")}
    with pytest.raises(ConfigError, match=says):
        source_at(broker.bootstrap).open(topic, options)


def proto_file() -> descriptor_pb2.FileDescriptorProto:
    """What `protoc` makes of a file with two messages, an enum, a map, a oneof and imports."""
    types = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    color = file.enum_type.add(name="Color")
    color.value.add(name="RED", number=0)
    color.value.add(name="BLUE", number=1)
    order = file.message_type.add(name="Order")
    line = file.message_type.add(name="Line")
    line.field.add(name="sku", number=1, type=types.TYPE_BYTES, label=1)
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=types.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=types.TYPE_INT32, label=1)
    order.field.add(name="id", number=1, type=types.TYPE_UINT64, label=1)
    order.field.add(name="name", number=2, type=types.TYPE_STRING, label=1, proto3_optional=True, oneof_index=0)
    order.oneof_decl.add(name="_name")
    order.field.add(name="color", number=3, type=types.TYPE_ENUM, type_name=".shop.Color", label=1)
    order.field.add(name="lines", number=4, type=types.TYPE_MESSAGE, type_name=".shop.Line", label=3)
    order.field.add(name="tags", number=5, type=types.TYPE_MESSAGE, type_name=".shop.Order.TagsEntry", label=3)
    order.field.add(name="at", number=6, type=types.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=1)
    order.field.add(name="w", number=7, type=types.TYPE_MESSAGE, type_name=".google.protobuf.Int64Value", label=1)
    order.field.add(name="f", number=8, type=types.TYPE_DOUBLE, label=3)
    return file


PROTO_ROWS = [
    {
        "id": 2**63,
        "name": "x",
        "color": "BLUE",
        "lines": [{"sku": b"ab"}],
        "tags": [("a", 1), ("b", 2)],
        "at": datetime.datetime(2024, 5, 1, 10, 0, 0, 500_000, datetime.UTC),
        "w": 5,
        "f": [0.5, 1.5],
    },
    {"id": 0, "name": None, "color": "7", "lines": [], "tags": [], "at": None, "w": None, "f": []},
]


def proto_values() -> list[bytes]:
    pool = DescriptorPool()
    for file in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(file.DESCRIPTOR.serialized_pb)
    pool.Add(proto_file())
    kind = GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    first = kind(id=2**63, name="x", color=1, tags={"b": 2, "a": 1}, f=[0.5, 1.5])
    first.lines.add(sku=b"ab")
    first.at.FromDatetime(datetime.datetime(2024, 5, 1, 10, 0, 0, 500_000))
    first.w.value = 5
    return [first.SerializeToString(), kind(color=7).SerializeToString()]


def micros(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # With pandas a moment in nanoseconds is one of its own; without, one of Python's.
    plain = datetime.datetime.fromisoformat
    return [{**row, "at": None if row["at"] is None else plain(row["at"].isoformat())} for row in rows]


def test_bare_protobuf(broker: KafkaBroker, topic: str, tmp_path: Path) -> None:
    (tmp_path / "shop.desc").write_bytes(descriptor_pb2.FileDescriptorSet(file=[proto_file()]).SerializeToString())
    values = proto_values()
    produce(broker.bootstrap, topic, [values[0], b"\xff\xff", values[1]])
    options = {"value-format": "protobuf", "schema-file": str(tmp_path / "shop.desc"), "message": "shop.Order"}
    log = source_at(broker.bootstrap).open(topic, options)
    assert log.table.schema.field("at").type == pa.timestamp("ns", "UTC")
    rows, bad = read_with_bad(log)
    assert micros(rows) == PROTO_ROWS
    assert [(record.offset, record.error.partition(":")[0]) for record in bad] == [(1, "the value is no shop.Order")]
    with pytest.raises(ConfigError, match=r"no message 'shop\.Ordr'\. There are shop\.Line, shop\.Order"):
        source_at(broker.bootstrap).open(topic, {**options, "message": "shop.Ordr"})
    (tmp_path / "shop.desc").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"descriptors can't be read.*protoc --include_imports"):
        source_at(broker.bootstrap).open(topic, options)


def test_framed_protobuf(broker: KafkaBroker, topic: str, registry: SchemaRegistry) -> None:
    number = registry.register(
        f"{topic}-value", base64.b64encode(proto_file().SerializeToString()).decode(), "PROTOBUF"
    )
    first, second = (framed(number, value, b"\x00") for value in proto_values())
    produce(broker.bootstrap, topic, [first, proto_values()[0], second])
    log = source_at(broker.bootstrap, **{"registry.url": registry.url}).open(topic, {"value-format": "protobuf"})
    rows, bad = read_with_bad(log)
    assert micros(rows) == PROTO_ROWS
    assert [record.offset for record in bad] == [1]


def test_a_registry_that_is_away_stops_the_table_and_blames_no_record(broker: KafkaBroker, topic: str) -> None:
    schema = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "int"}]}
    with SchemaRegistry() as registry:
        number = registry.register(f"{topic}-value", json.dumps(schema))
        produce(broker.bootstrap, topic, [framed(number, avro_bytes({"id": 1}, schema))])
        source = source_at(broker.bootstrap, **{"registry.url": registry.url, "registry.max.retries": 0})
        log = source.open(topic, {"value-format": "avro"})
        with pytest.raises(ConfigError, match="the registry has no subject 'elsewhere'"):
            source.open(topic, {"value-format": "avro", "subject": "elsewhere"})
    _client_of.cache_clear()  # an executor's process has seen no schema yet
    for call in (lambda: read(log), lambda: source.open(topic, {"value-format": "avro"})):
        with pytest.raises(StorageError, match=r"registry did not answer while .* was asked for.*Check registry\.url"):
            call()


def test_a_registry_that_wants_a_password_gets_it_and_nobody_else_does(broker: KafkaBroker, topic: str) -> None:
    with SchemaRegistry(password="hunter2") as registry:
        registry.register(f"{topic}-value", json.dumps({"type": "record", "name": "E", "fields": []}))
        keys = {"registry.url": registry.url, "registry.max.retries": "0"}
        right = source_at(broker.bootstrap, **keys, **{"registry.basic.auth.user.info": "reader:hunter2"})
        assert right.open(topic, {"value-format": "avro"}).table.schema.names == []
        wrong = source_at(broker.bootstrap, **keys, **{"registry.basic.auth.user.info": "reader:hunter3"})
        with pytest.raises(StorageError, match=r"Unauthorized.*Check registry\.basic\.auth\.user\.info") as caught:
            wrong.open(topic, {"value-format": "avro"})
        assert "hunter3" not in str(caught.value)
