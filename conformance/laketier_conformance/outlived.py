"""A run that ends with the command that began it, however that ends: killed, it can pass no signal on.

By SIGTERM and not by SIGINT, which is ignored where a shell's script began the command beside itself.
"""

from __future__ import annotations

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with(command: int) -> None:
    """Interrupt this process at SIGTERM, and once its parent, the process ``command``, is gone: only Linux tells of
    that."""
    own = os.getpid()

    def interrupt(*_: object) -> None:
        if os.getpid() == own:
            raise KeyboardInterrupt
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a fork, whose parent ends it
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, interrupt)
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != command:  # it was gone before that
        interrupt()
