"""A tiering service over topics of a real Kafka, to be harmed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from laketier_verification.faults.service_lab import Lab
from laketier_verification.kafka_server import KafkaServer
from laketier_verification.lines import LinesTable

_SOURCE_SECONDS = 3
_FLUSH_SECONDS = 120


class TopicsLab(Lab):
    """Its logs are topics; what they should hold is read back from them by a plain consumer."""

    def __init__(self, format: str, folder: Path, broker: KafkaServer, **settings: Any) -> None:
        self.broker = broker
        # Idempotent: what a restart of the broker makes it send again is there once.
        self._sending = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "log_level": 0})
        super().__init__(format, folder, **settings)

    def _logs(self, folder: Path, tables: int, buckets: int) -> Sequence[LinesTable]:
        names = [self.broker.create(f"t{number}", buckets) for number in range(tables)]
        return [LinesTable(folder / "unused", name) for name in names]

    def _source(self) -> dict[str, object]:
        options = {"bootstrap-servers": self.broker.bootstrap, "timeout-seconds": _SOURCE_SECONDS}
        return {"type": "kafka", "options": options}

    def _reading(self) -> dict[str, object]:
        return {"read": {"value-format": "json", "columns": {"id": "int64", "text": "string"}}}

    def feed(self, rows: int = 5) -> None:
        for table in self.lines:
            for bucket in range(self.buckets):
                for _ in range(rows):
                    self._ids += 1
                    row = {"id": self._ids, "text": f"row {self._ids}"}
                    self._sending.produce(table.name, json.dumps(row).encode(), partition=bucket)
        self._sending.poll(0)

    def quiet(self) -> None:
        super().quiet()
        if left := self._sending.flush(_FLUSH_SECONDS):
            raise TimeoutError(f"the broker did not take {left} records")

    def log_of(self, table: LinesTable) -> tuple[Counter[int], Counter[tuple[str, int]]]:
        settings = {"bootstrap.servers": self.broker.bootstrap, "group.id": "judge", "enable.partition.eof": True}
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(table.name, bucket, 0) for bucket in range(self.buckets)])
        ids: Counter[int] = Counter()
        ended = 0
        while ended < self.buckets:
            for message in consumer.consume(1000, 1.0):
                error = message.error()
                if error is None:
                    ids[json.loads(message.value() or b"")["id"]] += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended += 1
        consumer.close()
        return ids, Counter()
