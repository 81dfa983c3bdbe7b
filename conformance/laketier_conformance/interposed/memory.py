"""The memory of a process whose call waits."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from laketier_conformance.interposed.calls import by_number
from laketier_conformance.interposed.seccomp import Notification

_LONGEST_PATH = 4096
_LONGEST = 1 << 24
_PAIR = struct.Struct("=QQ")
_MESSAGE = struct.Struct("=QI4xQQQQ")


def text(pid: int, address: int) -> str:
    """A path."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        data = b""
        while b"\0" not in data and len(data) < _LONGEST_PATH:
            # Not past the end of a page: the next one may not be there.
            more = memory.read(4096 - (address + len(data)) % 4096)
            if not more:
                break
            data += more
    return os.fsdecode(data.partition(b"\0")[0])


def number(pid: int, address: int) -> int:
    """One of 64 bits."""
    return int.from_bytes(read(pid, address, 8), "little")


def written(notification: Notification) -> bytes | None:
    """What a call would write or send. None: it can't be told, or carries more than bytes."""
    name, pid, arguments = by_number()[notification.number].name, notification.pid, notification.arguments
    if name in ("write", "pwrite64") or (name == "sendto" and not arguments[4]):
        return _bytes(pid, [(arguments[1], arguments[2])])
    if name == "writev":
        return _bytes(pid, _pairs(pid, arguments[1], arguments[2]))
    if name == "sendmsg":
        to, _, vector, length, _, control = _MESSAGE.unpack(read(pid, arguments[1], _MESSAGE.size))
        return None if to or control else _bytes(pid, _pairs(pid, vector, length))
    return None


def signed(value: int) -> int:
    """An argument as C's int."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _pairs(pid: int, address: int, count: int) -> list[tuple[int, int]]:
    if count > 1024:
        return [(0, _LONGEST)]
    return [(start, length) for start, length in _PAIR.iter_unpack(read(pid, address, _PAIR.size * count))]


def _bytes(pid: int, pairs: list[tuple[int, int]]) -> bytes | None:
    if sum(length for _, length in pairs) > _LONGEST:
        return None
    return b"".join(_parts(pid, pairs))


def _parts(pid: int, pairs: list[tuple[int, int]]) -> Iterator[bytes]:
    for address, length in pairs:
        yield read(pid, address, length)


def read(pid: int, address: int, length: int) -> bytes:
    """So many bytes. Raises ``OSError`` where they are not there."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        data = b""
        while len(data) < length:
            more = os.pread(memory.fileno(), length - len(data), address + len(data))
            if not more:
                raise OSError(f"{length} bytes at {address:#x} of process {pid} can't be read")
            data += more
    return data
