"""Running the demo's driver, and killing it in the middle of a publish."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from laketier.spi import LaketierError
from laketier.tiering.failpoints import VARIABLE

_POLL_SECONDS = 0.05
_SILENCE_SECONDS = 240.0
"""Without an epoch, and without one more stream that stands: Spark and its streams start slowly on a busy machine."""


class DriverFailed(LaketierError):
    """The demo's driver ended by itself, and not well."""


def run_driver(
    orders: dict[str, Any],
    *,
    log: Path,
    report: Callable[[dict[str, Any]], None],
    kill_at: str | None = None,
    streams: int,
    tick: Callable[[], None],
) -> None:
    """Run the driver to its end. With ``kill_at`` (a failpoint), run it until each of the ``streams`` stands at that
    point of a publish; then SIGKILL goes to the driver, its JVM and its Python workers at once.

    ``tick`` is called while it runs.
    """
    flags = log.parent / f"{log.stem}-paused"
    flags.mkdir()
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment.pop(VARIABLE, None)
    if kill_at is not None:
        # Each stream commits in a process of its own.
        environment[VARIABLE] = f"{kill_at}=pause({flags}/%p)"
    with log.open("wb") as errors:
        driver = subprocess.Popen(
            [sys.executable, "-m", "laketier.cli.demo.driver", json.dumps({**orders, "drain": kill_at is None})],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
            text=True,
        )
    standing, heard_at = 0, time.monotonic()

    def heard(message: dict[str, Any]) -> None:
        nonlocal heard_at
        heard_at = time.monotonic()
        report(message)

    listener = threading.Thread(target=_listen, args=(driver, heard), daemon=True)
    listener.start()
    try:
        while driver.poll() is None and (count := _count(flags)) < streams:
            if count > standing:
                standing, heard_at = count, time.monotonic()
            if time.monotonic() - heard_at > _SILENCE_SECONDS:
                raise DriverFailed(
                    f"the driver said nothing for {_SILENCE_SECONDS:.0f} s",
                    where=str(log),
                    why=_last_line(log),
                    fix="Its log says more; `laketier doctor` checks Java and Spark.",
                )
            tick()
            time.sleep(_POLL_SECONDS)
    finally:
        _kill_session(driver.pid)
        driver.wait()
        listener.join()
    if _count(flags) < streams and (driver.returncode or kill_at is not None):
        raise DriverFailed(
            f"the driver ended by itself with exit code {driver.returncode}",
            where=str(log),
            why=_last_line(log),
            fix="Its log says more; `laketier doctor` checks Java and Spark.",
        )


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def _listen(driver: subprocess.Popen[str], report: Callable[[dict[str, Any]], None]) -> None:
    assert driver.stdout is not None
    with driver.stdout as lines:
        for line in lines:
            with contextlib.suppress(json.JSONDecodeError):
                report(json.loads(line))


def _kill_session(session: int) -> None:
    """Kill every process of a session: the workers that Spark forks may have made process groups of their own."""
    for entry in Path("/proc").glob("[0-9]*/stat") if Path("/proc").is_dir() else ():
        with contextlib.suppress(OSError, ValueError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                os.kill(int(entry.parent.name), signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the second by macOS, of a group that has ended
        os.killpg(session, signal.SIGKILL)


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "Exception" in line]
    return (errors or lines or ["it said nothing"])[-1][:500]
