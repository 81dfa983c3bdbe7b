"""The schema registry, by the client's own registry client."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from laketier.spi import ConfigError, LaketierError, StorageError
from laketier_kafka.connection import Connection

_NUMBERS = {
    "timeout",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
    "cache.capacity",
    "cache.latest.ttl.sec",
}
_NOT_FOUND = 404


def registry_client(connection: Connection) -> Any:
    """One per process and source, as it keeps the schemas it has seen. Raises `ConfigError`."""
    return _client_of(connection, os.getpid())


@functools.lru_cache(maxsize=16)
def _client_of(connection: Connection, _process: int) -> Any:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    settings: dict[str, Any] = {"timeout": connection.timeout, **dict(connection.registry)}
    try:
        for key in _NUMBERS & settings.keys():
            settings[key] = float(settings[key])
        return SchemaRegistryClient(settings)
    except (ValueError, TypeError, OSError) as error:
        raise ConfigError(
            "the registry's client refuses its settings",
            where="registry.*",
            why=connection.redact(str(error)),
            fix="The keys below registry. are those of confluent-kafka's SchemaRegistryClient, such as url and "
            "basic.auth.user.info.",
        ) from None


@contextmanager
def naming_registry_errors(connection: Connection, doing: str) -> Iterator[None]:
    """Raise what the registry's client raises in the body as a `LaketierError`."""
    try:
        yield
    except LaketierError:
        raise
    except Exception as error:  # noqa: BLE001 - sorted out by what it is
        raise registry_refusal(connection, error, doing) or error from None


def registry_refusal(connection: Connection, error: Exception, doing: str) -> StorageError | None:
    """What ``error`` is if it is the registry's fault, else None: of a schema that it does not have, too."""
    from confluent_kafka.schema_registry.error import OAuthTokenError, SchemaRegistryError

    # Which HTTP library the registry's client uses is its own affair, and changes.
    from_http = type(error).__module__.partition(".")[0].startswith("httpx")
    if not (from_http or isinstance(error, OSError | OAuthTokenError | SchemaRegistryError)) or is_unknown(error):
        return None
    fix = "Check registry.url, and that this machine reaches it."
    if isinstance(error, OAuthTokenError) or getattr(error, "http_status_code", None) in (401, 403):
        fix = "Check registry.basic.auth.user.info, or the registry's other credentials."
    return StorageError(
        f"the schema registry did not answer while {doing}",
        where=connection.redact(dict(connection.registry).get("url", "")),
        why=connection.redact(str(error) or type(error).__name__),
        fix=fix,
    )


def is_unknown(error: Exception) -> bool:
    """Whether the registry says that it does not have the schema."""
    return getattr(error, "http_status_code", None) == _NOT_FOUND


def latest_schema(connection: Connection, subject: str, form: str | None = None) -> Any:
    """The newest version of a subject. Raises `ConfigError` when there is none, and `StorageError`."""
    client = registry_client(connection)
    doing = f"its newest schema of {subject!r} was asked for"
    try:
        client.clear_latest_caches()  # it would call the first answer the latest for good
        return client.get_latest_version(subject, form).schema
    except Exception as error:  # noqa: BLE001 - sorted out by what it is
        if is_unknown(error):
            raise ConfigError(
                f"the registry has no subject {subject!r}",
                where=connection.redact(dict(connection.registry).get("url", "")),
                fix="Register the schema, or set subject or schema-file.",
            ) from None
        raise registry_refusal(connection, error, doing) or error from None
