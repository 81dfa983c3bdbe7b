"""A process that imports what a format's rounds need, once, and forks a child whenever one is asked for.

``python -m laketier_conformance.forks FORMAT SOCKET``. It only imports: it opens no table, so no engine has started a
thread in it, and what it forks is as good as an interpreter of its own. The process of pytest is never forked.
Requests and answers are JSON, one a message, on the socket whose descriptor it is given.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

_LONGEST = 1 << 20


class Forks:
    """The parent's end."""

    def __init__(self, format: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", __spec__.name, format, str(theirs.fileno())]
            # Numpy's BLAS would start threads as it is imported.
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment
            )

    def warm(self, modules: Sequence[str]) -> None:
        """Import modules, so that what is forked from now on has them."""
        self._ask({"import": list(modules)})

    def fork(self) -> Forked | None:
        """Another process that serves `laketier_conformance.child`. None if importing the format started threads."""
        requests, stdin = os.pipe()
        stdout, answers = os.pipe()
        try:
            pid = self._ask({"fork": True}, requests, answers)
        finally:
            os.close(requests)
            os.close(answers)
        if pid is None:
            os.close(stdin)
            os.close(stdout)
            return None
        return Forked(self, pid, os.fdopen(stdin, "wb", buffering=0), os.fdopen(stdout, "rb", buffering=0))

    def wait(self, pid: int) -> int:
        """What a fork ended with, as in `subprocess.Popen.returncode`."""
        code = self._ask({"wait": pid})
        assert code is not None
        return code

    def stop(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()

    def _ask(self, request: dict[str, Any], *descriptors: int) -> int | None:
        socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
        answer = self._socket.recv(_LONGEST)
        if not answer:
            raise RuntimeError(f"the process that forks others ended with {self._process.wait()}")
        told: int | None = json.loads(answer)
        return told


class Forked:
    """One fork, with what is used of `subprocess.Popen`."""

    def __init__(self, forks: Forks, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.stdin, self.stdout = stdin, stdout
        self._forks, self._pid = forks, pid
        self._code: int | None = None

    def kill(self) -> None:
        """With SIGKILL. The number stays its own until `wait`."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, 9)

    def wait(self) -> int:
        """What it ended with."""
        if self._code is None:
            self._code = self._forks.wait(self._pid)
        return self._code


def main() -> None:
    from laketier_conformance.child import serve

    name, ours = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
    while True:
        message, descriptors, _, _ = socket.recv_fds(ours, _LONGEST, 2)
        if not message:
            return
        request = json.loads(message)
        answer: int | None = None
        if "import" in request:
            for module in request["import"]:
                with suppress(Exception):  # it may be no module of its own, as `os.path` is none
                    importlib.import_module(module)
        elif "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        elif threading.active_count() == 1:
            answer = os.fork()
            if not answer:
                ours.close()
                _become(descriptors)
                serve(name)
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        ours.send(json.dumps(answer).encode())


def _become(descriptors: Sequence[int]) -> None:
    """Take the descriptors for standard input and output."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as the process lives


if __name__ == "__main__":
    main()
