"""A run that ends with the command that began it, however that ends: killed, it can pass no signal on."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with(command: int) -> None:
    """Interrupt this process once its parent, the process ``command``, is gone. Only Linux tells of that."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)
    if os.getppid() != command:  # it was gone before that
        signal.raise_signal(signal.SIGINT)
