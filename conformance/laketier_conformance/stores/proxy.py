"""A proxy before a store: each request is shown to whoever decides what becomes of it.

It hands on what was sent as it was, host and signature too, so a store that checks signatures takes it.
"""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Self
from urllib.parse import urlsplit

from laketier_conformance.stores.wsgi import HOST, Connection, Sent, Server

SILENCE_SECONDS = 1.5


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

    def fits(self, sent: Sent) -> bool:
        """Whether a store may answer a request so."""
        return {
            Fault.REFUSED: sent.is_conditional,
            Fault.KEPT: sent.deletes_many,
            Fault.LATE: sent.method == "PUT",
        }.get(self, True)


_ANSWERS = {
    Fault.FAILED: (500, "InternalError", "We encountered an internal error. Please try again."),
    Fault.SLOW_DOWN: (503, "SlowDown", "Please reduce your request rate."),
    Fault.LOST: (500, "InternalError", "We encountered an internal error. Please try again."),
    Fault.REFUSED: (412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"),
    Fault.DENIED: (403, "AccessDenied", "Access Denied"),
}
_AFTER = (Fault.LOST, Fault.RESET, Fault.SILENCE)


Decide = Callable[[Sent], Fault | None]
"""In a thread of the proxy, before the request is handed on: for as long as it takes, the request waits."""


class Proxy:
    """Before the store at ``endpoint``. ``seen`` counts requests by `Sent.what`, ``faults`` what became of them.
    ``keeps``: that store closes no connection by itself."""

    def __init__(self, endpoint: str, *, keeps: bool = False) -> None:
        self._to = urlsplit(endpoint)
        self._keeps = keeps
        self._lock = threading.Lock()
        self._decide: Decide | None = None
        self._server = _Server(self)
        self.url = f"http://{HOST}:{self._server.port}"
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
            self.handed_on(store, sent, None)
        store.close()
        return len(late)

    def connect(self) -> http.client.HTTPConnection:
        """To the store."""
        kind = http.client.HTTPSConnection if self._to.scheme == "https" else http.client.HTTPConnection
        return kind(self._to.hostname or "", self._to.port, timeout=60)

    def handed_on(self, store: http.client.HTTPConnection, sent: Sent, page: int | None) -> bytes:
        """What the store answers."""
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
            if not self._keeps:
                # One that is kept, and that the store closed meanwhile, would look like a fault that nobody decided on.
                store.close()
            head = [f"HTTP/1.1 {answer.status} {answer.reason}"]
            length = answer.headers.get("Content-Length") if sent.method == "HEAD" else str(len(body))
            head += [f"{name}: {value}" for name, value in answer.headers.items() if name.lower() not in _OF_A_HOP]
        if length is not None and answer.status not in (204, 304):
            head.append(f"Content-Length: {length}")
        return "\r\n".join([*head, "", ""]).encode("latin-1") + body


class _Server(Server):
    patience = SILENCE_SECONDS + 1

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        super().__init__(_Passing)


class _Passing(Connection):
    server: _Server

    def handle(self) -> None:
        self._store = self.server.proxy.connect()
        try:
            super().handle()
        finally:
            self._store.close()

    def answered(self, sent: Sent) -> bytes | None:
        proxy = self.server.proxy
        fault = proxy.decided(sent)
        if fault is Fault.LATE:
            proxy.keep(sent)
        if fault in (Fault.CUT, Fault.LATE):
            return None
        is_done = fault is None or fault in _AFTER
        answer = proxy.handed_on(self._store, sent, proxy.page) if is_done else b""
        if fault is Fault.SILENCE:
            time.sleep(SILENCE_SECONDS)
        if fault in (Fault.RESET, Fault.SILENCE):
            return None
        return answer if fault is None else _refusal(fault, sent)


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
