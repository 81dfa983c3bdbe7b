"""A run that ends with the command that began it, however that ends: killed, it can pass no signal on.

By SIGTERM and not by SIGINT, which is ignored where a shell's script began the command beside itself.
"""

from __future__ import annotations

import os
import signal
import sys

import pytest

_PR_SET_PDEATHSIG = 1


class EndsWith:
    """Interrupts this process at SIGTERM, and once its parent, the process ``command``, is gone: only Linux tells of
    that. The next test is interrupted where the first interrupt came to nothing: Python drops what is raised in a
    callback of a library's or of its own collector."""

    def __init__(self, command: int) -> None:
        self._own = os.getpid()
        self._is_told = False
        signal.signal(signal.SIGTERM, self._interrupt)
        if sys.platform != "linux":
            return
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != command:  # it was gone before that
            self._interrupt()

    def _interrupt(self, *_: object) -> None:
        if os.getpid() == self._own:
            self._is_told = True
            raise KeyboardInterrupt
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a fork, whose parent ends it
        os.kill(os.getpid(), signal.SIGTERM)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if self._is_told:
            raise KeyboardInterrupt
