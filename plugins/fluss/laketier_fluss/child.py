"""The process that holds the client: ``python -m laketier_fluss.child``. It takes requests from standard input, answers
on what was standard output, and ends when its input does, that is, with the process that started it."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import sys
import threading
import traceback
from typing import Any

from laketier.spi import LaketierError, StorageError
from laketier_fluss.frames import error_header, write_frame


def main() -> None:
    """Never returns: the client must not see its interpreter end."""
    # Whatever a library prints must not get between the frames.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_take_requests, args=(requests,), daemon=True).start()
    try:
        _serve(requests, answers)
    except BaseException:  # noqa: BLE001 - its parent reads this when the pipe ends
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)


def _take_requests(requests: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    os._exit(0)


def _serve(requests: queue.SimpleQueue[dict[str, Any]], answers: Any) -> None:
    from laketier_fluss.session import Session

    first = requests.get()
    session = Session(first["settings"], first["timeout"], lambda *frame: write_frame(answers, *frame))
    with asyncio.Runner() as runner:
        while True:
            request = requests.get()
            try:
                runner.run(session.answer(request))
            except LaketierError as error:
                write_frame(answers, error_header(error))
            except OSError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever the client raises is an answer too
                traceback.print_exc()
                unnamed = StorageError("the client of Fluss failed", why=f"{type(error).__name__}: {error}")
                write_frame(answers, error_header(unnamed))


if __name__ == "__main__":
    main()
