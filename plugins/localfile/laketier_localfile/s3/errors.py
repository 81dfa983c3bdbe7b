"""What the library says of a request, as the errors of laketier: what, where, why, and what to do next.

The library's own texts hold whole answers of the store, with key ids and tokens in them. So only the answer's code and
message are kept, and its exception is not chained.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from laketier.spi import StorageError

_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,80})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
_ODD_KEY = re.compile(r'invalid path: (?:Error parsing )?Path "(.*?)"(?::| contained)', re.DOTALL)
_STATUS = re.compile(r"status code: (\d{3})")
_CAUSE = re.compile(r"\b(Connection refused|dns error|operation timed out|timed out|certificate|TimedOut)\b")

_KEYS = "Check lake.localfile.storage.access_key_id and secret_access_key, or AWS_… in the environment."
_FIXES = {
    "NoSuchBucket": "Make the bucket, or correct lake.warehouse; laketier makes none.",
    "AccessDenied": "Give the key the actions s3:ListBucket, GetObject, PutObject, DeleteObject and "
    "AbortMultipartUpload there, on the driver and on every executor.",
    "InvalidAccessKeyId": _KEYS,
    "SignatureDoesNotMatch": _KEYS,
    "ExpiredToken": "Set new credentials. Nothing of this round was lost: it can be run again.",
    "InvalidToken": "Set new credentials, with the session token that belongs to them.",
    "PermanentRedirect": "Set lake.localfile.storage.region to the bucket's own, or correct its endpoint.",
    "AuthorizationHeaderMalformed": "Set lake.localfile.storage.region to the bucket's own.",
    "NotImplemented": "Use a store with conditional puts (If-None-Match), as a table can't do without.",
}
_AGAIN = "Run it again; nothing that was acknowledged is lost."
_UNREACHED = (
    "Check lake.localfile.storage.endpoint, the network, and the credentials: without any, the library asks "
    "the cloud's own metadata service for some."
)


@contextmanager
def naming(doing: str, where: str) -> Iterator[None]:
    """Raise what the library raises in the body as `StorageError`, and as `FileNotFoundError` where an object is
    missing. What laketier raises passes."""
    try:
        yield
    except Exception as error:
        told = translated(error, doing, where)
        if told is error:
            raise
        raise told from None


def translated(error: Exception, doing: str, where: str) -> Exception:
    """The error to raise for ``error``; the same one where it is not the library's."""
    if isinstance(error, FileNotFoundError):
        if code_of(error) == "NoSuchBucket":
            return _storage_error(error, doing, where)
        return FileNotFoundError(f"there is no object {where}")
    # Its writers raise `OSError`, which the system's own have a number for.
    ours = type(error).__module__.partition(".")[0] == "obstore" or (isinstance(error, OSError) and error.errno is None)
    return _storage_error(error, doing, where) if ours else error


def code_of(error: Exception) -> str | None:
    """The store's code for what went wrong."""
    found = _CODE.search(str(error))
    return None if found is None else found[1]


def status_of(error: Exception) -> int | None:
    """The status of the store's answer. None where there was none."""
    found = _STATUS.search(str(error))
    return None if found is None else int(found[1])


def is_final(error: Exception) -> bool:
    """Whether asking again would bring the same answer."""
    status = status_of(error)
    return status is not None and 300 <= status < 500 and status not in (408, 409, 412, 429)


def _storage_error(error: Exception, doing: str, where: str) -> StorageError:
    odd = _ODD_KEY.search(str(error))
    if odd is not None:
        return StorageError(
            f"an object there has a key that is no path, met while {doing}",
            where=where,
            why=f"its key is {ascii(odd[1])[:200]}, and the library lists no such keys",
            fix="Rename or delete that object: no writer of laketier makes one.",
        )
    code, status, message = code_of(error), status_of(error), _MESSAGE.search(str(error))
    if status is None:
        cause = _CAUSE.search(str(error))
        return StorageError(
            f"the store can't be reached while {doing}",
            where=where,
            why=None if cause is None else cause[1].lower(),
            fix=_UNREACHED,
        )
    if code is None and status in (401, 403):
        code = "AccessDenied"  # an answer to HEAD has no body
    why = f"it answered {status}" + (f" {code}" if code else "") + (f": {message[1]}" if message else "")
    return StorageError(
        f"the store refused while {doing}" if status < 500 else f"the store failed while {doing}",
        where=where,
        why=why,
        fix=_FIXES.get(code or "", _AGAIN if status >= 500 or status == 429 else None),
    )
