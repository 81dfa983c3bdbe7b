"""What a call that waits would do, told by the memory and the descriptors of its process."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from laketier_conformance.interposed.calls import Call, by_number
from laketier_conformance.interposed.seccomp import Notification

_LONGEST_PATH = 4096
_BYTECODE = "__pycache__"
_KINDS = {
    "syncs": ("fsync", "fdatasync", "sync"),
    "renames": ("rename",),
    "links": ("link", "symlink"),
    "removals": ("unlink", "rmdir"),
    "new files": ("open", "creat", "mkdir"),
}
_NOWHERE = ("/dev/", "/proc/", "/sys/", "/memfd:")


@dataclass(frozen=True)
class Effect:
    """One call. ``on``: the files, absolute; of a call on a socket, ``("socket",)``. ``through``: of a call on a
    descriptor, a path that leads to the same file as long as the call waits. ``unbuffered``: what it writes is durable
    without a sync."""

    call: str
    on: tuple[str, ...]
    through: str = field(default="", compare=False)
    unbuffered: bool = field(default=False, compare=False)

    def below(self, folder: str) -> str:
        """As people read it: paths relative to a folder."""
        shown = (os.path.relpath(path, folder) if path.startswith(f"{folder}/") else path for path in self.on)
        return f"{self.call} {' -> '.join(shown)}"


def kind_of(effect: Effect) -> str:
    """For counts."""
    if effect.on == ("socket",):
        return "sends"
    call = effect.call
    return next((kind for kind, calls in _KINDS.items() if call.startswith(calls)), "writes")


def effect_of(notification: Notification) -> Effect | None:
    """None: it changes no file and sends nothing; or the process is gone."""
    call = by_number()[notification.number]
    with suppress(OSError, UnicodeDecodeError):
        on = tuple(_files(call, notification))
        if not on or any(path.startswith(_NOWHERE) or _BYTECODE in path for path in on):
            return None
        if call.flags is not None and not _opening_has_an_effect(notification.arguments[call.flags], on[0]):
            return None
        through = "" if call.descriptor is None else _descriptor(call, notification)
        return Effect(call.name, on, through, bool(through) and _is_unbuffered(through))
    return None


def _descriptor(call: Call, notification: Notification) -> str:
    assert call.descriptor is not None
    return f"/proc/{notification.pid}/fd/{_signed(notification.arguments[call.descriptor])}"


def _is_unbuffered(descriptor: str) -> bool:
    """Opened with O_SYNC or O_DSYNC. The kernel tells the flags in octal."""
    with open(descriptor.replace("/fd/", "/fdinfo/"), encoding="ascii") as lines:
        flags = next((line.split()[1] for line in lines if line.startswith("flags:")), "0")
    return bool(int(flags, 8) & os.O_DSYNC)


def _files(call: Call, notification: Notification) -> Iterator[str]:
    pid, arguments = notification.pid, notification.arguments
    if call.descriptor is not None:
        descriptor = _descriptor(call, notification)
        mode = os.stat(descriptor).st_mode
        if stat.S_ISSOCK(mode):
            yield "socket"
        elif stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            yield os.readlink(descriptor)
        return
    if not call.paths:
        yield "/"
    for folder, path in call.paths:
        at = -100 if folder is None else _signed(arguments[folder])
        base = os.readlink(f"/proc/{pid}/cwd" if at == -100 else f"/proc/{pid}/fd/{at}")
        yield os.path.normpath(os.path.join(base, _text(pid, arguments[path])))


def _opening_has_an_effect(flags: int, path: str) -> bool:
    return bool(flags & os.O_TRUNC) or (bool(flags & os.O_CREAT) and not os.path.lexists(path))


def _text(pid: int, address: int) -> str:
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


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
