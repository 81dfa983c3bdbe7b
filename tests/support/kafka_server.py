"""A real Apache Kafka, from a folder with its jars (org.apache.kafka:kafka_2.13 and what it needs)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
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


class KafkaServer:
    """One node, for its own controller. It is nobody's child, so that its CPU time is not taken for its starter's."""

    def __init__(self, libraries: str, folder: Path) -> None:
        ports = []
        for _ in range(2):
            with socket.create_server(("127.0.0.1", 0)) as reserved:
                ports.append(reserved.getsockname()[1])
        self.bootstrap = f"127.0.0.1:{ports[0]}"
        self._folder = folder
        self._java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{libraries}/*"]
        self._properties = folder / "server.properties"
        self._properties.write_text(_PROPERTIES.format(broker=ports[0], controller=ports[1], folder=folder))
        format_storage = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c"]
        with (folder / "format.log").open("wb") as log:
            subprocess.run(
                [*self._java, *format_storage, str(self._properties)],
                stdout=log, stderr=log, timeout=60, check=True,
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
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self.admin.list_topics(timeout=60)

    def kill(self) -> None:
        """At once."""
        os.kill(self._pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            while _runs(self._pid):
                os.sched_yield()

    def create(self, name: str, partitions: int = 1, **config: str) -> str:
        """A topic, with settings whose dots are written as underscores."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        return name


def _runs(pid: int) -> bool:
    """A killed one that nobody has waited for yet is over too."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
