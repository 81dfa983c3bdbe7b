"""What stands between a process and the servers that it asks: each of its connections over TCP, and each to a socket of
Unix with a name, goes through here.

A request is what leaves before anything comes back, in whatever parts. One of them can meet a fault. Nothing is known
of what is said but whether an answer is HTTP in clear.
"""

from __future__ import annotations

import errno
import os
import secrets
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from laketier_conformance.interposed.memory import read
from laketier_conformance.interposed.seccomp import Notification
from laketier_conformance.interposed.sockets import borrowed

BEFORE, LOST, CUT, LATE, UNAVAILABLE = "before", "lost", "cut", "late", "503"
HOWS = (BEFORE, LOST, CUT, LATE, UNAVAILABLE)
"""The connection is reset before a request gets there; or it got there, and then the connection is reset before its
answer or in the middle of it, the answer comes late, or it is 503 in the place of whatever it was."""
LATE_SECONDS = 2.0
_DIAL_SECONDS = 60.0
_QUIET_SECONDS = 0.05
_SAID = b'{"error": {"message": "try again later", "type": "ServiceUnavailable", "code": 503}}'
_HTTP_503 = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_SAID), _SAID)
)


Peer = tuple[str, int] | bytes
_LONGEST_ADDRESS = 110
_TLS = b"\x16\x03"
"""A handshake begins so, and what is sent before there is a session is one."""
_OF_THE_SYSTEM = (b"/nscd/", b"/run/systemd/", b"/run/dbus/", b"pymp-", b"\0listener-", b"/dev/log")


@dataclass
class Wire:
    """``fault``: which request meets it, of which the first is 0, and what it is. ``meanwhile``: done to the server as
    well, before the connection is reset. ``requests``: each by its peer and, of HTTP in clear, its first line. ``met``:
    whether it could be done."""

    fault: tuple[int, str] = (-1, "")
    meanwhile: Callable[[], object] | None = None
    requests: list[str] = field(default_factory=list)
    met: bool = False
    failed: Exception | None = None
    """What ``meanwhile`` raised."""
    unseen: dict[str, None] = field(default_factory=dict)
    """Sentences on faults that could not be made."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _talks: list[_Talk] = field(default_factory=list)

    def redirect(self, notification: Notification) -> int | None:
        """Do what a call of connect would, but to here. Its errno, or 0; None for what is no connection to a server."""
        _, address, length = notification.arguments[:3]
        peer = _peer(read(notification.pid, address, min(length, _LONGEST_ADDRESS)), notification.pid)
        if peer is None:
            return None
        with borrowed(notification.pid, notification.arguments[0]) as theirs:
            if theirs.type & 0xF != socket.SOCK_STREAM:
                return None
            try:
                server = _dialled(peer)
            except OSError as error:
                return error.errno or errno.ETIMEDOUT
            server.settimeout(None)
            with _listener(theirs.family) as listener:
                with suppress(BlockingIOError):
                    found = listener.getsockname()
                    theirs.connect(found if isinstance(found, bytes | str) else found[:2])
                client, _ = listener.accept()
        talk = _Talk(self, client, server, _told(peer))
        self._talks.append(talk)
        talk.start()
        return 0

    def speaks(self, peer: str, data: bytes) -> None:
        """The first bytes of a request that was to be answered 503. In clear it may be HTTP, or what no 503 is of."""
        if data[:2] == _TLS:
            self.unseen[f"503 of {peer}, which speaks TLS: no answer can be put in the place of its own"] = None

    def close(self) -> None:
        """End what is left."""
        for talk in self._talks:
            talk.end()

    def begun(self, peer: str, data: bytes) -> str:
        """One more request. The fault that it meets."""
        line = data.split(b"\r\n", 1)[0]
        told = line.removesuffix(b" HTTP/1.1").decode("ascii", "replace") if line.endswith(b" HTTP/1.1") else ""
        with self._lock:
            self.requests.append(f"{told} of {peer}" if told else f"to {peer}")
            at, how = self.fault
            return how if len(self.requests) - 1 == at else ""


class _Talk(threading.Thread):
    """One connection, in both directions."""

    def __init__(self, wire: Wire, client: socket.socket, server: socket.socket, peer: str) -> None:
        super().__init__(name="wire", daemon=True)
        self._wire, self._client, self._server, self._peer = wire, client, server, peer
        self._answered, self._how = True, ""
        self._ended, self._end = os.pipe()

    def run(self) -> None:
        with self._client, self._server, suppress(OSError), selectors.DefaultSelector() as selector:
            for side in (self._client, self._server, self._ended):
                selector.register(side, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._ended:
                        return
                    asks = key.fileobj is self._client
                    data = (self._client if asks else self._server).recv(1 << 16)
                    if not data and asks:  # it may still read
                        selector.unregister(self._client)
                        self._server.shutdown(socket.SHUT_WR)
                        continue
                    if not data:
                        return
                    if not (self._asked(data) if asks else self._says(data)):
                        return

    def end(self) -> None:
        os.write(self._end, b".")
        self.join()
        os.close(self._ended)
        os.close(self._end)

    def _asked(self, data: bytes) -> bool:
        if self._answered:
            self._answered, self._how = False, self._wire.begun(self._peer, data)
            if self._how == UNAVAILABLE:
                self._wire.speaks(self._peer, data)
        if self._how == BEFORE:
            self._wire.met = True
            return self._reset()
        self._server.sendall(data)
        return True

    def _says(self, data: bytes) -> bool:
        self._answered = True
        how, self._how = self._how, ""
        if not how or (how == UNAVAILABLE and not data.startswith(b"HTTP/1.")):
            self._client.sendall(data)
            return True
        self._wire.met = True
        if how == LATE:
            if _gives_up(self._client):
                return False
            self._client.sendall(data)
            return True
        while _comes(self._server, _QUIET_SECONDS) and self._server.recv(1 << 16):
            pass
        if how == UNAVAILABLE:
            self._client.sendall(_HTTP_503)
            return False
        if how == CUT:
            self._client.sendall(data[: len(data) // 2])
            _comes(self._client, _QUIET_SECONDS)  # a reset takes back what was not read
        return self._reset()

    def _reset(self) -> bool:
        if self._wire.meanwhile is not None:
            try:
                self._wire.meanwhile()
            except Exception as error:  # noqa: BLE001 - who asked gets it: this thread has nobody to tell
                self._wire.failed = error
        self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


def _comes(side: socket.socket, seconds: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(side, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def _gives_up(client: socket.socket) -> bool:
    """Whether who asked ends the connection, or asks for something else over it."""
    return _comes(client, LATE_SECONDS) and not client.recv(1, socket.MSG_PEEK)


def _peer(address: bytes, pid: int) -> Peer | None:
    """Of a socket of Unix the name. A process has some to its own others, over which descriptors are sent: these are
    let be, as are those of the system's services."""
    family = int.from_bytes(address[:2], "little")
    port = int.from_bytes(address[2:4], "big")
    if family == socket.AF_INET:
        return socket.inet_ntop(family, address[4:8]), port
    if family == socket.AF_INET6:
        return socket.inet_ntop(family, address[8:24]), port
    if family != socket.AF_UNIX or len(address) <= 2:
        return None
    name = address[2:]
    path = name if name[:1] == b"\0" else name.partition(b"\0")[0]
    if any(each in path for each in _OF_THE_SYSTEM):
        return None
    return path if path[:1] in (b"\0", b"/") else os.path.join(os.fsencode(os.readlink(f"/proc/{pid}/cwd")), path)


def _dialled(peer: Peer) -> socket.socket:
    if isinstance(peer, tuple):
        return socket.create_connection(peer, _DIAL_SECONDS)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(_DIAL_SECONDS)
        made.connect(peer)
    except OSError:
        made.close()
        raise
    return made


def _listener(family: int) -> socket.socket:
    if family != socket.AF_UNIX:
        return socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.bind(b"\0laketier-" + secrets.token_hex(8).encode())
    made.listen(1)
    return made


def _told(peer: Peer) -> str:
    if isinstance(peer, tuple):
        return f"tcp {peer[0]}:{peer[1]}"
    return f"unix {os.fsdecode(peer).replace(chr(0), '@')}"
