"""What a call that waits would do, told by the memory and the descriptors of its process."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from laketier_conformance.interposed.calls import FLAGS_IN_MEMORY, LOCKS, Call, by_number
from laketier_conformance.interposed.memory import number, signed, text
from laketier_conformance.interposed.seccomp import Notification
from laketier_conformance.interposed.sockets import borrowed, peer_of, received_by

_BYTECODE = "__pycache__"
UNKNOWN_PEER = "a socket whose peer the system does not tell"
_KINDS = {
    "syncs": ("fsync", "fdatasync", "sync"),
    "renames": ("rename",),
    "links": ("link", "symlink"),
    "removals": ("unlink", "rmdir"),
    "new files": ("open", "creat", "mkdir", "mknod"),
    "mapped to be written": ("mmap",),
    "rings": ("io_uring",),
    "locks": ("flock", "fcntl"),
}
_UNLOCKS = 8
_KINDS_OF_LOCKS = {0: "F_RDLCK", 1: "F_WRLCK", 2: "F_UNLCK"}
_SHARED = "/dev/shm/"
_NOWHERE = ("/dev/", "/proc/", "/sys/", "/memfd:")


@dataclass(frozen=True)
class Effect:
    """One call. ``on``: the files, absolute; of a send, who is at the other end. ``received``: of a send, how much came
    from there before it, and so the same for all parts of one request; -1 of a call on files. ``connection``: of a
    send, the number of its socket, as each request may have a connection of its own, on which nothing came before.
    ``through``: of a call on a descriptor, a path that leads to the same file as long as the call waits.
    ``unbuffered``: what it writes is durable without a sync."""

    call: str
    on: tuple[str, ...]
    received: int = -1
    connection: int = -1
    through: str = field(default="", compare=False)
    unbuffered: bool = field(default=False, compare=False)

    @property
    def is_lock(self) -> bool:
        """Whether it takes a lock of a file, or gives it back."""
        return self.call.startswith(LOCKS)

    @property
    def unlocks(self) -> bool:
        """Whether it gives a lock back."""
        return self.call.endswith(("F_UNLCK)", "LOCK_UN)"))

    @property
    def is_send(self) -> bool:
        """Whether it leaves through a socket."""
        return self.received >= 0

    def below(self, folder: str) -> str:
        """As people read it: paths relative to a folder."""
        shown = (os.path.relpath(path, folder) if path.startswith(f"{folder}/") else path for path in self.on)
        return f"{self.call} {' -> '.join(shown)}"


def kind_of(effect: Effect) -> str:
    """For counts."""
    if effect.is_send:
        return "sends"
    call = effect.call
    return next((kind for kind, calls in _KINDS.items() if call.startswith(calls)), "writes")


def is_nowhere(path: str) -> bool:
    """Devices, what the kernel tells, and memory that processes share. A folder in it is one like any other."""
    return path.startswith(_NOWHERE) and not (path.startswith("/dev/shm/") and path.count("/") > 3)


def is_shared(path: str) -> bool:
    """Memory that processes share by a name."""
    return is_nowhere(path) and path.startswith(_SHARED)


def effect_of(notification: Notification) -> Effect | None:
    """None: it changes no file and sends nothing; or the process is gone."""
    call = by_number()[notification.number]
    with suppress(OSError, UnicodeDecodeError):
        if call.descriptor is not None and stat.S_ISSOCK(os.stat(_descriptor(call, notification)).st_mode):
            return _send(call, notification)
        on = tuple(_files(call, notification))
        # Of several paths the last one is what changes: a file without a name is linked from below /proc.
        if not on or (is_nowhere(on[-1]) and not is_shared(on[-1])) or _BYTECODE in on[-1]:
            return None
        if call.flags is not None and not _opening_has_an_effect(_flags(call, call.flags, notification), on[0]):
            return None
        through = "" if call.descriptor is None else _descriptor(call, notification)
        if call.name in LOCKS:
            return Effect(f"{call.name}({_kind_of_lock(call, notification)})", on, through=through)
        return Effect(call.name, on, through=through, unbuffered=bool(through) and _is_unbuffered(through))
    return None


def look_of(notification: Notification) -> Effect | None:
    """A look at a file, as an effect of none. None: it looks at no file, or makes one; or the process is gone."""
    call = by_number()[notification.number]
    with suppress(OSError, UnicodeDecodeError):
        on = tuple(_files(call, notification))
        flags = 0 if call.flags is None else _flags(call, call.flags, notification)
        if on and not _opening_has_an_effect(flags, on[0]):
            return Effect(call.name, on)
    return None


def change_of(notification: Notification) -> Effect | None:
    """A call that a file system refuses which can only be read: an effect on files, or a file that is opened to be
    written. None: it may go on; or the process is gone."""
    call = by_number()[notification.number]
    with suppress(OSError, UnicodeDecodeError):
        if call.flags is not None and _flags(call, call.flags, notification) & (os.O_WRONLY | os.O_RDWR):
            return Effect(call.name, tuple(_files(call, notification)))
    effect = effect_of(notification)
    return None if effect is None or effect.is_send or effect.is_lock else effect


def _send(call: Call, notification: Notification) -> Effect | None:
    try:
        with borrowed(notification.pid, descriptor_of(notification)) as theirs:
            peer = peer_of(theirs)
            if peer is None:
                return None
            return Effect(call.name, (peer,), received_by(theirs), os.fstat(theirs.fileno()).st_ino)
    except PermissionError:
        return Effect(call.name, (UNKNOWN_PEER,), notification.id)


def descriptor_of(notification: Notification) -> int:
    """The number of the descriptor that a call is on."""
    call = by_number()[notification.number]
    return -1 if call.descriptor is None else signed(notification.arguments[call.descriptor])


def _descriptor(call: Call, notification: Notification) -> str:
    assert call.descriptor is not None
    return f"/proc/{notification.pid}/fd/{signed(notification.arguments[call.descriptor])}"


def _kind_of_lock(call: Call, notification: Notification) -> str:
    how = signed(notification.arguments[1])
    if call.name == "flock":
        kinds = {"LOCK_SH": 1, "LOCK_EX": 2, "LOCK_NB": 4, "LOCK_UN": _UNLOCKS}
        return " | ".join(name for name, bit in kinds.items() if how & bit)
    waits = {6: "F_SETLK", 7: "F_SETLKW", 37: "F_OFD_SETLK", 38: "F_OFD_SETLKW"}[how]
    return f"{waits}, {_KINDS_OF_LOCKS.get(number(notification.pid, notification.arguments[2]) & 0xFFFF, 'a lock')}"


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
        file = os.readlink(descriptor)
        # Of pipes only one with a name: whoever reads it may be no child of the process.
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (stat.S_ISFIFO(mode) and file.startswith("/")):
            yield file
        return
    if not call.paths:
        yield "/"
    for folder, path in call.paths:
        at = -100 if folder is None else signed(arguments[folder])
        base = os.readlink(f"/proc/{pid}/cwd" if at == -100 else f"/proc/{pid}/fd/{at}")
        yield os.path.normpath(os.path.join(base, text(pid, arguments[path])))


def _flags(call: Call, at: int, notification: Notification) -> int:
    given = notification.arguments[at]
    return number(notification.pid, given) if call.name in FLAGS_IN_MEMORY else given


def _opening_has_an_effect(flags: int, path: str) -> bool:
    return bool(flags & os.O_TRUNC) or (bool(flags & os.O_CREAT) and not os.path.lexists(path))
