"""Which lines of some files a block of code runs."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

Lines = dict[str, set[int]]


@contextmanager
def lines_run(files: Iterable[Path]) -> Iterator[Lines]:
    """File -> lines, in this process, whole when the block is left."""
    wanted = {str(file) for file in files}
    found: defaultdict[str, set[int]] = defaultdict(set)

    def called(frame: FrameType, event: str, argument: object) -> Any:
        file = frame.f_code.co_filename
        if file not in wanted:
            return None
        lines = found[file]
        lines.add(frame.f_lineno)

        def stepped(frame: FrameType, event: str, argument: object) -> Any:
            lines.add(frame.f_lineno)
            return stepped

        return stepped

    before = sys.gettrace()
    threading.settrace(called)
    sys.settrace(called)
    try:
        yield found
    finally:
        sys.settrace(before)
        threading.settrace(None)
