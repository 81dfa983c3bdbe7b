"""How a process reaches the cluster, what it calls what the client tells it, and what it must not repeat."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from laketier.spi import ConfigError, LaketierError, StorageError, TableNotFound
from laketier_kafka.elections import is_election
from laketier_kafka.options import IsolationLevel, KafkaOptions

_LOG = logging.getLogger("laketier.kafka")
# What would change which records are read, or has an option of its own.
_RESERVED = {
    "bootstrap.servers": "Set bootstrap-servers.",
    "metadata.broker.list": "Set bootstrap-servers.",
    "isolation.level": "Set isolation-level of the table.",
    "auto.offset.reset": "Ranges begin where the last one ended.",
    "enable.auto.commit": "Offsets are kept in the lake, with the rows.",
    "enable.auto.offset.store": "Offsets are kept in the lake, with the rows.",
    "enable.partition.eof": "It is how the end of a range is found.",
    "default.topic.config": "Give its keys themselves, as client.<key>.",
    "oauth_cb": "It takes a function, and options are text: set client.sasl.oauthbearer.method to oidc.",
    "stats_cb": "It takes a function, and options are text.",
    "throttle_cb": "It takes a function, and options are text.",
}
# Their values are words of librdkafka or places, and an error that hides them says nothing.
_PUBLIC = re.compile(
    r"security\.protocol|sasl\.mechanisms?|group\.id|client\.id|client\.rack|debug|.*\.location|.*\.(ms|bytes|kbytes)|.*\.max"
)
_COUNTS = re.compile(r"timeout|max\.retries|retries\..*|cache\..*")


@dataclass(frozen=True)
class Connection:
    """The settings that every process needs. Picklable and hashable; its repr shows no value that may be a secret."""

    bootstrap_servers: str
    timeout: float
    client: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    registry: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, options: KafkaOptions, source: str) -> Connection:
        """Raises `ConfigError` for what is missing or not the user's to set."""
        if not options.bootstrap_servers.strip():
            raise ConfigError(
                "bootstrap-servers is missing",
                where=source,
                fix="Set it to some of the brokers, as host:port,host:port.",
            )
        if not options.timeout_seconds > 0:
            raise ConfigError(f"timeout-seconds = {options.timeout_seconds} is not more than 0", where=source)
        for key, fix in _RESERVED.items():
            if key in options.client:
                raise ConfigError(f"client.{key} is not for users to set", where=source, fix=fix)
        return cls(
            options.bootstrap_servers,
            options.timeout_seconds,
            tuple(sorted(options.client.items())),
            tuple(sorted(options.registry.items())),
        )

    def settings(self) -> dict[str, Any]:
        """For any client of librdkafka's. What it logs goes to Python's logging."""
        return {**dict(self.client), "bootstrap.servers": self.bootstrap_servers, "logger": _Log(self)}

    def consumer_settings(self, isolation: IsolationLevel) -> dict[str, Any]:
        """For a consumer that reads a range and keeps no offsets in the cluster."""
        return {
            # The broker answers "nothing more" after this long: the end of a log is found that much later.
            "fetch.wait.max.ms": "50",
            # librdkafka's own default is to believe what a broker's disk or the network made of a batch.
            "check.crcs": "true",
            "group.id": "laketier",  # librdkafka wants one; it is never joined, and nothing is committed
            **self.settings(),
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": isolation.value,
        }

    def redact(self, text: str) -> str:
        """``text`` without any value that may be a secret."""
        for secret in self._secrets():
            # Short ones only as whole words: to blot out each "a" would leave nothing to read.
            pattern = re.escape(secret) if len(secret) > 3 else rf"(?<!\w){re.escape(secret)}(?!\w)"
            text = re.sub(pattern, "***", text)
        return text

    def _secrets(self) -> list[str]:
        values = {value for key, value in self.client if not _PUBLIC.fullmatch(key)}
        for key, value in self.registry:
            # How often and how long is no secret, and such numbers are in most addresses.
            if key != "url" and not (_COUNTS.fullmatch(key) and value.replace(".", "", 1).isdecimal()):
                values.add(value)
            # user:password, in a key of its own or within the URL
            for userinfo in [value] if "user.info" in key else re.findall(r"//([^/@\s]+)@", value):
                values.update({userinfo, userinfo.partition(":")[2]})
        return sorted((value for value in values if value.strip()), key=len, reverse=True)


class _Log:
    """Takes what librdkafka logs. It logs each failed try; who gives up raises an error that says why, so this is
    detail."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def log(self, level: int, text: str, *arguments: object) -> None:
        """Called by the client."""
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("%s", self._connection.redact(text % arguments if arguments else text))


class Reasons:
    """What the client said lately of its connections: a call that times out says only that it did."""

    def __init__(self) -> None:
        self._last: deque[Any] = deque(maxlen=8)

    def remember(self, error: Any) -> None:
        """The client's ``error_cb``."""
        self._last.append(error)

    def forget(self) -> None:
        """A call went well: what was said before it explains no later one."""
        self._last.clear()

    def why(self) -> str | None:
        """The last one that says more than that all brokers are down."""
        from laketier_kafka import client_errors

        telling = [error for error in self._last if error.code() != client_errors.ALL_BROKERS_DOWN]
        return telling[-1].str() if telling else None


@contextmanager
def naming_client_errors(connection: Connection, doing: str, where: str | None, reasons: Reasons) -> Iterator[None]:
    """Raise what the client raises in the body as a `LaketierError`."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise refusal(connection, error.args[0], doing, where, reasons) from None


def refusal(connection: Connection, error: Any, doing: str, where: str | None, reasons: Reasons) -> LaketierError:
    """Translate a ``KafkaError``."""
    from confluent_kafka import KafkaError

    from laketier_kafka import client_errors

    code = error.code()
    silent = (client_errors.TRANSPORT, client_errors.TIMED_OUT, client_errors.ALL_BROKERS_DOWN)
    why = connection.redact((reasons.why() if code in silent else None) or error.str())
    where = where or connection.bootstrap_servers
    if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, client_errors.UNKNOWN_TOPIC, client_errors.UNKNOWN_PARTITION):
        return TableNotFound("there is no such topic", where=where, why=f"the broker says: {why}")
    if code == client_errors.INVALID_ARG:
        return ConfigError(
            "the client refuses its settings",
            where=where,
            why=connection.redact(error.str()),
            fix="The keys below client. are librdkafka's; its CONFIGURATION.md lists them.",
        )
    if code == client_errors.BAD_MSG:
        return StorageError(
            f"what Kafka sent is damaged, as {doing}",
            where=where,
            why=why,
            fix="Run it again. If it stays so, a broker's disk has it so: make that replica anew from another one. "
            "Where none is whole, client.check.crcs: false reads it as it is.",
        )
    fix = "Check bootstrap-servers, that this machine reaches the brokers, and whether they want TLS."
    if code in (client_errors.AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED) or "SASL" in why or "SSL" in why:
        fix = "Check client.security.protocol, client.sasl.* and client.ssl.*."
    elif is_election(error):
        fix = "Nothing, if it passes. Otherwise look at the leaders of this topic's partitions."
    elif "AUTHORIZATION" in error.name():
        fix = "Let this user describe and read the topic."
    return StorageError(f"Kafka did not answer while {doing}", where=where, why=why, fix=fix)
