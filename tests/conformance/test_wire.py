"""A process's connections go through the suite, which knows requests and answers apart, and lets one meet a fault."""

from __future__ import annotations

import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from laketier_conformance.interposed import Effect, Supervisor, why_not
from laketier_conformance.interposed.seccomp import Notification
from laketier_conformance.interposed.supervisor import DONE
from laketier_conformance.interposed.wire import BEFORE, CUT, HOWS, LATE, LOST, UNAVAILABLE, Wire

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"connections can't be seen here: {why_not()}")

ASKS = """
import sys
from laketier_conformance.interposed.supervisor import be_supervised
be_supervised(sys.argv[1], "connections")
import http.client
there = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), timeout=60)
for name in ("first", "second", "third"):
    try:
        there.request("PUT", f"/{name}", name * 9)
        answer = there.getresponse()
        print(answer.status, answer.read().decode(), end=" ")
    except (OSError, http.client.HTTPException) as error:
        print(type(error).__name__, end=" ")
        there.close()
"""


@contextmanager
def upper() -> Iterator[tuple[int, list[str]]]:
    """A server that answers what it was put in upper case, and what was put there."""
    got: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.upper())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], got
        finally:
            server.shutdown()
            thread.join()


def asked(wire: Wire, code: str, port: int | str) -> str:
    """What a process prints that asks over this wire."""

    def connect(notification: Notification) -> Effect | None:
        error = wire.redirect(notification)
        return None if error is None else Effect("connect", ("",), error)

    with (
        tempfile.TemporaryDirectory() as short,
        Supervisor(lambda effect: effect.received or DONE, Path(short, "s"), connect) as by,
    ):
        command = [sys.executable, "-c", code, str(by.path), str(port)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wire.close()
    assert done.returncode == 0, done.stderr
    return done.stdout


SAID = {name: f"200 {name.upper() * 9}" for name in ("first", "second", "third")}
BROKEN = {
    BEFORE: "ConnectionResetError",
    LOST: "ConnectionResetError",
    CUT: "ConnectionResetError",
    LATE: SAID["second"],
    UNAVAILABLE: '503 {"error": {"message": "try again later", "type": "ServiceUnavailable", "code": 503}}',
}


@pytest.mark.parametrize("how", HOWS)
def test_a_request_meets_a_fault(how: str) -> None:
    """The second of three. It got there but for one fault."""
    with upper() as (port, got):
        wire = Wire((1, how))
        said = asked(wire, ASKS, port)
        assert got == ["/first", *(["/second"] if how != BEFORE else []), "/third"]
    assert said == f"{SAID['first']} {BROKEN[how]} {SAID['third']} "
    assert wire.met
    assert wire.requests == [f"PUT /{name} of tcp 127.0.0.1:{port}" for name in ("first", "second", "third")]


def test_what_is_done_to_the_server_meanwhile() -> None:
    """Before the connection is reset, and once. An error of it is for who asked: this thread has nobody to tell."""
    done: list[str] = []

    def fails() -> None:
        done.append("crash")
        raise OSError("no such server")

    for how in (BEFORE, LOST):
        with upper() as (port, _):
            wire = Wire((1, how), fails)
            said = asked(wire, ASKS, port)
        assert said == f"{SAID['first']} ConnectionResetError {SAID['third']} "
        assert str(wire.failed) == "no such server"
    assert done == ["crash", "crash"]


OVER_UNIX = """
import sys
from laketier_conformance.interposed.supervisor import be_supervised
be_supervised(sys.argv[1], "connections")
import os, socket
os.chdir(os.path.dirname(sys.argv[2]))
for name in (os.path.basename(sys.argv[2]), sys.argv[2], "\\0" + sys.argv[2]):
    there = socket.socket(socket.AF_UNIX)
    try:
        there.connect(name)
        there.sendall(b"word")
        print(there.recv(9).decode(), end=" ")
    except OSError as error:
        print(type(error).__name__, end=" ")
    there.close()
"""


def test_a_socket_of_unix() -> None:
    """By a name that is relative to a folder, a whole one, and one that is in no file system. There a connection that
    is reset just ends."""
    with tempfile.TemporaryDirectory() as short, ExitStack() as servers:
        path = f"{short}/here"
        for name in (path, f"\0{path}"):
            servers.enter_context(_words(name))
        wire = Wire((1, LOST))
        said = asked(wire, OVER_UNIX, path)
    assert said == "WORD  WORD "
    assert wire.requests == [f"to unix {path}", f"to unix {path}", f"to unix @{path}"]
    assert wire.met


@contextmanager
def _words(name: str) -> Iterator[None]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(self.request.recv(9).upper())

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    with Server(name, Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_a_503_of_a_peer_that_speaks_tls_is_told() -> None:
    """No other answer can be put in the place of its own, as nobody but it has the keys."""
    code = OVER_UNIX.partition("import os")[0] + (
        "import socket\n"
        "there = socket.create_connection(('127.0.0.1', int(sys.argv[2])))\n"
        "there.sendall(bytes([0x16, 3, 1, 0, 5]))\n"
        "there.close()\n"
    )
    with upper() as (port, _):
        wire = Wire((0, UNAVAILABLE))
        asked(wire, code, port)
    assert [*wire.unseen] == [
        f"503 of tcp 127.0.0.1:{port}, which speaks TLS: no answer can be put in the place of its own"
    ]


def test_a_server_that_is_not_there() -> None:
    wire = Wire()
    said = asked(wire, ASKS, 9)
    assert said == "ConnectionRefusedError " * 3
    assert wire.requests == []


def test_a_connection_that_does_not_block() -> None:
    """As most libraries of databases make theirs."""
    code = ASKS.partition("import http")[0] + (
        "import asyncio\n"
        "async def ask():\n"
        "    reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[2]))\n"
        "    writer.write(b'PUT /a HTTP/1.1\\r\\nContent-Length: 1\\r\\n\\r\\nx')\n"
        "    print((await reader.readline()).decode().strip())\n"
        "    writer.close()\n"
        "asyncio.run(ask())\n"
    )
    with upper() as (port, got):
        assert asked(Wire(), code, port) == "HTTP/1.1 200 OK\n"
        assert got == ["/a"]
