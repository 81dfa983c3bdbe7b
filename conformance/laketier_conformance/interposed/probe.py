"""Whether effects can be seen here, found out by looking at one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from laketier_conformance.interposed.effects import Effect
from laketier_conformance.interposed.seccomp import unsupported
from laketier_conformance.interposed.supervisor import Supervisor, be_supervised

_SECONDS = 60


@cache
def why_not() -> str | None:
    """The reason for which effects of other processes can't be seen here, or None. Starts a process the first time."""
    reason = unsupported()
    if reason is not None:
        return reason
    if not os.path.isdir("/proc/self/fd"):
        return "the system shows no processes in /proc"
    seen: list[Effect] = []

    def decide(effect: Effect) -> int:
        seen.append(effect)
        return 0

    with tempfile.TemporaryDirectory(prefix="effects-") as folder, Supervisor(decide, Path(folder, "s")) as by:
        made = os.path.join(os.path.realpath(folder), "made")
        command = [sys.executable, "-m", __spec__.name, str(by.path), made]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
    if not any(effect.on == (made,) for effect in seen):
        return "the system hides what other processes of this user do (/proc/<pid>/mem)"
    return None


if __name__ == "__main__":
    be_supervised(sys.argv[1])
    os.mkdir(sys.argv[2])
