"""The server of the suite's own store, as clients meet it that keep a connection, send in pieces, or are killed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from laketier_conformance.stores.wsgi import Serving

SECONDS = 20
"""So long each wait may take that never ends where the server is wrong."""
NEXT = b"GET /next HTTP/1.1\r\n\r\n"


class Application:
    """Answers with what it was asked. ``seen`` are methods, paths and bodies."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bytes]] = []
        self.waits, self.goes_on = threading.Event(), threading.Event()
        self.closed = 0

    def __call__(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environment["PATH_INFO"].encode("latin-1").decode()
        body = b"" if path == "/unread" else environment["wsgi.input"].read()
        self.seen.append((environment["REQUEST_METHOD"], path, body))
        if path == "/wait":
            self.waits.set()
            self.goes_on.wait(SECONDS)
        if path == "/raise":
            raise RuntimeError("as a store with a bug does")
        start("200 OK", [("X-Path", environment["PATH_INFO"])])
        return Answer(self, path)


class Answer:
    """What an application gives its server, which closes it."""

    def __init__(self, application: Application, path: str) -> None:
        self._application, self._path = application, path

    def __iter__(self) -> Iterator[bytes]:
        yield b"all "
        if self._path == "/late":
            raise RuntimeError("once some of it was made")
        yield b"of it"

    def close(self) -> None:
        self._application.closed += 1


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def server(application: Application) -> Iterator[Serving]:
    server = Serving(application)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    application.goes_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


def connected(server: Serving) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)


def answers(server: Serving, sent: bytes, *, ends: bool = True) -> bytes:
    """All that a connection is answered, until the server closes it. ``ends``: nothing more is sent, and it knows."""
    with connected(server) as connection:
        connection.sendall(sent)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def chunked(*pieces: bytes) -> bytes:
    return b"PUT /lake/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(pieces)


WHOLE = {
    "by its length": b"PUT /lake/a HTTP/1.1\r\ncontent-LENGTH: 5\r\n\r\nab\r\nc",
    "in pieces": chunked(b"3\r\nab\r\r\n", b"2;signature=x\r\n\nc\r\n", b"0\r\n\r\n"),
    "in pieces, with a checksum after them": chunked(b"5\r\nab\r\nc\r\n", b"0\r\nx-amz-checksum-crc32: AA==\r\n\r\n"),
}


@pytest.mark.parametrize("how", WHOLE)
def test_a_body_ends_where_it_says(how: str, server: Serving, application: Application) -> None:
    """And the next request of the connection begins there."""
    told = answers(server, WHOLE[how] + NEXT)
    assert application.seen == [("PUT", "/lake/a", b"ab\r\nc"), ("GET", "/next", b"")]
    assert (told.count(b"HTTP/1.1 200 OK\r\n"), told.count(b"all of it")) == (2, 2)
    assert application.closed == 2


CUT = {
    "in its first line": b"DELETE /lake/half-of-a-na",
    "before the end of its first line": b"DELETE /lake/half-of-a-na HTTP/1.1",
    "between headers": b"PUT /lake/a HTTP/1.1\r\nHost: x\r\n",
    "in the header of its length": b"PUT /lake/a HTTP/1.1\r\nContent-Len",
    "in its body": b"PUT /lake/a HTTP/1.1\r\nContent-Length: 5\r\n\r\nab",
    "in a piece": chunked(b"5\r\nab"),
    "between pieces": chunked(b"2\r\nab\r\n"),
    "after its last piece": chunked(b"2\r\nab\r\n", b"0\r\n"),
    "in a checksum": chunked(b"2\r\nab\r\n", b"0\r\nx-amz-check"),
}


@pytest.mark.parametrize("where", CUT)
def test_a_request_that_is_cut_has_no_effect(where: str, server: Serving, application: Application) -> None:
    """A client that is killed while it sends: what came is a delete of another object, or a put of half of one."""
    assert answers(server, CUT[where]) == b""
    assert application.seen == []
    assert b"200 OK" in answers(server, NEXT)


def test_a_client_that_waits_for_leave_to_send_gets_it(server: Serving, application: Application) -> None:
    with connected(server) as connection:
        connection.sendall(b"PUT /lake/a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        leave = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert connection.recv(len(leave), socket.MSG_WAITALL) == leave
        connection.sendall(b"ab")
        assert connection.recv(15, socket.MSG_WAITALL) == b"HTTP/1.1 200 OK"
    assert application.seen == [("PUT", "/lake/a", b"ab")]


def test_a_head_is_answered_without_a_body(server: Serving) -> None:
    told = answers(server, b"HEAD /lake/a HTTP/1.1\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 200 OK\r\n")
    assert told.endswith(b"\r\n\r\n")
    assert b"all of it" not in told


@pytest.mark.parametrize("path", [b"/raise", b"/late"])
def test_an_application_that_raises_fails_one_request(path: bytes, server: Serving, application: Application) -> None:
    """Its client is told so, and goes on with the connection."""
    failed, _, next_one = answers(server, b"GET " + path + b" HTTP/1.1\r\n\r\n" + NEXT).partition(b"\r\n\r\n")
    assert failed.startswith(b"HTTP/1.1 500 ")
    assert failed.endswith(b"Content-Length: 0")
    assert next_one.startswith(b"HTTP/1.1 200 OK\r\n")
    assert application.closed == (2 if path == b"/late" else 1)


def test_a_body_that_nobody_reads_is_no_request(server: Serving, application: Application) -> None:
    told = answers(server, b"PUT /unread HTTP/1.1\r\nContent-Length: 22\r\n\r\n" + NEXT + NEXT)
    assert application.seen == [("PUT", "/unread", b""), ("GET", "/next", b"")]
    assert told.count(b"200 OK") == 2


def test_a_connection_ends_when_the_client_says_so(server: Serving) -> None:
    """Some clients read until its end."""
    told = answers(server, b"GET /lake/a HTTP/1.1\r\nConnection: Close\r\n\r\n", ends=False)
    assert told.endswith(b"all of it")


def test_a_path_is_told_as_wsgi_has_it(server: Serving, application: Application) -> None:
    told = answers(server, b"GET /lake/%C3%A9%20?prefix=%2F HTTP/1.1\r\n\r\n")
    assert application.seen == [("GET", "/lake/\u00e9 ", b"")]
    assert "X-Path: /lake/\u00e9 \r\n".encode() in told


def test_a_client_that_waits_keeps_no_other_from_its_answer(server: Serving, application: Application) -> None:
    """Nor one that goes away meanwhile."""
    with connected(server) as waiting:
        waiting.sendall(b"GET /wait HTTP/1.1\r\n\r\n")
        assert application.waits.wait(SECONDS)
        assert b"200 OK" in answers(server, NEXT)
    application.goes_on.set()
    assert b"200 OK" in answers(server, NEXT)


def test_open_connections_end_with_the_server(server: Serving, application: Application) -> None:
    with connected(server) as idle:
        idle.sendall(NEXT)
        assert idle.recv(15, socket.MSG_WAITALL) == b"HTTP/1.1 200 OK"
        server.patience = SECONDS
        server.shutdown()
        server.server_close()
        assert b"".join(iter(lambda: idle.recv(1 << 16), b"")).endswith(b"all of it")
    assert server.live == {}
