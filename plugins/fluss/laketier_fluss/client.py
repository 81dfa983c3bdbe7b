"""Calls of pyfluss, tried again while a server is away. Only in a child."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryError, retry_if_exception, stop_after_delay, wait_random_exponential

from laketier.spi import ConfigError, LaketierError, StorageError, TableNotFound

Answer = TypeVar("Answer")

_NETWORK = 1
_NO_DATABASE, _NO_TABLE, _NO_PARTITION = 4, 7, 36
_AUTHENTICATION, _AUTHORIZATION = 46, 48
# The client reports these as its own errors, which it calls not retriable. A tablet server that has just started knows
# no tables for a while; of one that is really gone the coordinator says that it "does not exist".
_PASSING = re.compile(
    r"No leader found|(info|Table) not found|connection error|timed out|time out|not available|poisoned|broken pipe"
    r"|failed to lookup",
    re.IGNORECASE,
)
_SETTINGS = re.compile(r"Unknown property|Invalid value|expected '|illegal argument")


class Client:
    """One connection, made when it is first needed and again after it broke."""

    def __init__(self, settings: dict[str, str], timeout: float) -> None:
        self._settings = settings
        self.timeout = timeout
        self._connection: Any = None

    @property
    def where(self) -> str:
        """The servers that are asked."""
        return self._settings["bootstrap.servers"]

    async def call(self, doing: str, question: Callable[[Any], Awaitable[Answer]], where: str | None = None) -> Answer:
        """The answer of ``question(connection)``. Raises `TableNotFound`, `ConfigError` and `StorageError`."""
        from fluss import FlussError

        retrying = AsyncRetrying(
            stop=stop_after_delay(self.timeout),
            wait=wait_random_exponential(multiplier=0.05, max=1.0),
            retry=retry_if_exception(lambda error: isinstance(error, FlussError) and is_passing(error)),
        )
        try:
            return await retrying(self._ask, question)
        except RetryError as spent:
            raise self.refusal(spent.last_attempt.exception(), doing, where) from None
        except FlussError as error:
            raise self.refusal(error, doing, where) from None

    async def _ask(self, question: Callable[[Any], Awaitable[Answer]]) -> Answer:
        from fluss import Config, FlussConnection, FlussError

        try:
            if self._connection is None:
                self._connection = await FlussConnection.create(Config(self._settings))
            return await question(self._connection)
        except FlussError as error:
            if is_passing(error):
                self._connection = None  # it may remember servers that are gone
            raise

    def refusal(self, error: Any, doing: str, where: str | None) -> LaketierError:
        """Translate an error of the client."""
        why, code = brief(error.message), error.error_code
        if code in (_NO_DATABASE, _NO_TABLE) and not is_passing(error):
            return TableNotFound("there is no such table", where=where, why=f"Fluss says: {why}")
        if _SETTINGS.search(why) and not is_passing(error):
            return ConfigError(
                "the client of Fluss refuses its settings",
                where=self.where,
                why=why,
                fix="Check bootstrap-servers, and that each key below client is a setting of pyfluss.",
            )
        fix = "Check bootstrap-servers, and that this machine reaches the coordinator and the tablet servers."
        if code == _AUTHENTICATION or "uthenticat" in why:
            fix = "Check client.security.protocol and client.security.sasl.*."
        elif code == _AUTHORIZATION:
            fix = "Let this user describe and read the table."
        return StorageError(f"Fluss did not answer while {doing}", where=where or self.where, why=why, fix=fix)


def is_passing(error: Any) -> bool:
    """Whether asking again can help: a server is away, or has just come back."""
    return bool(error.is_retriable) or error.error_code == _NETWORK or bool(_PASSING.search(error.message))


def is_no_partition(error: Any) -> bool:
    """Whether the partition is not there (any more)."""
    return bool(error.error_code == _NO_PARTITION)


def brief(message: str) -> str:
    """An error's text without the server's stack."""
    lines = [line.strip() for line in message.splitlines()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return ", ".join([*lines[:1], *causes[-1:]])


class Silence:
    """How long nothing has come."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def heard(self) -> None:
        """Something came, or what went by was not the server's time."""
        self._since = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since then."""
        return time.monotonic() - self._since
