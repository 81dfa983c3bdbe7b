"""Requests as they come over a connection, and a server that hands them to a WSGI application.

werkzeug's own server closes each connection after one answer, waits for more of the request, and parses each
head as an e-mail: two thirds of the time of a request to moto.

The proxy of faults reads requests by the same code, to cut a connection before or after an effect, which no server of
applications lets it. Beside it waitress would only be one more part: 1.1 times the CPU of a put to moto.
"""

from __future__ import annotations

import io
import socketserver
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from socket import SHUT_RDWR, socket
from typing import Any
from urllib.parse import parse_qs, unquote, unquote_to_bytes, urlsplit

HOST = "127.0.0.1"
_HEAD_BYTES = 1 << 20

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


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


def next_sent(requests: io.BufferedIOBase, answers: io.BufferedIOBase) -> Sent | None:
    """The next request of a connection. None where there is none, or not a whole one."""
    head = _lines(requests)
    line = head[0].split() if head else []
    if head is None or len(line) != 3:
        return None
    headers: dict[str, str] = {}
    for header in head[1:]:
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    if headers.pop("expect", "").lower() == "100-continue":
        answers.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if headers.pop("transfer-encoding", "").lower() == "chunked":
        body = _chunks(requests)
        headers["content-length"] = "0" if body is None else str(len(body))
    else:
        length = int(headers.get("content-length", 0))
        body = requests.read(length)
        body = body if len(body) == length else None
    return None if body is None else Sent(line[0], line[1], headers, body)


def _lines(requests: io.BufferedIOBase) -> list[str] | None:
    """What comes before the next empty line. None where that does not come: half of a name is another object's."""
    lines: list[str] = []
    while (line := requests.readline(_HEAD_BYTES).decode("latin-1")).endswith("\n"):
        if not (text := line.rstrip("\r\n")):
            return lines
        lines.append(text)
    return None


def _chunks(requests: io.BufferedIOBase) -> bytes | None:
    """A body that comes in pieces. None where its end does not come."""
    pieces: list[bytes] = []
    while True:
        length = int(requests.readline(_HEAD_BYTES).partition(b";")[0].strip() or b"-1", 16)
        if length == 0:
            # Checksums may come after a body.
            return None if _lines(requests) is None else b"".join(pieces)
        piece = requests.read(max(length, 0))
        end = requests.readline(_HEAD_BYTES)
        if length < 0 or len(piece) < length or not end:
            return None
        pieces.append(piece)


class Server(socketserver.ThreadingTCPServer):
    """On a free port of this machine, with a thread for each connection. `server_close` ends the connections, too."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    patience = 1.0
    """So many seconds each connection has to end."""

    def __init__(self, connection: type[Connection]) -> None:
        self.live: dict[threading.Thread, socket] = {}
        super().__init__((HOST, 0), connection)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def server_close(self) -> None:
        super().server_close()
        for thread, connection in list(self.live.items()):
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)
            thread.join(self.patience)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients are killed here, and go away in the middle of a request."""


class Connection(socketserver.StreamRequestHandler):
    """One connection of a `Server`: `answered` gets each request in turn."""

    server: Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        self.server.live[threading.current_thread()] = self.connection
        try:
            while (sent := next_sent(self.rfile, self.wfile)) is not None:
                answer = self.answered(sent)
                if answer is None:
                    return
                self.wfile.write(answer)
                if sent.headers.get("connection", "").lower() == "close":
                    return
        finally:
            self.server.live.pop(threading.current_thread())
            with suppress(OSError):
                self.connection.shutdown(SHUT_RDWR)

    def answered(self, sent: Sent) -> bytes | None:
        """The whole answer to a request; None closes the connection."""
        raise NotImplementedError


class Serving(Server):
    """Hands all requests to an application."""

    def __init__(self, application: Application) -> None:
        self.application = application
        super().__init__(_Asks)


class _Asks(Connection):
    server: Serving

    def answered(self, sent: Sent) -> bytes | None:
        begun: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], error: Any = None) -> None:  # noqa: ARG001 - as WSGI has it
            begun[:] = [status, headers]

        try:
            parts = self.server.application(_environment(sent, self.server.port), start)
            try:
                body = b"".join(parts)
            finally:
                if (close := getattr(parts, "close", None)) is not None:
                    close()
            status, headers = begun
        except ConnectionError:
            return None
        except Exception:  # noqa: BLE001 - whatever the application does, its client is answered
            body, status, headers = b"", "500 INTERNAL SERVER ERROR", []
        head = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
        names = {name.lower() for name, _ in headers}
        if "date" not in names:
            head.append(f"Date: {formatdate(usegmt=True)}")
        has_none = sent.method == "HEAD" or status[:3] in ("204", "304")
        if not has_none and "content-length" not in names:
            head.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*head, "", ""]).encode("latin-1") + (b"" if has_none else body)


def _environment(sent: Sent, port: int) -> dict[str, Any]:
    parts = urlsplit(sent.target)
    told = {
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(sent.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "REQUEST_METHOD": sent.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(parts.path).decode("latin-1"),
        "QUERY_STRING": parts.query,
        "REQUEST_URI": sent.target,
        "RAW_URI": sent.target,
        "REMOTE_ADDR": HOST,
        "SERVER_NAME": HOST,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": "HTTP/1.1",
    }
    for name, value in sent.headers.items():
        key = name.upper().replace("-", "_")
        told[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    return told
