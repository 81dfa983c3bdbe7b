"""Asks a store whether it refuses a put under a name that is taken: some answer 200, whatever `If-None-Match` says.

On such a store two writers would both win a commit, and the rows of one be lost. So a process asks before its first
commit, of each store and bucket once: two puts of one new name at the same time, and a third after them. What a store
did then is not what it does next month, when somebody put another gateway in front of it. Nothing is recorded, and
`ManifestLog.note_head` looks after each commit.

Three puts prove no atomicity. They find who ignores the condition, who does not know it, and often who looks first and
writes then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from laketier.spi import UnsafeTable
from laketier_localfile.s3.client import Client, library
from laketier_localfile.s3.errors import code_of, is_final, is_taken, status_of, translated

_WAITS = (0.2, 1.0)
"""Seconds before a store that fails is asked again."""
_OF_SOMETHING_ELSE = (401, 403, 404, 408, 429)
_FIX = (
    "Use a store that documents conditional writes (If-None-Match: *), or a newer version of this one, and no proxy "
    "that drops the header."
)


def prove(client: Client, new_key: Callable[[], str], where: str) -> None:
    """Ask the store, unless this process did. ``new_key`` gives names that nobody else has. Safe in threads. Raises
    `UnsafeTable` where two writers could take one name, and `StorageError`."""
    with client.trust.lock:
        if not client.trust.holds:
            _ask(client, new_key, where)
            client.trust.holds = True


def _ask(client: Client, new_key: Callable[[], str], where: str) -> None:
    for wait in (*_WAITS, None):
        key = new_key()
        try:
            with ThreadPoolExecutor(2, thread_name_prefix="laketier-s3") as pool:
                answers = list(pool.map(lambda data, key=key: _put(client, key, data), (b"1", b"2")))
            answers.append(_put(client, key, b"3"))
            accepted = answers.count(None)
            if accepted > 1:
                raise _unsafe(where, f"it took {accepted} puts of one new name, of which it should refuse all but one")
            last = answers[-1]
            if accepted and last is not None and is_taken(last):
                return
            failures = [answer for answer in answers if answer is not None]
            failure = next((each for each in failures if not is_taken(each)), failures[0])
            if is_final(failure) and status_of(failure) not in _OF_SOMETHING_ELSE and _takes_plain(client, key):
                told = f"{status_of(failure)} {code_of(failure) or ''}".rstrip()
                raise _unsafe(where, f"it answers {told} to a put with If-None-Match, and takes the same one without")
        finally:
            with suppress(Exception):  # orphan collection finds it
                library().delete(client.store, key)
        if wait is None or is_final(failure):
            raise translated(failure, "asking whether the store refuses a put of a name that is taken", where)
        time.sleep(wait)


def _put(client: Client, key: str, data: bytes) -> Exception | None:
    """None where the store took it."""
    try:
        library().put(client.once, key, data, mode="create")
    except Exception as error:  # noqa: BLE001 - told by what it says
        return error
    return None


def _takes_plain(client: Client, key: str) -> bool:
    try:
        library().put(client.store, key, b"4", use_multipart=False)
    except Exception:  # noqa: BLE001 - then it is not the condition
        return False
    return True


def _unsafe(where: str, why: str) -> UnsafeTable:
    return UnsafeTable(
        "the store can't hold tables: two writers could both win a commit, and rows be lost without a word",
        where=where,
        why=why,
        fix=_FIX,
    )
