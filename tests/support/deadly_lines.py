"""``laketier``, whose source `lines` has tables that kill the process which reads them, or never answer.

Run as a program. A table whose ``table.json`` says ``"deadly": "kill"`` sends SIGKILL to the process when its log is
read, as the kernel does where memory ends; one with ``"hang"`` makes the file ``hangs`` and reads for ever.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from lines_log.plugin import LinesLog

from laketier.spi import LogSplit

_read = LinesLog.read


def _deadly(log: LinesLog, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
    how = json.loads((log.folder / "table.json").read_text(encoding="utf-8")).get("deadly")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hang":
        (log.folder / "hangs").touch()
        threading.Event().wait()
    yield from _read(log, split, **options)


if __name__ == "__main__":
    from laketier.cli.app import main

    LinesLog.read = _deadly  # type: ignore[method-assign,assignment]
    main()
