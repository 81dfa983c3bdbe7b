"""What a file system does beside success and failure: a part of a write, and an operation done twice."""

from __future__ import annotations

import os
from contextlib import suppress

from laketier_conformance.interposed.calls import by_number
from laketier_conformance.interposed.effects import Effect, descriptor_of
from laketier_conformance.interposed.memory import written
from laketier_conformance.interposed.seccomp import Notification
from laketier_conformance.interposed.sockets import taken

HALVED = ("write", "pwrite64", "writev")
TWICE = ("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat")


def write_half(notification: Notification) -> int | None:
    """Write the first half of what a call would. How many bytes that were; None where it has no half."""
    with suppress(OSError):
        data = written(notification)
        half = (data or b"")[: len(data or b"") // 2]
        if not half:
            return None
        ours = taken(notification.pid, descriptor_of(notification))
        try:
            if by_number()[notification.number].name == "pwrite64":
                return os.pwrite(ours, half, notification.arguments[3])
            return os.write(ours, half)
        finally:
            os.close(ours)
    return None


def do_before(effect: Effect) -> None:
    """Do what a call is about to do, so that it finds itself done: a mounted file system sends a request again whose
    answer was lost."""
    call = effect.call
    with suppress(OSError):
        if call == "renameat2" and os.path.lexists(effect.on[1]):
            return  # its flags may say that it must not replace
        if call.startswith("rename"):
            os.rename(*effect.on)
        elif call.startswith("link"):
            os.link(*effect.on)
        elif call.startswith("mkdir"):
            os.mkdir(effect.on[0])
        elif os.path.isdir(effect.on[0]) and not os.path.islink(effect.on[0]):
            os.rmdir(effect.on[0])
        else:
            os.unlink(effect.on[0])
