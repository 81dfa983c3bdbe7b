"""A driver that discovers in a process of its own: ``python landing_driver.py ZONE [STOP]``.

Prints the number of files taken after each discovery, until the file STOP is there and nothing is new. With
``KILL_AT_LINK=before`` or ``after`` it is killed beside the system call that gives a segment its name.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from laketier.connectors.files import ledger
from landing import log_of


def killed_at_link(when: str) -> None:
    link = os.link

    def linking(source: Path, target: Path) -> None:
        if Path(target).parent.name == "segments":
            if when == "after":
                link(source, target)
            os.kill(os.getpid(), signal.SIGKILL)
        link(source, target)

    os.link = linking


def main() -> None:
    ledger.SEGMENTS_PER_CHECKPOINT = int(os.environ["SEGMENTS_PER_CHECKPOINT"])
    if when := os.environ.get("KILL_AT_LINK"):
        killed_at_link(when)
    log = log_of(Path(sys.argv[1]))
    stop = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    before = -1
    while True:
        stopped = stop is None or stop.exists()
        taken = log.bounds()["files"].latest
        print(taken, flush=True)
        if stopped and taken == before:
            return
        before = taken


if __name__ == "__main__":
    main()
