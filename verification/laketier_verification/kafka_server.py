"""A real Apache Kafka, from a folder with its jars (org.apache.kafka:kafka_2.13 and what it needs)."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={protocol}://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL
inter.broker.listener.name={protocol}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.backoff.ms=100
log.retention.check.interval.ms=500
auto.create.topics.enable=true
"""
_SECURED = """
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="broker" password="{password}" user_broker="{password}" user_{user}="{password}";
ssl.keystore.type=PKCS12
ssl.keystore.location={folder}/server.p12
ssl.keystore.password={password}
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
ssl.endpoint.identification.algorithm=
"""
USER = "laketier"
PASSWORD = "correct-horse-battery"
_START_SECONDS = 240
"""A busy machine took more than a minute to begin with Java."""


class KafkaServer:
    """One node, for its own controller. It is nobody's child, so that its CPU time is not taken for its starter's.

    ``secured``: over TLS alone, with a certificate of its own, and for `USER` with `PASSWORD` alone. ``client`` holds
    librdkafka's settings for it.
    """

    def __init__(self, libraries: str, folder: Path, *, secured: bool = False) -> None:
        ports = []
        for _ in range(2):
            with socket.create_server(("127.0.0.1", 0)) as reserved:
                ports.append(reserved.getsockname()[1])
        self.bootstrap = f"127.0.0.1:{ports[0]}"
        self._folder = folder
        self._java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{libraries}/*"]
        self._properties = folder / "server.properties"
        protocol = "SASL_SSL" if secured else "PLAINTEXT"
        text = _PROPERTIES.format(broker=ports[0], controller=ports[1], folder=folder, protocol=protocol)
        self.client: dict[str, str] = {}
        if secured:
            _make_certificate(folder)
            text += _SECURED.format(folder=folder, user=USER, password=PASSWORD)
            self.client = {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": USER,
                "sasl.password": PASSWORD,
                "ssl.ca.location": str(folder / "ca.pem"),
            }
        self._properties.write_text(text)
        format_storage = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c"]
        with (folder / "format.log").open("wb") as log:
            subprocess.run(
                [*self._java, *format_storage, str(self._properties)],
                stdout=log, stderr=log, timeout=_START_SECONDS, check=True,
            )  # fmt: skip
        self.start()

    def start(self) -> None:
        """Start it, also after `kill`, with what it stored. Returns when it answers."""
        log = self._folder / "server.log"
        started = subprocess.run(
            ["sh", "-c", '"$@" >> "$LOG" 2>&1 & echo $!', "sh", *self._java, "kafka.Kafka", str(self._properties)],
            env={**os.environ, "LOG": str(log)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        self._pid = int(started.stdout)
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, **self.client})
        self.admin.list_topics(timeout=_START_SECONDS)

    def kill(self) -> None:
        """At once."""
        os.kill(self._pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            while _runs(self._pid):
                os.sched_yield()

    def cut(self, topic: str, end: int) -> None:
        """Take the records from ``end`` on from partition 0 of a topic while the broker is killed, as an unclean
        election of a leader does; with all of the batch that ``end`` is in."""
        for log in (self._folder / "data" / f"{topic}-0").iterdir():
            if log.suffix != ".log":
                if log.name != "partition.metadata":
                    log.unlink()
                continue
            content = log.read_bytes()
            kept = 0
            while kept + 61 <= len(content):
                base, size = struct.unpack_from(">qi", content, kept)
                if not size or base + struct.unpack_from(">i", content, kept + 23)[0] >= end:
                    break
                kept += 12 + size
            os.truncate(log, kept)
        for checkpoint in (self._folder / "data").glob("*-checkpoint"):
            checkpoint.unlink()

    def create(self, name: str, partitions: int = 1, **config: str) -> str:
        """A topic, with settings whose dots are written as underscores."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        return name


def _make_certificate(folder: Path) -> None:
    store = [
        "-keystore",
        str(folder / "server.p12"),
        "-storetype",
        "PKCS12",
        "-storepass",
        PASSWORD,
        "-alias",
        "server",
    ]
    names = ["-dname", "CN=127.0.0.1", "-ext", "SAN=IP:127.0.0.1"]
    made = ["-genkeypair", "-keyalg", "RSA", "-keysize", "2048", "-validity", "2", *names]
    shown = ["-exportcert", "-rfc", "-file", str(folder / "ca.pem")]
    for command in (made, shown):
        subprocess.run(["keytool", *command, *store], check=True, capture_output=True)


def _runs(pid: int) -> bool:
    """A killed one that nobody has waited for yet is over too."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
