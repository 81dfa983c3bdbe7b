"""A run of tests whose folders lie in memory: ``python tests/support/in_memory.py pytest ...``.

Tests sync thousands of small files, and each sync of a disk takes milliseconds in which no core works. What a sync
promises is shown by interposed power cuts (`test_power.py`, `test_syscalls.py`), which no disk takes part in.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 8 << 30
"""Bytes that have to be free: a whole run leaves less than two GiB in its folders."""
ON_DISK = "LAKETIER_TESTS_ON_DISK"
"""Set, it leaves the folders where they are kept after the run."""
_PREFIX = "lt-"
_MARK, _UNMARKED = ".laketier-tests", ".laketier-tests-begun"
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""What a container may take, which is less than the machine has."""


def why_not(memory: Path = MEMORY, room: int = ROOM) -> str | None:
    """Why the folders of tests stay on the disk, or `None`. Tests start programs from their folders."""
    if os.environ.get(ON_DISK):
        return f"{ON_DISK} is set"
    if not os.access(memory, os.W_OK | os.X_OK):
        return f"{memory} can't be written"
    found = os.statvfs(memory)
    if found.f_flag & os.ST_NOEXEC:
        return f"{memory} lets no program start"
    free = min(found.f_bavail * found.f_frsize, _available())
    return None if free >= room else f"{free >> 20} MiB are free in {memory}, and {room >> 20} are needed"


def _available() -> int:
    """Bytes of memory that the system can give, and a container may take; none where nobody tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    free = next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 0)
    for limit in map(Path, _LIMITS):
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            free = min(free, int(limit.read_text()))
    return free


def forget_the_ended(memory: Path = MEMORY) -> None:
    """Remove the folders of runs that were killed. A run has locked its mark for as long as it lives, in whichever
    container: a folder without a mark is of somebody else."""
    for mark in memory.glob(f"{_PREFIX}*/{_MARK}"):
        try:
            with mark.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(mark.parent, ignore_errors=True)
        except OSError:  # it lives, is another user's, or went meanwhile
            continue


def run(command: Sequence[str], memory: Path = MEMORY, room: int = ROOM) -> int:
    """The exit code of the command, whose temporary folder is removed when it ends."""
    if (reason := why_not(memory, room)) is not None:
        print(f"the folders of tests are on the disk: {reason}", flush=True)
        return subprocess.run(command, check=False).returncode
    forget_the_ended(memory)
    # Short: paths of sockets, which lie in these folders, may have 107 bytes.
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=memory)
    os.chmod(folder, 0o1777)  # as /tmp is: servers run as another user, and tests ask what one without rights sees
    # Ctrl-C is for the tests, which end in order; a handler, as what is ignored stays so in the command.
    usual = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with open(os.path.join(folder, _UNMARKED), "xb") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX)
            os.rename(mark.name, os.path.join(folder, _MARK))  # nobody finds one that is not locked yet
            code = subprocess.run(command, check=False, env={**os.environ, "TMPDIR": folder}).returncode
    finally:
        signal.signal(signal.SIGINT, usual)
        shutil.rmtree(folder, ignore_errors=True)
    if code:
        print(f"the folders of tests were in memory, and are gone: {ON_DISK}=1 keeps them", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
