"""A proxy before a store: each request is shown to whoever decides what becomes of it.

It hands on what was sent as it was, host and signature too, so a store that checks signatures takes it.
"""

from __future__ import annotations

import http.client
import re
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from socket import SHUT_RDWR, socket
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

SILENCE_SECONDS = 1.5
_HEAD_BYTES = 1 << 20


class Fault(Enum):
    """What becomes of a request, in words that follow "answered with" or stand for themselves."""

    FAILED = "answered 500 before its effect"
    SLOW_DOWN = "answered 503 before its effect"
    LOST = "answered 500 after its effect"
    RESET = "its connection closed after its effect"
    SILENCE = "not answered in time, after its effect"
    REFUSED = "answered 412 although nothing was there"
    DENIED = "answered 403"
    CUT = "its connection closed before its effect"
    LATE = "its connection closed, and its effect came when the call was over"
    KEPT = "answered 200, with an error for each object, none of which was deleted"


_ANSWERS = {
    Fault.FAILED: (500, "InternalError", "We encountered an internal error. Please try again."),
    Fault.SLOW_DOWN: (503, "SlowDown", "Please reduce your request rate."),
    Fault.LOST: (500, "InternalError", "We encountered an internal error. Please try again."),
    Fault.REFUSED: (412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"),
    Fault.DENIED: (403, "AccessDenied", "Access Denied"),
}
_AFTER = (Fault.LOST, Fault.RESET, Fault.SILENCE)


@dataclass(frozen=True)
class Sent:
    """A request. ``headers`` have names in lower case; ``target`` is the path with the query, as it was sent."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def what(self) -> str:
        """Its method; puts that copy, gets that list, and posts that begin an upload in parts, are told from others."""
        if self.method == "PUT" and "x-amz-copy-source" in self.headers:
            return "COPY"
        query = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        if self.method == "POST" and "uploads" in query:
            return "UPLOAD"
        return "LIST" if self.method == "GET" and {"list-type", "prefix", "delimiter"} & query.keys() else self.method

    @property
    def key(self) -> str:
        """The object; of a listing, below what it looks."""
        parts = urlsplit(self.target)
        prefix = parse_qs(parts.query).get("prefix", [""])[0]
        return unquote(parts.path).lstrip("/").partition("/")[2] or prefix

    @property
    def is_conditional(self) -> bool:
        """Whether a put holds only where nothing is, or what is named."""
        return self.method == "PUT" and bool({"if-none-match", "if-match"} & self.headers.keys())

    @property
    def changes(self) -> bool:
        """Whether it may change what is in the store."""
        return self.method not in ("GET", "HEAD")

    @property
    def deletes_many(self) -> bool:
        """Whether it names objects that shall go."""
        return self.method == "POST" and "delete" in parse_qs(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def told(self) -> str:
        """For messages."""
        return f"{self.what} of {self.key or 'the bucket'}{' on a condition' if self.is_conditional else ''}"

    def can(self, fault: Fault) -> bool:
        """Whether a store may answer so."""
        return {
            Fault.REFUSED: self.is_conditional,
            Fault.KEPT: self.deletes_many,
            Fault.LATE: self.method == "PUT",
        }.get(fault, True)


Decide = Callable[[Sent], Fault | None]
"""In a thread of the proxy, before the request is handed on: for as long as it takes, the request waits."""


class Proxy:
    """Before the store at ``endpoint``. ``seen`` counts requests by `Sent.what`, ``faults`` what became of them."""

    def __init__(self, endpoint: str) -> None:
        self._to = urlsplit(endpoint)
        self._lock = threading.Lock()
        self._decide: Decide | None = None
        self._server = _Server(("127.0.0.1", 0), self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.seen: Counter[str] = Counter()
        self.faults: Counter[Fault] = Counter()
        self._late: list[Sent] = []
        self.page: int | None = None
        """So many keys are in one page of a listing. A store that checks signatures does not take it."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        for thread, connection in list(self._server.live.items()):
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)
            thread.join(SILENCE_SECONDS + 1)

    @contextmanager
    def deciding(self, decide: Decide) -> Iterator[None]:
        """Meanwhile each request is shown to ``decide``."""
        self._decide = decide
        try:
            yield
        finally:
            self._decide = None

    def decided(self, sent: Sent) -> Fault | None:
        """What becomes of a request."""
        with self._lock:
            self.seen[sent.what] += 1
        decide = self._decide
        fault = None if decide is None else decide(sent)
        if fault is not None:
            with self._lock:
                self.faults[fault] += 1
        return fault

    def keep(self, sent: Sent) -> None:
        """It arrives when somebody says `let_arrive`."""
        with self._lock:
            self._late.append(sent)

    def let_arrive(self) -> int:
        """What was kept gets to the store, in its order, whoever waits for it no more. How many requests that were."""
        with self._lock:
            late, self._late = self._late, []
        store = self.connect()
        for sent in late:
            _handed_on(store, sent, None)
        store.close()
        return len(late)

    def connect(self) -> http.client.HTTPConnection:
        """To the store."""
        kind = http.client.HTTPSConnection if self._to.scheme == "https" else http.client.HTTPConnection
        return kind(self._to.hostname or "", self._to.port, timeout=60)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], proxy: Proxy) -> None:
        self.proxy = proxy
        self.live: dict[threading.Thread, socket] = {}
        super().__init__(address, _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients are killed here, and go away in the middle of a request."""


class _Connection(socketserver.StreamRequestHandler):
    server: _Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        store = self.server.proxy.connect()
        self.server.live[threading.current_thread()] = self.connection
        try:
            while (sent := self._sent()) is not None:
                fault = self.server.proxy.decided(sent)
                if fault is Fault.LATE:
                    self.server.proxy.keep(sent)
                if fault in (Fault.CUT, Fault.LATE):
                    return
                is_done = fault is None or fault in _AFTER
                answer = _handed_on(store, sent, self.server.proxy.page) if is_done else b""
                if fault is Fault.SILENCE:
                    time.sleep(SILENCE_SECONDS)
                if fault in (Fault.RESET, Fault.SILENCE):
                    return
                self.wfile.write(answer if fault is None else _refusal(fault, sent))
        finally:
            store.close()
            self.server.live.pop(threading.current_thread())
            with suppress(OSError):
                self.connection.shutdown(SHUT_RDWR)

    def _sent(self) -> Sent | None:
        """The next request. None where there is none, or not a whole one."""
        line = self.rfile.readline(_HEAD_BYTES).decode("latin-1").split()
        if len(line) != 3:
            return None
        headers: dict[str, str] = {}
        while (header := self.rfile.readline(_HEAD_BYTES).decode("latin-1").rstrip("\r\n")) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        if headers.pop("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.pop("transfer-encoding", "").lower() == "chunked":
            body = self._chunks()
            headers["content-length"] = "0" if body is None else str(len(body))
        else:
            length = int(headers.get("content-length", 0))
            body = self.rfile.read(length)
            body = body if len(body) == length else None
        return None if body is None else Sent(line[0], line[1], headers, body)

    def _chunks(self) -> bytes | None:
        """A body that comes in pieces. None where its end does not come."""
        pieces: list[bytes] = []
        while True:
            length = int(self.rfile.readline(_HEAD_BYTES).partition(b";")[0].strip() or b"-1", 16)
            piece = self.rfile.read(max(length, 0))
            end = self.rfile.readline(_HEAD_BYTES)
            if length < 0 or len(piece) < length or not end:
                return None
            if not length:
                return b"".join(pieces)
            pieces.append(piece)


def _handed_on(store: http.client.HTTPConnection, sent: Sent, page: int | None) -> bytes:
    target = sent.target
    if page is not None and sent.what == "LIST":
        target = f"{_MAX_KEYS.sub('', target)}&max-keys={page}"
    store.putrequest(sent.method, target, skip_host=True, skip_accept_encoding=True)
    for name, value in sent.headers.items():
        if name != "connection":
            store.putheader(name, value)
    store.endheaders(sent.body or None)
    with store.getresponse() as answer:
        body = answer.read()
        # One that is kept, and that the store closed meanwhile, would look like a fault that nobody decided on.
        store.close()
        head = [f"HTTP/1.1 {answer.status} {answer.reason}"]
        length = answer.headers.get("Content-Length") if sent.method == "HEAD" else str(len(body))
        head += [f"{name}: {value}" for name, value in answer.headers.items() if name.lower() not in _OF_A_HOP]
    if length is not None and answer.status not in (204, 304):
        head.append(f"Content-Length: {length}")
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


_MAX_KEYS = re.compile(r"&max-keys=\d+|(?<=\?)max-keys=\d+&")
_OF_A_HOP = ("connection", "content-length", "keep-alive", "transfer-encoding")


def _refusal(fault: Fault, sent: Sent) -> bytes:
    status, code, message = (200, "OK", "") if fault is Fault.KEPT else _ANSWERS[fault]
    text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    if fault is Fault.KEPT:
        _, denied, why = _ANSWERS[Fault.DENIED]
        keys = re.findall("<Key>(.*?)</Key>", sent.body.decode(), re.DOTALL)
        errors = (f"<Error><Key>{k}</Key><Code>{denied}</Code><Message>{why}</Message></Error>" for k in keys)
        text = f'<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{"".join(errors)}</DeleteResult>'
    body = f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode()
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + (b"" if sent.method == "HEAD" else body)
