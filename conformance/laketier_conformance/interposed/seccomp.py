"""The filter, and the descriptor by which the kernel asks what to do: seccomp(2) and seccomp_unotify(2), by ctypes."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import platform
import struct
import sys
from dataclasses import dataclass

from laketier_conformance.interposed.calls import AUDIT_ARCH, EQUAL, SECCOMP, SEES, by_number, numbered

_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER = 1
_GET_ACTION_AVAIL = 2
_TSYNC, _NEW_LISTENER, _TSYNC_ESRCH = 1 << 0, 1 << 3, 1 << 4
_ALLOW, _USER_NOTIF = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_LOAD, _RETURN = 0x20, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


@dataclass(frozen=True)
class Notification:
    """A call that waits for an answer. ``pid`` is that of its thread."""

    id: int
    pid: int
    number: int
    arguments: tuple[int, ...]


def unsupported() -> str | None:
    """The reason for which the kernel does not tell of calls, or None."""
    if sys.platform != "linux":
        return f"{sys.platform} has no seccomp"
    if not by_number():
        return f"the system calls of {platform.machine()} are not known to the suite"
    if sys.byteorder != "little" or struct.calcsize("P") != 8:
        return "only 64-bit little-endian machines are known to the suite"
    action = ctypes.c_uint32(_USER_NOTIF)
    if _seccomp(_GET_ACTION_AVAIL, 0, ctypes.byref(action)) != 0:
        return f"the kernel {platform.release()} sends no notifications of seccomp, or a container forbids them"
    return None


def install(free: int, sees: str) -> int:
    """From now on, each call of this process that may have an effect waits, or what else `SEES` has. The descriptor to
    answer by, which someone else must hold before the next one. Messages sent over the descriptor ``free`` do not wait.

    Raises ``OSError`` where it is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    code = _filter(free, sees)
    buffer = ctypes.create_string_buffer(code)
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    listener = _seccomp(_SET_MODE_FILTER, _TSYNC | _NEW_LISTENER | _TSYNC_ESRCH, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp(SECCOMP_SET_MODE_FILTER)")
    return listener


def receive(listener: int) -> Notification | None:
    """The next call that waits. None if its process died meanwhile."""
    buffer = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    notified, pid, _, number, _, _, *arguments = _NOTIFICATION.unpack(buffer)
    return Notification(notified, pid, number, tuple(arguments))


def answer(listener: int, notification: Notification, error: int = 0, value: int | None = None) -> None:
    """Let it happen, or fail with an errno. ``value``: what it returns in place of happening."""
    happens = not error and value is None
    document = struct.pack("=QqiI", notification.id, value or 0, -error, _CONTINUE if happens else 0)
    try:
        fcntl.ioctl(listener, _SEND, bytearray(document))
    except OSError as failed:
        if failed.errno != errno.ENOENT:  # it died, or a signal came first and it asks again
            raise


def _filter(free: int, sees: str) -> bytes:
    """A program of BPF. Jumps are relative, and the last two instructions are its two answers."""
    code: list[tuple[int, int, int, int]] = []
    machine = platform.machine()
    body: list[list[tuple[int, str, str, int]]] = [[(_LOAD, "", "", _ARCH), (EQUAL, "", "allow", AUDIT_ARCH[machine])]]
    for number, call in numbered(SEES[sees]).items():
        test = [(_LOAD, "", "", _ARGUMENTS), (EQUAL, "allow", "notify", free)] if call.name == "sendmsg" else []
        for at, (argument, how, *values) in enumerate(call.tests, start=1):
            true = "notify" if at == len(call.tests) else ""
            test += [(_LOAD, "", "", _ARGUMENTS + 8 * argument)]
            test += [(how, true, "", value) for value in values[:-1]] + [(how, true, "allow", values[-1])]
        head = (EQUAL, "" if test else "notify", f"+{len(test)}", number)
        body.append([(_LOAD, "", "", _NUMBER), head, *test])
    lines = [line for block in body for line in block]
    for at, (operation, true, false, value) in enumerate(lines):
        left = len(lines) - at - 1
        targets = {"": 0, "allow": left, "notify": left + 1}
        if_true, if_false = (targets[name] if name in targets else int(name) for name in (true, false))
        code.append((operation, if_true, if_false, value))
    code += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _USER_NOTIF)]
    return b"".join(struct.pack("=HBBI", *line) for line in code)


def _seccomp(operation: int, flags: int, argument: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    done: int = libc.syscall(SECCOMP[platform.machine()], operation, flags, argument)
    return done
