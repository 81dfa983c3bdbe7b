"""Topics of a real Apache Kafka that is reached over TLS, with a password."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_logs import json_options, produce, read, source_at
from laketier.spi import StorageError, TableLog
from laketier_verification.kafka_server import PASSWORD, KafkaServer

LIBS = os.environ.get("KAFKA_LIBS")
pytestmark = pytest.mark.skipif(LIBS is None, reason="KAFKA_LIBS names no folder with Kafka's jars")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    assert LIBS is not None
    started = KafkaServer(LIBS, tmp_path_factory.mktemp("kafka"), secured=True)
    started.create("secured")
    produce(started.bootstrap, "secured", [b'{"id": %d}' % number for number in range(100)], **started.client)
    yield started
    started.kill()


def opened(server: KafkaServer, **changed: str | None) -> TableLog:
    settings = {**server.client, **changed}
    options: dict[str, Any] = {f"client.{name}": value for name, value in settings.items() if value is not None}
    return source_at(server.bootstrap, **{"timeout-seconds": 5}, **options).open("secured", json_options(id="int64"))


def test_rows_come_over_tls_with_a_password(server: KafkaServer) -> None:
    assert read(opened(server))["id"].to_pylist() == list(range(100))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sasl.password": "not-the-one"}, "uthentication"),
        ({"ssl.ca.location": None}, "certificate"),
        ({"security.protocol": "PLAINTEXT"}, "did not answer|can't be reached|Disconnected|disconnected"),
    ],
    ids=["wrong password", "unknown certificate", "no tls"],
)
def test_what_is_wrong_is_told_without_the_password(
    server: KafkaServer, changed: dict[str, str | None], told: str
) -> None:
    with pytest.raises(StorageError, match=told) as caught:
        read(opened(server, **changed))
    print(caught.value)
    for secret in (PASSWORD, "not-the-one"):
        assert secret not in str(caught.value)
