"""The console script. It imports nothing but Python's own before it has seen to Ctrl-C."""

from __future__ import annotations

import signal


def main() -> None:
    """Run `laketier.cli.app.main`. Its imports take a second, in which Ctrl-C ends the process as it ends any other:
    half-imported libraries would make a traceback, or another error, of it."""
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:  # else it is ignored, as below nohup, or somebody else's
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from laketier.cli import app

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app.main()
