"""What the suite of sources needs of Kafka: the mock broker that the client library brings along, once for a run.

So `laketier conformance --source kafka` needs no broker. It proves this source, and nothing of your brokers."""

from __future__ import annotations

import atexit
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from confluent_kafka import Consumer, Producer, TopicPartition

from laketier_kafka.mock_broker import KafkaBroker
from laketier_source_conformance.harness import Row, SourceHarness

_NUMBERS = itertools.count()


@cache
def _broker() -> KafkaBroker:
    broker = KafkaBroker()
    atexit.register(broker.kill)
    return broker


class KafkaHarness(SourceHarness):
    """Topics of JSON, with one partition. Their names have a prefix, as the broker is that of all tests."""

    engine_modules = ("confluent_kafka",)
    cannot: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("compact", "append_open", "add_bucket", "leave_gap", "put_back", "append_late"),
            "the mock broker can't",
        ),
        "close_bucket": "a partition of a topic is never closed",
        **dict.fromkeys(("replace_input", "update_rows"), "a record of a topic is never written again"),
        "append_begun": "a record is there as a whole",
        "make_many": "the mock broker takes its time over each topic",
        "endpoint": "clients learn the brokers' addresses from the brokers",
        "append_many": "the mock broker keeps 5 MB of a topic, and lets what is older expire",
        "append_several": "a message is one row",
        **dict.fromkeys(("rename_column", "add_column"), "a topic has no columns: the user names them"),
        "files": "a broker's files are its own",
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._prefix = f"s{next(_NUMBERS)}-"

    @property
    def source_options(self) -> Mapping[str, Any]:
        return {"bootstrap-servers": _broker().bootstrap, "timeout-seconds": 2}

    @property
    def table_options(self) -> Mapping[str, Any]:
        columns = {"columns.id": "int64", "columns.text": "string", "columns.score": "float64"}
        return {"value-format": "json", "split-offsets": 4, **columns}

    def secret_options(self) -> Mapping[str, Any]:
        client = {"client.sasl.password": "{secret}", "client.sasl.username": "u", "client.sasl.mechanism": "PLAIN"}
        return {**self.source_options, **client, "client.security.protocol": "SASL_PLAINTEXT"}

    def listed(self, name: str) -> str:
        return self._prefix + name if name else ""

    def make_table(self, name: str) -> None:
        if not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
            raise ValueError("a topic's name has ASCII letters, digits, dots, dashes and underscores")
        _broker().create_topic(self.listed(name), 1)

    def append(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        rows = [{"id": number, "text": f"row {number}", "score": number / 4} for number in numbers]
        self._produce(name, [json.dumps(row).encode() for row in rows])
        return rows

    def append_bad(self, name: str) -> bytes | None:
        self._produce(name, [b'{"id": "no number"}'])
        return b'{"id": "no number"}'

    def append_bytes(self, name: str, values: Sequence[bytes]) -> Sequence[bytes]:
        self._produce(name, values)
        return values

    def append_equal(self, name: str) -> Sequence[Row]:
        rows = [{"id": 1_000_000, "text": "twice", "score": 0.5}] * 2
        self._produce(name, [json.dumps(row).encode() for row in rows])
        return rows

    def append_bad_with_key(self, name: str) -> tuple[bytes, bytes | None]:
        self._produce(name, [b"{}}"], key=b"its key")
        return b"its key", b"{}}"

    def append_texts(self, name: str, texts: Sequence[str]) -> Sequence[Row]:
        rows = [{"id": number, "text": text, "score": 0.5} for number, text in enumerate(texts, 2_000_000)]
        self._produce(name, [json.dumps(row, ensure_ascii=False).encode() for row in rows])
        return rows

    def append_limits(self, name: str) -> Sequence[Row]:
        rows: list[Row] = [
            {"id": 2**53 + 1, "text": " ", "score": 0.1 + 0.2},
            {"id": 2**63 - 1, "text": "", "score": 1.7976931348623157e308},
            {"id": -(2**63), "text": "ü\u2028\u0000\n" * 5000, "score": 5e-324},
            {"id": None, "text": None, "score": None},
        ]
        self._produce(name, [json.dumps(row).encode() for row in rows])
        return rows

    def expire(self, name: str) -> None:
        _broker().delete_records(self.listed(name), 0, 3)

    def expire_all(self, name: str) -> None:
        topic = self.listed(name)
        with closing(Consumer({"bootstrap.servers": _broker().bootstrap, "group.id": "expire"})) as consumer:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)
        _broker().delete_records(topic, 0, end)

    def make_again(self, name: str) -> None:
        self.drop_table(name)
        self.make_table(name)

    def drop_table(self, name: str) -> None:
        _broker().delete_topic(self.listed(name))

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        _broker().down()
        try:
            yield
        finally:
            _broker().up()

    def _produce(self, name: str, values: Any, key: bytes | None = None) -> None:
        large = {"message.max.bytes": 4_000_000}
        producer = Producer({"bootstrap.servers": _broker().bootstrap, "linger.ms": 0, **large})
        for value in values:
            while True:
                try:
                    producer.produce(self.listed(name), value, key, partition=0)
                    break
                except BufferError:
                    producer.poll(1)
            producer.poll(0)
        if producer.flush(60):
            raise RuntimeError("records were not taken")
