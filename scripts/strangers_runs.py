"""How the parts of ``scripts/strangers.py`` run a command, and tell what became of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bootstrap import ROOT

MOST_SECONDS = 3600
"""For one command. The whole suite takes the longest: it took five to nine minutes on two busy cores."""


def told(well: bool, what: str, began: float) -> None:
    print(f"{'ok' if well else 'FAILED':8}{what:64}{time.monotonic() - began:6.1f} s", flush=True)


def ran(command: Sequence[str | Path], cwd: Path, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The exit code, and all that was said. A command that hangs is killed, and has failed."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"") + (late.stderr or b"")
        return 1, f"{said.decode(errors='replace')}\n{words[0]} was killed after {MOST_SECONDS} s"
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def call(command: Sequence[str | Path], cwd: Path = ROOT) -> None:
    code, said = ran(command, cwd)
    if code:
        print(said, file=sys.stderr)
        raise SystemExit(f"strangers: '{Path(str(command[0])).name} {command[1]}' failed, see above")
