"""The system calls that have effects, and those that look at files: their numbers on each machine, and where their
arguments say on what."""

from __future__ import annotations

import mmap
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

X86_64, AARCH64 = "x86_64", "aarch64"
AUDIT_ARCH: Mapping[str, int] = {X86_64: 0xC000003E, AARCH64: 0xC00000B7}
SECCOMP: Mapping[str, int] = {X86_64: 317, AARCH64: 277}
OPENS_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
ANY_BIT, EQUAL = 0x45, 0x15
"""How the filter compares an argument: the kernel's own numbers."""
_FICLONE, _FICLONERANGE = 0x40049409, 0x4020940D
_SETLK = (6, 7, 37, 38)
"""F_SETLK, F_SETLKW, F_OFD_SETLK and F_OFD_SETLKW."""
UNDECIDED: Mapping[str, str] = {
    "mmap": "writes to the memory mapped to",
    "io_uring_setup": "io_uring",
    "io_setup": "asynchronous input and output (io_setup)",
    "shmget": "memory that System V shares (shmget)",
    "msgget": "a queue of messages of System V (msgget)",
    "mq_open": "a queue of messages of POSIX (mq_open)",
}
"""After these, effects come that nobody is told of. What the report calls them."""
LOCKS = ("flock", "fcntl")
"""Locks of files are no effects: nobody finds anything else in the file. They may be refused, or lost."""
FLAGS_IN_MEMORY = ("openat2",)
"""Of these the flags are the first 64 bits of a structure."""


@dataclass(frozen=True)
class Call:
    """``paths``: pairs of the arguments that hold a folder's descriptor (None: the working directory) and a path.
    ``descriptor``: the argument that holds the descriptor of a file. A call with neither is on all files. ``flags``: of
    a call that opens, the argument with its flags, or with their address. ``tests``: what the filter asks of arguments
    before it tells, all of which has to hold: which one, how it compares, and with what. Of the last one any of several
    will do."""

    name: str
    x86_64: int | None
    aarch64: int | None
    paths: tuple[tuple[int | None, int], ...] = ()
    descriptor: int | None = None
    flags: int | None = None
    tests: tuple[tuple[int, ...], ...] = ()

    def number(self, machine: str) -> int | None:
        """None: the machine does not have it."""
        return self.x86_64 if machine == X86_64 else self.aarch64


CALLS = (
    Call("write", 1, 64, descriptor=0),
    Call("pwrite64", 18, 68, descriptor=0),
    Call("writev", 20, 66, descriptor=0),
    Call("pwritev", 296, 70, descriptor=0),
    Call("pwritev2", 328, 287, descriptor=0),
    Call("sendfile", 40, 71, descriptor=0),
    Call("copy_file_range", 326, 285, descriptor=2),
    Call("ftruncate", 77, 46, descriptor=0),
    Call("fallocate", 285, 47, descriptor=0),
    Call("fsync", 74, 82, descriptor=0),
    Call("fdatasync", 75, 83, descriptor=0),
    Call("syncfs", 306, 267, descriptor=0),
    Call("sync", 162, 81),
    Call("open", 2, None, paths=((None, 0),), flags=1, tests=((1, ANY_BIT, OPENS_TO_WRITE),)),
    Call("creat", 85, None, paths=((None, 0),)),
    Call("openat", 257, 56, paths=((0, 1),), flags=2, tests=((2, ANY_BIT, OPENS_TO_WRITE),)),
    Call("openat2", 437, 437, paths=((0, 1),), flags=2),
    Call("truncate", 76, 45, paths=((None, 0),)),
    Call("rename", 82, None, paths=((None, 0), (None, 1))),
    Call("renameat", 264, 38, paths=((0, 1), (2, 3))),
    Call("renameat2", 316, 276, paths=((0, 1), (2, 3))),
    Call("link", 86, None, paths=((None, 0), (None, 1))),
    Call("linkat", 265, 37, paths=((0, 1), (2, 3))),
    Call("symlink", 88, None, paths=((None, 1),)),
    Call("symlinkat", 266, 36, paths=((1, 2),)),
    Call("unlink", 87, None, paths=((None, 0),)),
    Call("unlinkat", 263, 35, paths=((0, 1),)),
    Call("rmdir", 84, None, paths=((None, 0),)),
    Call("mkdir", 83, None, paths=((None, 0),)),
    Call("mkdirat", 258, 34, paths=((0, 1),)),
    Call("mknod", 133, None, paths=((None, 0),)),
    Call("mknodat", 259, 33, paths=((0, 1),)),
    Call("setxattr", 188, 5, paths=((None, 0),)),
    Call("lsetxattr", 189, 6, paths=((None, 0),)),
    Call("fsetxattr", 190, 7, descriptor=0),
    Call("removexattr", 197, 14, paths=((None, 0),)),
    Call("lremovexattr", 198, 15, paths=((None, 0),)),
    Call("fremovexattr", 199, 16, descriptor=0),
    Call("sendto", 44, 206, descriptor=0),
    Call("sendmsg", 46, 211, descriptor=0),
    Call("sendmmsg", 307, 269, descriptor=0),
    Call("splice", 275, 76, descriptor=2),
    Call("ioctl", 16, 29, descriptor=0, tests=((1, EQUAL, _FICLONE, _FICLONERANGE),)),
    Call("mmap", 9, 222, descriptor=4, tests=((2, ANY_BIT, mmap.PROT_WRITE), (3, ANY_BIT, mmap.MAP_SHARED))),
    Call("io_uring_setup", 425, 425),
    Call("io_setup", 206, 0),
    Call("shmget", 29, 194),
    Call("msgget", 68, 186),
    Call("mq_open", 240, 180),
    Call("flock", 73, 32, descriptor=0),
    Call("fcntl", 72, 25, descriptor=0, tests=((1, EQUAL, *_SETLK),)),
)
OPENS = ("open", "openat", "openat2")
LOOKS = (
    *(replace(call, tests=()) for call in CALLS if call.name in OPENS),
    Call("read", 0, 63, descriptor=0),
    Call("pread64", 17, 67, descriptor=0),
    Call("readv", 19, 65, descriptor=0),
    Call("preadv", 295, 69, descriptor=0),
    Call("preadv2", 327, 286, descriptor=0),
    Call("getdents64", 217, 61, descriptor=0),
    Call("stat", 4, None, paths=((None, 0),)),
    Call("lstat", 6, None, paths=((None, 0),)),
    Call("newfstatat", 262, 79, paths=((0, 1),)),
    Call("statx", 332, 291, paths=((0, 1),)),
    Call("access", 21, None, paths=((None, 0),)),
    Call("faccessat", 269, 48, paths=((0, 1),)),
    Call("faccessat2", 439, 439, paths=((0, 1),)),
    Call("readlink", 89, None, paths=((None, 0),)),
    Call("readlinkat", 267, 78, paths=((0, 1),)),
)


CONNECTIONS = (Call("connect", 42, 203, descriptor=0),)
SEES: Mapping[str, tuple[Call, ...]] = {"effects": CALLS, "looks": LOOKS, "connections": CONNECTIONS}
"""What a supervisor is told of."""
ON_NAMES = frozenset(call.name for call in LOOKS if call.descriptor is None and call.flags is None)
"""Looks that ask what a name leads to, and open nothing."""
ON_DESCRIPTORS = frozenset(call.name for call in LOOKS if call.descriptor is not None)
"""Looks at a file that was opened before."""


def numbered(calls: Iterable[Call]) -> Mapping[int, Call]:
    """Those that this machine has, by their numbers. Empty where it is not known."""
    machine = platform.machine()
    found = ((call.number(machine), call) for call in calls if machine in AUDIT_ARCH)
    return {number: call for number, call in found if number is not None}


@cache
def by_number() -> Mapping[int, Call]:
    """All of them. Looked at for each call that waits."""
    return {**numbered(CONNECTIONS), **numbered(LOOKS), **numbered(CALLS)}
