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
_NO_PLACE = "Received redirect without LOCATION"
_STATUS = re.compile(r"status code: (\d{3})")
_CAUSE = re.compile(r"\b(Connection refused|dns error|operation timed out|timed out|certificate|TimedOut)\b")

_KEYS = "Check lake.localfile.storage.access_key_id and secret_access_key, or AWS_… in the environment."
_REGION = "Set lake.localfile.storage.region to the bucket's own, or correct lake.localfile.storage.endpoint."
_FIXES = {
    "NoSuchBucket": "Make the bucket, or correct lake.warehouse; laketier makes none.",
    "AccessDenied": "Give the key the actions s3:ListBucket, GetObject, PutObject, DeleteObject and "
    "AbortMultipartUpload there, on the driver and on every executor. Without s3:ListBucket the store says this of a "
    "file that is not there, too. Of a bucket whose requesters pay, set lake.localfile.storage.request_payer to true.",
    "InvalidAccessKeyId": _KEYS,
    "SignatureDoesNotMatch": _KEYS,
    "ExpiredToken": "Set new credentials. Nothing of this round was lost: it can be run again.",
    "InvalidToken": "Set new credentials, with the session token that belongs to them.",
    "TokenRefreshRequired": "Set new credentials. Nothing of this round was lost: it can be run again.",
    "PermanentRedirect": _REGION,
    "TemporaryRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "RequestTimeTooSkewed": "Set this machine's clock right: the store takes no request whose date is off by a quarter "
    "of an hour.",
    "InvalidBucketName": "Correct lake.warehouse: s3://bucket/prefix.",
    "NotImplemented": "Use a store with conditional puts (If-None-Match), as a table can't do without.",
}
_NO_CODE = {
    # Answers to HEAD have no text.
    301: ("PermanentRedirect", _REGION),
    307: ("TemporaryRedirect", _REGION),
    400: ("", f"Check the credentials, which may have expired, and the region. {_KEYS}"),
    401: ("AccessDenied", None),
    403: ("AccessDenied", None),
}
_OTHERWISE = "Look up that answer in the manual of the store, and check the settings below lake.localfile.storage."
_TAKEN = (304, 409, 412)
"""S3 answers 412, and 409 while another put is under way. Old versions of MinIO answer 304."""
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
    final = status is not None and 300 <= status < 500 and status not in (*_TAKEN, 408, 429)
    return final or status == 501 or _NO_PLACE in str(error)


def is_taken(error: Exception) -> bool:
    """Whether the store says of a conditional put that the name is taken, or being taken."""
    return status_of(error) in _TAKEN


def _storage_error(error: Exception, doing: str, where: str) -> StorageError:
    odd = _ODD_KEY.search(str(error))
    if odd is not None:
        return StorageError(
            f"an object there has a key that is no path, met while {doing}",
            where=where,
            why=f"its key is {ascii(odd[1])[:200]}, and the library lists no such keys",
            fix="Rename or delete that object: no writer of laketier makes one.",
        )
    if _NO_PLACE in str(error):
        return StorageError(
            f"the store sent us elsewhere while {doing}",
            where=where,
            why="it answered with a redirect that names no place, as stores do of a bucket of another region",
            fix=_REGION,
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
    fix = None
    if code is None and status in _NO_CODE:
        code, fix = _NO_CODE[status]
    why = f"it answered {status}" + (f" {code}" if code else "") + (f": {message[1]}" if message else "")
    return StorageError(
        f"the store refused while {doing}" if status < 500 else f"the store failed while {doing}",
        where=where,
        why=why,
        fix=fix or _FIXES.get(code or "", _AGAIN if status >= 500 or status in (*_TAKEN, 408, 429) else _OTHERWISE),
    )
