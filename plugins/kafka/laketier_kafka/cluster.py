"""Questions to a cluster about its topics. Driver only; one client for all tables of a source."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any, TypeVar

from laketier.spi import StorageError, TableNotFound
from laketier_kafka.connection import Connection, Reasons, naming_client_errors
from laketier_kafka.elections import asking_again
from laketier_kafka.options import IsolationLevel

# Kafka's own list of internal topics; a client's metadata does not mark them.
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
Answer = TypeVar("Answer")

_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_LEAST_SECONDS = 1.0
"""What a broker gets to answer when it is asked again."""


@dataclass(frozen=True)
class Topic:
    """A topic now. ``topic_id``: its UUID (KIP-516); from brokers without them its name, which can't tell a topic from
    another one made under its name."""

    name: str
    topic_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class OffsetAt:
    """An offset and, where one was asked for, the time of its record (ms since the epoch, UTC), else -1."""

    offset: int
    timestamp: int


class Asked(Enum):
    """Which offset: the first there is, the one after the last, or that of the record with the latest time."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NEWEST = "max_timestamp"


class Cluster:
    """Asks the brokers. Pickles without its connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._reasons = Reasons()
        self._admin: Any = None
        self._with_ids: set[str] = set()

    def __getstate__(self) -> Connection:
        return self.connection

    def __setstate__(self, connection: Connection) -> None:
        Cluster.__init__(self, connection)

    def connect(self) -> None:
        """Make the client. Raises `ConfigError` for settings that it refuses; asks no broker yet."""
        from confluent_kafka.admin import AdminClient

        if self._admin is None:
            settings = {**self.connection.settings(), "error_cb": self._reasons.remember}
            with naming_client_errors(self.connection, "connecting", None, self._reasons):
                self._admin = AdminClient(settings)

    def close(self) -> None:
        """Let the client go."""
        self._admin = None

    def topic_names(self) -> list[str]:
        """All but internal ones, sorted."""
        metadata = self._ask("listing its topics", None, lambda admin, seconds: admin.list_topics(timeout=seconds))
        return sorted(name for name in metadata.topics if name not in _INTERNAL)

    def topic(self, name: str, *, had_id: bool = False) -> Topic:
        """``had_id``: whether another process, which looked before, was told an id. Raises `TableNotFound` and
        `StorageError`."""
        # Asking for one name may create it, where brokers do so; asking for all never does.
        metadata = self._ask("looking for a topic", name, lambda admin, seconds: admin.list_topics(timeout=seconds))
        found = metadata.topics.get(name)
        if found is None:
            raise self._gone(name)
        if not found.partitions:
            raise StorageError("the topic has no partitions yet", where=name, why=str(found.error or "it is new"))
        # Its name in place of the id would be another topic to whoever compares them, which stops a table for good. And
        # whoever looked before, and knows that there is an id, may be another process.
        if metadata.controller_id < 0:
            raise _no_id(name, "it has no controller, and who describes topics waits for one")
        topic_id = self._topic_id(name)
        if topic_id == name and (had_id or name in self._with_ids):
            raise _no_id(name, "the broker that was asked knows no ids, and another one did before")
        if topic_id != name:
            self._with_ids.add(name)
        return Topic(name, topic_id, tuple(sorted(found.partitions)))

    def offsets(
        self, topic: str, partitions: Collection[int], which: Asked, isolation: IsolationLevel
    ) -> Mapping[int, OffsetAt]:
        """One offset of each partition. Asks again while leaders are elected, for as long as a broker may take to
        answer, and only while the cluster lists the topic. Raises `TableNotFound` for a topic that is gone, and
        `StorageError`."""
        import confluent_kafka.admin
        from confluent_kafka import IsolationLevel as ClientIsolation
        from confluent_kafka import TopicPartition

        admins: Any = confluent_kafka.admin
        level = ClientIsolation[isolation.name]
        until, tries = time.monotonic() + self.connection.timeout, count()

        def ask(admin: Any) -> Mapping[int, OffsetAt]:
            seconds = max(until - time.monotonic(), _LEAST_SECONDS)
            # The client remembers that a partition has no leader until it is asked to list topics.
            if next(tries) and topic not in admin.list_topics(timeout=seconds).topics:
                raise self._gone(topic)
            asked = {
                TopicPartition(topic, partition): getattr(admins.OffsetSpec, which.value)() for partition in partitions
            }
            futures = admin.list_offsets(asked, isolation_level=level, request_timeout=seconds)
            answers = {at.partition: future.result() for at, future in futures.items()}
            return {partition: OffsetAt(answer.offset, answer.timestamp) for partition, answer in answers.items()}

        retrying = asking_again(self.connection.timeout)
        try:
            return self._ask("asking for offsets", topic, lambda admin, _: retrying(ask, admin))
        except TableNotFound as error:
            self.topic(topic)  # raises it, too, where the topic is gone
            raise StorageError(
                "a broker knows nothing of a partition that the cluster has",
                where=topic,
                why="its leader is elected, or the broker has just started",
                fix="Nothing, if it passes. Otherwise look at the leaders of this topic's partitions.",
            ) from error

    def _gone(self, topic: str) -> TableNotFound:
        return TableNotFound(
            f"there is no topic {topic!r}", where=self.connection.bootstrap_servers, fix="Check the table's name."
        )

    def extents(self, topic: str, partitions: Collection[int]) -> Mapping[int, tuple[int, int]] | None:
        """The first offset that each partition holds, and the one after the last. None for a topic that is compacted,
        and from brokers that do not say whether it is: its offsets in between may have lost their records."""
        if self._may_be_compacted(topic):
            return None
        isolation = IsolationLevel.READ_UNCOMMITTED
        earliest = self.offsets(topic, partitions, Asked.EARLIEST, isolation)
        latest = self.offsets(topic, partitions, Asked.LATEST, isolation)
        return {partition: (earliest[partition].offset, latest[partition].offset) for partition in partitions}

    def _may_be_compacted(self, topic: str) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

        from laketier_kafka import client_errors

        def ask(admin: Any, seconds: float) -> bool:
            if admin.list_topics(timeout=seconds).controller_id < 0:
                return True  # describing settings waits for a controller, and there is none
            resource = ConfigResource(ResourceType.TOPIC, topic)
            try:
                settings = admin.describe_configs([resource], request_timeout=seconds)[resource].result()
            except KafkaException as error:
                if error.args[0].code() in (client_errors.TRANSPORT, client_errors.TIMED_OUT):
                    raise
                return True  # who may not ask for settings, or has a broker that tells none, reads topics all the same
            policy = settings.get("cleanup.policy")
            return policy is None or policy.value is None or "compact" in policy.value

        return self._ask("asking for a topic's settings", topic, ask)

    def _topic_id(self, name: str) -> str:
        from confluent_kafka import KafkaException, TopicCollection

        from laketier_kafka import client_errors

        def ask(admin: Any, seconds: float) -> str:
            try:
                described = admin.describe_topics(TopicCollection([name]), request_timeout=seconds)[name].result()
            except KafkaException as error:
                if error.args[0].code() == client_errors.UNSUPPORTED_FEATURE:
                    return name
                raise
            topic_id = str(described.topic_id)
            return name if topic_id in ("", "None", _NO_ID) else topic_id

        return self._ask("describing a topic", name, ask)

    def _ask(self, doing: str, where: str | None, question: Callable[[Any, float], Answer]) -> Answer:
        self.connect()
        with naming_client_errors(self.connection, doing, where, self._reasons):
            try:
                answer = question(self._admin, self.connection.timeout)
            finally:
                self._admin.poll(0)  # serves error_cb, where the client says why
            self._reasons.forget()
            return answer


def _no_id(topic: str, why: str) -> StorageError:
    return StorageError(
        "the cluster does not tell the topic's id now",
        where=topic,
        why=why,
        fix="Nothing, while a controller is elected or brokers are upgraded. Otherwise look at the cluster.",
    )
