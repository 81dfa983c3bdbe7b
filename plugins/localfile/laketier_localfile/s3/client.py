"""How a bucket is reached: the library, its settings, and one client for each process."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from laketier.kit.store_endpoint import asks_for_plain_http
from laketier.spi import ConfigError, Passthrough

if TYPE_CHECKING:
    from types import ModuleType

RETRIES = 5
"""Of requests that may be sent twice, within some seconds. Rounds are repeated by the core."""
_ROOM = "lake.localfile.storage"
_OF_CLIENT = frozenset(
    {"allow_http", "allow_invalid_certificates", "connect_timeout", "pool_idle_timeout", "pool_max_idle_per_host",
     "proxy_ca_certificate", "proxy_excludes", "proxy_url", "read_timeout", "timeout", "user_agent"}
)  # fmt: skip
_OURS = frozenset({"bucket", "conditional_put", "copy_if_not_exists"})
"""Settings of the library that the protocol rests on."""
_SAME = {"endpoint_url": "endpoint", "token": "session_token", "access_key": "access_key_id"}


@dataclass
class Trust:
    """Whether this process knows that the store refuses names that are taken (see `proof`)."""

    holds: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Client:
    """``store`` asks again where the library takes that for safe; ``once`` never does: a conditional put that is sent
    twice may be refused because of itself."""

    store: Any
    once: Any
    trust: Trust = field(default_factory=Trust)


_clients: dict[tuple[object, ...], Client] = {}
_lock = threading.Lock()


def library() -> ModuleType:
    """The library. Raises `ConfigError` with the fix where it is not installed."""
    try:
        import obstore
    except ImportError as error:
        raise ConfigError(
            "tables in S3 need the library obstore, which is not installed",
            where="lake.warehouse",
            why=str(error),
            fix="Run `pip install 'obstore>=0.12.1,<0.13'`, the extra s3 of laketier-localfile, for the driver and for "
            "every executor.",
        ) from error
    return obstore


def client_of(bucket: str, storage: Passthrough) -> Client:
    """The clients of a bucket, one pair for each process and setting. Raises `ConfigError`."""
    key = (os.getpid(), bucket, *sorted(storage.items()))
    with _lock:
        if key not in _clients:
            _clients[key] = _made(bucket, storage)
        return _clients[key]


def settings_of(storage: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The library's settings of S3 and of HTTP, for what users call ``region`` or ``AWS_REGION``, as in other formats.
    Raises `ConfigError` for one that is not the user's to set."""
    of_s3: dict[str, str] = {}
    of_client: dict[str, Any] = {}
    for given, value in storage.items():
        name = given.lower().replace("-", "_").removeprefix("aws_")
        name = _SAME.get(name, name)
        if name in _OURS:
            raise ConfigError(f"{_ROOM}.{given} can't be set", why="laketier sets it", fix="Leave it out.")
        (of_client if name in _OF_CLIENT else of_s3)[name] = value
    endpoint = of_s3.get("endpoint", "")
    if endpoint and urlsplit(endpoint).scheme not in ("http", "https"):
        raise ConfigError(
            f"{_ROOM}.endpoint is {endpoint!r}, which is no URL", fix="Write http:// or https:// before it."
        )
    if asks_for_plain_http(storage):
        of_client["allow_http"] = "true"
    return of_s3, of_client


def _made(bucket: str, storage: Passthrough) -> Client:
    obstore = library()
    of_s3, of_client = settings_of(storage)
    backoff = {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=5), "base": 2}
    again = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=60), "backoff": backoff}
    once = again | {"max_retries": 0}
    try:
        stores = [
            obstore.store.S3Store(bucket, config=of_s3, client_options=of_client, retry_config=retries)
            for retries in (again, once)
        ]
    except Exception as error:  # noqa: BLE001 - whatever the library raises
        raise ConfigError(
            f"the settings below {_ROOM} can't be used",
            where=f"s3://{bucket}",
            why=_without_values(str(error).partition("\n")[0], storage),
            fix="Use the names of obstore's S3 store, such as region, endpoint, access_key_id, secret_access_key, "
            "session_token, virtual_hosted_style_request and allow_http.",
        ) from None
    return Client(*stores)


def _without_values(text: str, storage: Mapping[str, str]) -> str:
    for value in storage.values():
        if len(value) > 3:
            text = text.replace(value, "***")
    return text
