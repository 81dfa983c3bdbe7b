"""A store that can be reached, and says nothing."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from laketier.service.schedule import is_retryable
from laketier.spi import LakeStorageConfig, Passthrough, StorageError, TablePath
from laketier_lance import options
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin

TIMEOUT = 1.2


@dataclass
class Silent:
    """``asked``: the first line of each request that it got."""

    url: str
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def silent() -> Iterator[Silent]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Silent(f"http://127.0.0.1:{listener.getsockname()[1]}")
        kept: list[socket.socket] = []

        def hear() -> None:
            while True:
                try:
                    kept.append(listener.accept()[0])
                    found.asked.append(kept[-1].recv(4096).decode().partition("\r\n")[0])
                except OSError:
                    return

        thread = threading.Thread(target=hear, daemon=True)
        thread.start()
        yield found
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    for each in kept:
        each.close()


def test_a_store_that_says_nothing_is_told_after_one_try_of_each_of_lance_s(
    silent: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Lance's own limits each of them is four tries."""
    monkeypatch.setattr(options, "_RETRY_SECONDS", 1)  # shorter than one request, as in real life
    keys = {"access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1", "endpoint": silent.url}
    given = LanceOptions(storage=Passthrough({**keys, "timeout": f"{TIMEOUT}s"}))
    storage = LancePlugin().create_storage(LakeStorageConfig("s3://lake/warehouse", given))
    began = time.monotonic()
    with pytest.raises(StorageError, match=r"s3://lake/warehouse/db/t\.lance: Lance could not read") as told:
        storage.catalog().load_table(TablePath("db", "t"))
    assert is_retryable(told.value)
    assert len(silent.asked) <= 6, silent.asked
    assert time.monotonic() - began < 3 * 6 * TIMEOUT


def test_retries_end_before_the_time_limit_of_one_request() -> None:
    """Which is Lance's 30 s, where nobody gives another."""
    assert int(LanceOptions().storage_options()["client_retry_timeout"]) < 30


@pytest.mark.parametrize("key", ["client_retry_timeout", "CLIENT_RETRY_TIMEOUT"])
def test_who_wants_more_patience_gets_it(key: str) -> None:
    assert LanceOptions(storage=Passthrough({key: "300"})).storage_options() == {key: "300"}
