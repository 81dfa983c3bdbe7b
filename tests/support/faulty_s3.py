"""An S3 that misbehaves on purpose: the suite's moto over HTTP, with faults drawn from a seed."""

from __future__ import annotations

import io
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import boto3
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

from laketier_conformance.stores.atomic import OneAtATime

KEY = "testing"
REGION = "us-east-1"
BUCKET = "lake"


class Fault(Enum):
    """What becomes of one request."""

    ERROR_500 = "500 before the effect"
    SLOW_DOWN = "503 before the effect"
    LOST_500 = "500 after the effect"
    RESET = "connection closed after the effect"
    TIME_OUT = "no answer in time, after the effect"
    SLOW_BODY = "a slow body"
    EXPIRED = "expired credentials"
    REFUSED = "412 without a look"
    CONFLICT = "409 to a conditional put"
    DENIED = "no leave"


_STATUS = {
    Fault.ERROR_500: ("500 Internal Server Error", "InternalError"),
    Fault.SLOW_DOWN: ("503 Slow Down", "SlowDown"),
    Fault.LOST_500: ("500 Internal Server Error", "InternalError"),
    Fault.EXPIRED: ("400 Bad Request", "ExpiredToken"),
    Fault.REFUSED: ("412 Precondition Failed", "PreconditionFailed"),
    Fault.CONFLICT: ("409 Conflict", "ConditionalRequestConflict"),
    Fault.DENIED: ("403 Forbidden", "AccessDenied"),
}
DRAWN = tuple(fault for fault in Fault if fault not in (Fault.CONFLICT, Fault.DENIED))
"""What a store does now and then by itself, and every library has to live with."""
_AFTER = (Fault.LOST_500, Fault.RESET, Fault.TIME_OUT)

Meddler = Callable[[str, str, dict[str, Any]], "tuple[str, ...] | None"]
"""Is shown method, path and the WSGI environment of a request, in a thread of the server. What it returns is answered:
the status line, the code of the error, and more of its XML, if there is any."""


@dataclass
class FaultyS3:
    """The server. Faults begin with `arm` and end with `disarm`; `injected` counts them."""

    url: str = ""
    silence: float = 1.5
    injected: Counter[Fault] = field(default_factory=Counter)
    _random: random.Random | None = None
    _share: float = 0.0
    _always: tuple[Fault, str] | None = None
    _left: int | None = None
    _meddler: Meddler | None = None
    _nth: tuple[int, Fault] | None = None
    _listed: Any = None
    _drawn: tuple[Fault, ...] = DRAWN
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request; ``COPY`` and ``LIST`` are told from other puts and gets."""
    served: int = 0
    """Bytes of all answers."""
    _moto: OneAtATime = field(default_factory=OneAtATime)

    def arm(self, seed: int, share: float, faults: tuple[Fault, ...] = DRAWN) -> None:
        """From now on ``share`` of the requests fail, in ways of ``faults`` drawn from ``seed``."""
        self._random, self._share, self._drawn = random.Random(seed), share, faults

    def meddle(self, meddler: Meddler | None) -> None:
        """From now on each request is shown to ``meddler`` first, which may change it, or answer it."""
        self._meddler = meddler

    @contextmanager
    def lagging(self) -> Iterator[None]:
        """Meanwhile listings show the bucket as it is now, whatever is put and deleted."""
        with self._moto.lock:
            self._listed = copy(self._bucket(BUCKET).keys)
        try:
            yield
        finally:
            self._listed = None

    def _bucket(self, name: str) -> Any:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[name]

    def always_put(self, fault: Fault, ending: str, *, times: int | None = None) -> None:
        """From now on this becomes of every put of a key with that ending, or of so many."""
        self._always, self._left = (fault, ending), times

    def disarm(self) -> None:
        """Serve all requests again."""
        self._random = self._always = self._meddler = self._nth = None

    @cached_property
    def client(self) -> Any:
        """boto3's. Once it has ``url``."""
        return boto3.client(
            "s3", endpoint_url=self.url, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=KEY
        )

    def keys(self, prefix: str = "") -> set[str]:
        """All keys of the bucket below ``prefix``."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return {item["Key"] for page in pages for item in page.get("Contents", ())}

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        method, path = _method(environ), environ["PATH_INFO"]
        with self._moto.lock:
            self.requests.append((method, path))
        fault = self._draw(environ)
        # Before the lock: a client that is frozen while it sends must not hold up the others.
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if length:
            sent = environ["wsgi.input"].read(length)
            if len(sent) < length:  # the client was killed
                raise _hung_up(environ)
            environ["wsgi.input"] = io.BytesIO(sent)
        answered = None if self._meddler is None else self._meddler(method, path, environ)
        if answered is not None:
            return _error(*answered[:2], "on purpose", start_response, *answered[2:])
        if fault in _STATUS and fault not in _AFTER:
            return _error(*_STATUS[fault], fault.value, start_response)
        answer: list[Any] = []
        with self._moto.lock, self._list_as_before(method):
            body = list(self._moto(environ, lambda *head: answer.append(head)))
        if fault is Fault.LOST_500:
            return _error(*_STATUS[fault], fault.value, start_response)
        if fault in (Fault.RESET, Fault.TIME_OUT):
            if fault is Fault.TIME_OUT:
                time.sleep(self.silence)
            raise _hung_up(environ)
        self.served += sum(map(len, body))
        start_response(*answer[-1])
        return _slowly(body) if fault is Fault.SLOW_BODY else body

    @contextmanager
    def _list_as_before(self, method: str) -> Iterator[None]:
        if method != "LIST" or self._listed is None:
            yield
            return
        bucket = self._bucket(BUCKET)
        now, bucket.keys = bucket.keys, self._listed
        try:
            yield
        finally:
            bucket.keys = now

    def fail_nth(self, n: int, fault: Fault) -> None:
        """This becomes of the request ``n`` from now, counted from 0, and of no other one."""
        self._nth = n, fault

    def _draw(self, environ: dict[str, Any]) -> Fault | None:
        with self._moto.lock:
            if self._nth is not None:
                left, fault = self._nth
                self._nth = None if left == 0 else (left - 1, fault)
                if left == 0:
                    self.injected[fault] += 1
                    return fault
            if self._always is not None:
                fault, ending = self._always
                put = environ["REQUEST_METHOD"] == "PUT" and environ["PATH_INFO"].endswith(ending)
                if put and self._left != 0:
                    self._left = None if self._left is None else self._left - 1
                    self.injected[fault] += 1
                    return fault
            if self._random is None or self._random.random() >= self._share:
                return None
            possible = [fault for fault in self._drawn if _can(fault, environ)]
            fault = self._random.choice(possible)
            self.injected[fault] += 1
            return fault


@contextmanager
def faulty_s3() -> Iterator[FaultyS3]:
    """A server with one empty bucket, `BUCKET`."""
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].reset()
    service = FaultyS3()
    server = make_server("127.0.0.1", 0, service, threaded=True, request_handler=_Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_port}"
    try:
        service.client.create_bucket(Bucket=BUCKET)
        yield service
    finally:
        service.disarm()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(WSGIRequestHandler):
    """Gives the application its socket, and says nothing of connections that it ends itself."""

    def make_environ(self) -> Any:
        return {**super().make_environ(), "faulty.socket": self.connection}

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        pass

    def log(self, type: str, message: str, *args: Any) -> None:
        pass


def _method(environ: dict[str, Any]) -> str:
    method: str = environ["REQUEST_METHOD"]
    if method == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
        return "COPY"
    return "LIST" if method == "GET" and "list-type" in environ.get("QUERY_STRING", "") else method


def _can(fault: Fault, environ: dict[str, Any]) -> bool:
    if fault in (Fault.REFUSED, Fault.CONFLICT):
        return environ["REQUEST_METHOD"] == "PUT" and "HTTP_IF_NONE_MATCH" in environ
    if fault is Fault.SLOW_BODY:
        return environ["REQUEST_METHOD"] == "GET"
    return True


def _error(status: str, code: str, message: str, start_response: Any, more: str = "") -> list[bytes]:
    told = f"<Code>{code}</Code><Message>{message}</Message>"
    text = f"<?xml version='1.0'?><Error>{told}{more}</Error>".encode()
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(text)))])
    return [text]


def _hung_up(environ: dict[str, Any]) -> ConnectionResetError:
    """What the server takes for a client that went away."""
    connection: socket.socket = environ["faulty.socket"]
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    return ConnectionResetError("on purpose")


def _slowly(body: list[bytes]) -> Iterator[bytes]:
    whole = b"".join(body)
    for start in range(0, len(whole), max(1, len(whole) // 3)):
        time.sleep(0.05)
        yield whole[start : start + max(1, len(whole) // 3)]
