"""The way from a source to its system, which breaks where a test wants it to: a TCP proxy on this host."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

RESET, END, STALL = "reset", "end", "stall"
_AT_ONCE = 1 << 14


@dataclass
class _Break:
    """``left``: bytes of the system that are still handed on. ``times``: connections that break, None for all.
    ``lines``: none breaks in the midst of a line, as far as there are lines."""

    left: int
    how: str
    times: int | None
    lines: bool

    def within(self, data: bytes) -> int | None:
        """After how many of these bytes it breaks; None if it does not."""
        at = self.left if self.left < len(data) else None
        if at is not None and self.lines and not data[:at].endswith(b"\n"):
            at = data.find(b"\n", at) + 1 or None
        self.left = max(0, self.left - len(data)) if at is None else 0
        return at


class Way:
    """Hands on all bytes between its clients and one system. Driver: tasks of other processes come through it, too."""

    def __init__(self, to: tuple[str, int]) -> None:
        """``to``: the host and the port of the system."""
        self._to = to
        self._lock = threading.Lock()
        self._break: _Break | None = None
        self._over = threading.Event()
        self._open: list[socket.socket] = []
        self.handed = self.broken = 0
        """Bytes of the system that were handed on, and connections that were broken."""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._server.getsockname()[:2]
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def breaking(self, after: int, how: str, times: int | None, lines: bool = False) -> Iterator[None]:
        """Once so many bytes of the system were handed on, the connection breaks: `RESET`, or `END` as by a system that
        closes it, or `STALL`, after which nothing comes any more. So do the ``times`` - 1 next ones at once, and all
        for None. ``lines``: at the end of a line."""
        with self._lock:
            self._break, self.broken = _Break(after, how, times, lines), 0
            self._over.clear()
        try:
            yield
        finally:
            with self._lock:
                self._break = None
            self._over.set()

    def close(self) -> None:
        """End it, and all connections."""
        self._over.set()
        for each in (self._server, *self._open):
            with suppress(OSError):
                each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            system = socket.create_connection(self._to)
        except OSError:
            client.close()
            return
        self._open += [client, system]
        threading.Thread(target=_hand_on, args=(client, system), daemon=True).start()
        with suppress(OSError):
            while data := system.recv(_AT_ONCE):
                how, some = self._allowed(data)
                client.sendall(data[:some])
                if how is not None:
                    self._break_off(client, how)
                    break
        for each in (client, system):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _allowed(self, data: bytes) -> tuple[str | None, int]:
        """How the connection breaks now, if it does, and how many bytes are handed on before that."""
        with self._lock:
            now = self._break
            at = None if now is None or now.times == 0 else now.within(data)
            self.handed += len(data) if at is None else at
            if now is None or at is None:
                return None, len(data)
            now.times = None if now.times is None else now.times - 1
            self.broken += 1
            return now.how, at

    def _break_off(self, client: socket.socket, how: str) -> None:
        if how == STALL:
            self._over.wait()
        elif how == RESET:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.shutdown(socket.SHUT_RD)  # or the other thread's recv would keep it from being reset
            client.close()


def _hand_on(client: socket.socket, system: socket.socket) -> None:
    with suppress(OSError):
        while data := client.recv(_AT_ONCE):
            system.sendall(data)
        system.shutdown(socket.SHUT_WR)
