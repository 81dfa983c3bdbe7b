"""A broker for trials and tests, in a process of its own: the mock of librdkafka, which speaks Kafka's protocol.

It has partitions, compression, headers, transactions' markers, topic ids, deleted records and outages. It keeps all in
memory, at most 5 MiB or 100,000 batches per partition (older ones go, as by retention), and hands out aborted records
to readers of committed ones too. `python -m laketier_kafka.mock_broker` runs one and prints its address; each line
of its input is a command.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

_PRODUCER = 0
_NO_IDS = "--no-topic-ids"


class KafkaBroker:
    """Starts one and tells it what to do. It ends with its starter, as its input then ends."""

    def __init__(self, *, topic_ids: bool = True) -> None:
        """``topic_ids``: False for a broker of whose topics nobody can ask the ids, as of Kafka before 2.8."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, *([] if topic_ids else [_NO_IDS])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self._process.stdout is not None
        self.bootstrap = self._process.stdout.readline().strip()
        if not self.bootstrap:
            raise RuntimeError("the broker did not start")

    def __enter__(self) -> KafkaBroker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Others come into being by being written to, with 4 partitions."""
        self._tell(f"create {name} {partitions}")

    def delete_topic(self, name: str) -> None:
        """With all that is in it."""
        self._tell(f"delete {name}")

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """As retention would."""
        self._tell(f"expire {topic} {partition} {before}")

    def down(self) -> None:
        """Refuse connections, and cut those there are. What is stored stays."""
        self._tell("down")

    def up(self) -> None:
        """Be there again, under the same address."""
        self._tell("up")

    def lose_controller(self) -> None:
        """As while a cluster elects a new one: topics are read and written, and nobody tells their ids."""
        self._tell("controller -1")

    def elect_controller(self) -> None:
        """Have a controller again."""
        self._tell("controller 1")

    def lose_leader(self, topic: str, partition: int) -> None:
        """As while a partition's new leader is elected."""
        self._tell(f"leader {topic} {partition} -1")

    def elect_leader(self, topic: str, partition: int) -> None:
        """Lead a partition again."""
        self._tell(f"leader {topic} {partition} 1")

    def refuse_offsets(self, code: int, times: int) -> None:
        """Answer the next ``times`` questions for first and last offsets with this error of Kafka's protocol, and those
        after them with offsets."""
        self._tell(f"errors {_LIST_OFFSETS} {code} {times}")

    def kill(self) -> None:
        """At once, with all that is stored."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if answer != "0":
            raise RuntimeError(f"the broker refused {command!r}: {answer or 'it is gone'}")


_METADATA, _METADATA_WITHOUT_IDS = 3, 9
"""The number of Kafka's request that tells ids of topics, and its newest version without them."""

_LIST_OFFSETS = 2
"""The number of Kafka's request for first and last offsets."""


class _Mock:
    """The mock's C interface, in the library that the Python client brings along."""

    def __init__(self, topic_ids: bool) -> None:
        self._library = _librdkafka()
        self._call("rd_kafka_conf_new", ctypes.c_void_p)
        settings = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        text = ctypes.create_string_buffer(512)
        self._call("rd_kafka_new", ctypes.c_void_p)
        client = self._library.rd_kafka_new(_PRODUCER, settings, text, ctypes.c_size_t(len(text)))
        if not client:
            raise RuntimeError(text.value.decode())
        self._call("rd_kafka_mock_cluster_new", ctypes.c_void_p)
        self._cluster = ctypes.c_void_p(self._library.rd_kafka_mock_cluster_new(ctypes.c_void_p(client), 1))
        self._call("rd_kafka_mock_cluster_bootstraps", ctypes.c_char_p)
        self._call("rd_kafka_mock_push_request_errors_array", None)
        self._call("rd_kafka_mock_clear_request_errors", None)
        self.bootstrap = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        self._library.rd_kafka_mock_set_controller_id(self._cluster, 1)
        if not topic_ids:
            newest = ctypes.c_int16(_METADATA_WITHOUT_IDS)
            self._library.rd_kafka_mock_set_apiversion(
                self._cluster, ctypes.c_int16(_METADATA), ctypes.c_int16(0), newest
            )

    def obey(self, command: str) -> int:
        """0, or the library's error code."""
        call = self._library
        match command.split():
            case ["create", name, partitions]:
                return int(call.rd_kafka_mock_topic_create(self._cluster, name.encode(), int(partitions), 1))
            case ["delete", name]:
                return int(call.rd_kafka_mock_topic_delete(self._cluster, name.encode()))
            case ["expire", name, partition, before]:
                return int(
                    call.rd_kafka_mock_partition_delete_records(
                        self._cluster, name.encode(), ctypes.c_int32(int(partition)), ctypes.c_int64(int(before))
                    )
                )
            case ["controller", number]:
                return int(call.rd_kafka_mock_set_controller_id(self._cluster, ctypes.c_int32(int(number))) or 0)
            case ["leader", name, partition, number]:
                return int(
                    call.rd_kafka_mock_partition_set_leader(
                        self._cluster, name.encode(), ctypes.c_int32(int(partition)), ctypes.c_int32(int(number))
                    )
                )
            case ["errors", request, code, times]:
                codes, asked = (ctypes.c_int * int(times))(*[int(code)] * int(times)), ctypes.c_int16(int(request))
                call.rd_kafka_mock_clear_request_errors(self._cluster, asked)
                call.rd_kafka_mock_push_request_errors_array(self._cluster, asked, ctypes.c_size_t(len(codes)), codes)
                return 0
            case ["down"]:
                return int(call.rd_kafka_mock_broker_set_down(self._cluster, 1))
            case ["up"]:
                return int(call.rd_kafka_mock_broker_set_up(self._cluster, 1))
        raise ValueError(command)

    def _call(self, name: str, returns: Any) -> None:
        getattr(self._library, name).restype = returns


def _librdkafka() -> Any:
    import confluent_kafka

    beside = Path(confluent_kafka.__file__).parent
    found = [*beside.parent.glob("confluent_kafka.libs/librdkafka*"), *beside.glob(".dylibs/librdkafka*")]
    return ctypes.CDLL(str(found[0])) if found else ctypes.CDLL("librdkafka.so.1")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until the input ends."""
    mock = _Mock(_NO_IDS not in sys.argv)
    _say(mock.bootstrap)
    for line in sys.stdin:
        _say(str(mock.obey(line)))


if __name__ == "__main__":
    main()
