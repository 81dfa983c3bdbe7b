"""Sockets of a process whose call waits: borrowed by pidfd_getfd(2), so that both ends can be seen and cut off."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from laketier_conformance.interposed.memory import written
from laketier_conformance.interposed.seccomp import Notification

_PIDFD_GETFD = 438
_DNS = 53
_BYTES_RECEIVED = slice(128, 136)
"""In struct tcp_info, since Linux 4.1."""
_ANSWER_SECONDS = 0.5
"""For so long an answer is waited for. A part of a request has none."""
_LOOK_SECONDS, _LOOKS = 0.1, 100
"""And longer while another thread of this process works, as a server of a harness may be one: on a slow machine."""
_WORKS_SECONDS = 0.02
"""Of a processor, in that time. A thread that only polls takes less."""


def taken(pid: int, descriptor: int) -> int:
    """A descriptor of another process, or of a thread of one: of the same open file, and not a copy. To be closed.
    Raises ``OSError``."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
        process = next(int(line.split()[1]) for line in lines if line.startswith("Tgid:"))
    handle = os.pidfd_open(process)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        ours = libc.syscall(_PIDFD_GETFD, handle, descriptor, 0)
        if ours < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
    finally:
        os.close(handle)
    return int(ours)


@contextmanager
def borrowed(pid: int, descriptor: int) -> Iterator[socket.socket]:
    """A socket of another process. Raises ``OSError``."""
    ours = taken(pid, descriptor)
    # Never set to block or not, nor given a time-out: that would be done to theirs.
    with socket.socket(fileno=ours) as theirs:
        yield theirs


def peer_of(theirs: socket.socket) -> str | None:
    """Who is at the other end. None where nothing leaves the process: a pair of sockets, the kernel's own, a look-up of
    a name."""
    kind = "udp" if theirs.type & 0xF == socket.SOCK_DGRAM else "tcp"
    try:
        address = theirs.getpeername()
    except OSError:
        address = None
    if theirs.family == socket.AF_UNIX and address is None:
        return "unix of no peer"
    if theirs.family == socket.AF_UNIX:
        name = os.fsdecode(address or b"").replace("\0", "@")
        return f"unix {name}" if name else None
    if theirs.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    if address is None:
        return f"{kind} of no peer"
    return None if (kind, address[1]) == ("udp", _DNS) else f"{kind} {address[0]}:{address[1]}"


def received_by(theirs: socket.socket) -> int:
    """How many bytes came from the other end so far: a send is the first of a request if more came since the one
    before. Another number each time where the kernel doesn't count."""
    with suppress(OSError):
        info = theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if theirs.family != socket.AF_UNIX and len(info) >= _BYTES_RECEIVED.stop:
            return int.from_bytes(info[_BYTES_RECEIVED], "little")
    return time.monotonic_ns()


def reset(notification: Notification, descriptor: int) -> None:
    """End a connection before a send."""
    with suppress(OSError), borrowed(notification.pid, descriptor) as theirs:
        theirs.shutdown(socket.SHUT_RDWR)


def lose_answer(notification: Notification, descriptor: int) -> tuple[int | None, bool]:
    """Send what a call would, wait for the answer, take it away and end the connection. How many bytes were sent (None:
    none, let the call do it), and whether there was an answer."""
    with suppress(OSError), borrowed(notification.pid, descriptor) as theirs:
        data = written(notification)
        if data is None:
            return None, False
        sent = 0
        try:
            while sent < len(data):
                with suppress(BlockingIOError):
                    sent += theirs.send(data[sent:], socket.MSG_DONTWAIT)
                    continue
                if not _comes(theirs, select.POLLOUT):
                    return sent or None, False
            answered = _comes(theirs, select.POLLIN) and _drained(theirs)
        except OSError:
            return sent or None, False
        if answered:
            theirs.shutdown(socket.SHUT_RDWR)
            _drained(theirs)
        return sent, answered
    return None, False


def _comes(theirs: socket.socket, event: int) -> bool:
    poll = select.poll()
    poll.register(theirs, event)
    worked = _others_worked()
    if poll.poll(_ANSWER_SECONDS * 1000):
        return True
    for _ in range(_LOOKS):
        before, worked = worked, _others_worked()
        if worked - before < _WORKS_SECONDS and not _others_want_a_processor():
            return False
        if poll.poll(_LOOK_SECONDS * 1000):
            return True
    return False


def _others_worked() -> float:
    """What other threads of this process have used of processors, in seconds."""
    return time.process_time() - time.thread_time()


def _others_want_a_processor() -> bool:
    """Whether another thread of this process runs, would if it could, or waits for a disk."""
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):
            stat = Path("/proc/self/task", thread, "stat").read_text("utf-8", "replace")
            if int(thread) != threading.get_native_id() and stat.rpartition(")")[2].split()[0] in ("R", "D"):
                return True
    return False


def _drained(theirs: socket.socket) -> bool:
    """Take what has come. Whether there was something."""
    some = False
    with suppress(BlockingIOError, ConnectionError):
        while theirs.recv(1 << 16, socket.MSG_DONTWAIT):
            some = True
    return some
