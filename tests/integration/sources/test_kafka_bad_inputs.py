"""What a user can get wrong of a cluster or a topic, and what is said of it. `pytest -rP` shows the messages."""

from __future__ import annotations

import logging
import pickle
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kafka_logs import json_options, produce, read, source_at
from laketier.registry import load_source, open_log_source
from laketier.spi import ConfigError, LaketierError, PluginBroken, StorageError, TableNotFound
from laketier_kafka.mock_broker import KafkaBroker

NOBODY = "no-such-host.invalid:9092"
QUICK = {"timeout-seconds": 2}


def said(error: pytest.ExceptionInfo[Any]) -> str:
    print(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bootstrap-servers": " "}, r"events: bootstrap-servers is missing\. Set it to some of the brokers"),
        ({"timeout-seconds": 0}, r"timeout-seconds = 0\.0 is not more than 0"),
        ({"client.sasl.pasword": "hunter2"}, r'refuses its settings, because No such .* "sasl\.pasword"'),
        ({"client.security.protocol": "TLS"}, r'Invalid value "TLS" for configuration property "security\.protocol"'),
        ({"client.ssl.key.pem": "hunter2", "client.security.protocol": "SSL"}, r"ssl\.key\.pem failed: not in PEM"),
        ({"client.sasl.password": "hunter2", "client.acks": "hunter2"}, r"for configuration property"),
        ({"client.auto.offset.reset": "latest"}, r"client\.auto\.offset\.reset is not for users to set"),
        (
            {"client.oauth_cb": "module:function"},
            r"client\.oauth_cb is not for users to set.*sasl\.oauthbearer\.method",
        ),
        ({"bootstrap.servers": "x"}, r"unknown key 'options\.bootstrap\.servers'.*bootstrap-servers"),
    ],
)
def test_settings_that_are_none_are_told_when_the_source_is_made(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        source_at("127.0.0.1:9", **options)
    assert "hunter2" not in said(error)


def test_a_host_that_is_none() -> None:
    source = source_at(NOBODY, **QUICK)
    with pytest.raises(StorageError, match=r"listing its topics, because .*resolve.*Check bootstrap-servers") as error:
        source.source.list_tables()
    assert NOBODY in said(error)


def test_a_port_with_nobody_behind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    source = source_at(f"127.0.0.1:{port}", **QUICK)
    with pytest.raises(StorageError, match=r"t: Kafka did not answer while looking for a topic.*refused"):
        source.open("t", {"value-format": "raw"})


@contextmanager
def altering(bootstrap: str, old: bytes, new: bytes) -> Iterator[str]:
    """The address of a way to the broker on which ``old`` becomes ``new``, and the broker's own port the way's."""
    host, port = bootstrap.split(":")

    def pass_on(source: socket.socket, target: socket.socket, changes: Mapping[bytes, bytes]) -> None:
        with source, target, suppress(OSError):
            while data := source.recv(65_536):
                for wanted, instead in changes.items():
                    data = data.replace(wanted, instead)
                target.sendall(data)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = way.accept()
                server = socket.create_connection((host, int(port)))
                Thread(target=pass_on, args=(client, server, {}), daemon=True).start()
                Thread(target=pass_on, args=(server, client, changes), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as way:
        changes = {struct.pack(">i", int(port)): struct.pack(">i", way.getsockname()[1]), old: new}
        Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{way.getsockname()[1]}"


def test_a_batch_that_is_damaged_on_its_way_is_no_other_record(broker: KafkaBroker) -> None:
    """librdkafka looks at checksums only where it is told to."""
    broker.create_topic("damaged")
    produce(broker.bootstrap, "damaged", [b'{"price": 100}'])
    with altering(broker.bootstrap, b'"price": 100', b'"price": 900') as address:
        log = source_at(address).open("damaged", json_options(price="int64"))
        with pytest.raises(StorageError, match=r"what Kafka sent is damaged.*failed CRC32C check.*Run it again"):
            read(log)
        as_it_is = source_at(address, **{"client.check.crcs": False}).open("damaged", json_options(price="int64"))
        assert read(as_it_is)["price"].to_pylist() == [900], "the way out of the error"


def test_a_broker_that_wants_other_words(broker: KafkaBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "laketier.kafka")
    sasl = {"client.security.protocol": "SASL_PLAINTEXT", "client.sasl.mechanisms": "PLAIN"}
    user = {"client.sasl.username": "reader", "client.sasl.password": "hunter2"}
    source = source_at(broker.bootstrap, **QUICK, **sasl, **user)
    with pytest.raises(StorageError, match=r"SASL.*Check client\.security\.protocol, client\.sasl") as error:
        source.source.list_tables()
    assert "hunter2" not in said(error) + caplog.text + repr(source) + repr(vars(source.source))
    assert caplog.text


def test_a_topic_that_is_none_is_not_made(broker: KafkaBroker) -> None:
    source = source_at(broker.bootstrap)
    with pytest.raises(TableNotFound, match=r"there is no topic 'nowhere'\. Check the table's name"):
        source.open("nowhere", {"value-format": "raw"})
    assert "nowhere" not in source.source.list_tables()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, r"value-format is missing\. Set it to one of json, avro, protobuf, arrow-ipc, raw"),
        ({"value-format": "yaml"}, r"read\.value-format = 'yaml' is not one of json"),
        ({"value-format": "json"}, r"does not say which columns there are\. Set columns\.<name>"),
        ({"value-format": "json", "colums.id": "int64"}, r"unknown key 'read\.colums\.id'"),
        ({"value-format": "raw", "columns.id": "int64"}, r"columns has no meaning for value-format raw"),
        ({"value-format": "json", "columns.id": "integer"}, r"columns\.id = 'integer' is not an Arrow type"),
        ({"value-format": "json", "columns.id": "binary"}, r"columns\.id: JSON can't be read as binary"),
        ({"value-format": "raw", "split-offsets": 0}, r"split-offsets = 0 is too small"),
        ({"value-format": "raw", "include-key": "1", "key-column": "value"}, r"two columns are named 'value'"),
        ({"value-format": "avro"}, r"the schema of values is not known\. Set schema-file, or registry\.url"),
        ({"value-format": "avro", "schema-file": "/no/such"}, r"schema-file '/no/such' can't be read, because no such"),
        ({"value-format": "avro", "framing": "registry"}, r"framing = registry needs a registry"),
        ({"value-format": "arrow-ipc"}, r"does not say which columns.*or schema-file"),
        ({"value-format": "arrow-ipc", "schema-file": __file__}, r"schema-file holds no Arrow schema"),
        ({"value-format": "raw", "isolation-level": "serializable"}, r"not one of read_committed, read_uncommitted"),
    ],
)
def test_table_options_that_do_not_fit(broker: KafkaBroker, topic: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        source_at(broker.bootstrap).open(topic, options)
    said(error)


@pytest.mark.parametrize(
    ("registry", "says"),
    [
        ({"registry.url": "ftp://x"}, r"refuses its settings, because Invalid url"),
        ({"registry.url": "http://x", "registry.basic.auth.user.info": "hunter2"}, r"must be in the form"),
        ({"registry.url": "http://x", "registry.passwort": "hunter2"}, r"Unrecognized properties: passwort"),
        ({"registry.url": "http://x", "registry.max.retries": "hunter2"}, r"refuses its settings"),
    ],
)
def test_settings_of_the_registry(broker: KafkaBroker, topic: str, registry: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        source_at(broker.bootstrap, **registry).open(topic, {"value-format": "avro"})
    assert "hunter2" not in said(error)


def test_a_password_within_an_address_is_not_told(broker: KafkaBroker, topic: str) -> None:
    url = f"http://reader:hunter2@{NOBODY}"
    source = source_at(broker.bootstrap, **QUICK, **{"registry.url": url, "registry.max.retries": 0})
    with pytest.raises(StorageError, match="the schema registry did not answer") as error:
        source.open(topic, {"value-format": "avro"})
    assert "hunter2" not in said(error)


def test_errors_survive_the_way_from_an_executor(broker: KafkaBroker) -> None:
    with pytest.raises(LaketierError) as error:
        source_at(broker.bootstrap).open("nowhere", json_options(id="int64"))
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)  # noqa: S301


def test_without_the_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(PluginBroken, match=r"needs the client confluent-kafka.*pip install 'confluent-kafka\["):
        open_log_source("kafka", {"bootstrap-servers": "x"}, name="events", origin="service.yaml")


def test_naming_the_plugin_imports_no_client() -> None:
    import subprocess

    module = type(load_source("kafka")).__module__
    code = f"import sys, {module}; sys.exit(any(name.startswith('confluent_kafka') for name in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, timeout=60, cwd=Path(__file__).parent).returncode == 0
    )
