"""A process that imports what others need, once, and forks one of them whenever it is asked for.

``python -m laketier_conformance.forks SOCKET``. It only imports: it opens no table, so no engine has started a
thread in it, and what it forks is as good as an interpreter of its own. The process of pytest is never forked.
Requests and answers are JSON, one a message, on the socket whose descriptor it is given.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any, NoReturn

_LONGEST = 1 << 20
_AT_ONCE = 1000
"""Modules of one request: a system may carry no message of 200 KiB, and a source may import ten thousand."""


class Forks:
    """The parent's end."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", __spec__.name, str(theirs.fileno())]
            # Numpy's BLAS would start threads as it is imported.
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment
            )

    def warm(self, modules: Sequence[str], *, but: Sequence[str] = (), ready: Sequence[str] = ()) -> str | None:
        """Import modules, so that what is forked from now on has them. ``but``: not these, nor what imports them.
        ``ready``: a function ``module:name`` that is then called, and its arguments: it finds out what each fork would
        ask for again. Returns the text that it returns; none where it raises, as who asks again is told."""
        for first in range(0, len(modules), _AT_ONCE):
            self._ask({"import": list(modules[first : first + _AT_ONCE]), "but": list(but), "ready": []})
        told = self._ask({"import": [], "but": [], "ready": list(ready)}) if ready else None
        return told if isinstance(told, str) else None

    def fork(self, module: str, *arguments: str) -> Forked | None:
        """Another process, as ``python -m MODULE ARGUMENTS`` would be. None if what was imported started threads."""
        requests, stdin = os.pipe()
        stdout, answers = os.pipe()
        try:
            pid = self._number({"fork": [module, *arguments], "environment": dict(os.environ)}, requests, answers)
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
        code = self._number({"wait": pid})
        assert code is not None
        return code

    def stop(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()

    def _number(self, request: dict[str, Any], *descriptors: int) -> int | None:
        answer = self._ask(request, *descriptors)
        assert not isinstance(answer, str)
        return answer

    def _ask(self, request: dict[str, Any], *descriptors: int) -> int | str | None:
        socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
        answer = self._socket.recv(_LONGEST)
        if not answer:
            raise RuntimeError(f"the process that forks others ended with {self._process.wait()}")
        told: int | str | None = json.loads(answer)
        return told


class Forked:
    """One fork, with what is used of `subprocess.Popen`."""

    def __init__(self, forks: Forks, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.stdin, self.stdout = stdin, stdout
        self._forks, self.pid = forks, pid
        self._code: int | None = None

    def kill(self) -> None:
        """With SIGKILL. The number stays its own until `wait`."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, 9)

    def wait(self) -> int:
        """What it ended with."""
        if self._code is None:
            self._code = self._forks.wait(self.pid)
        return self._code


def main() -> None:
    ours = socket.socket(fileno=int(sys.argv[1]))
    while True:
        message, descriptors, _, _ = socket.recv_fds(ours, _LONGEST, 2)
        if not message:
            return
        request = json.loads(message)
        answer: int | str | None = None
        if "import" in request:
            _import(request["import"], request["but"])
            for name, *arguments in [request["ready"]] if request["ready"] else []:
                with suppress(Exception):  # who asks again is told
                    answer = pkgutil.resolve_name(name)(*arguments)
            # What is here stays: a fork whose garbage is collected would get a copy of each page of it.
            gc.collect()
            gc.freeze()
        elif "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        elif threading.active_count() == 1:
            answer = os.fork()
            if not answer:
                ours.close()
                _become(descriptors, request["environment"])
                _run(*request["fork"])
        for descriptor in descriptors:
            os.close(descriptor)
        ours.send(json.dumps(answer).encode())


def _import(modules: Sequence[str], but: Sequence[str]) -> None:
    absent: dict[str, Any] = dict.fromkeys(name for name in but if name not in sys.modules)  # None: importing it fails
    sys.modules.update(absent)
    for module in modules:
        with suppress(Exception):  # it may be no module of its own, as `os.path` is none
            importlib.import_module(module)
    for name in absent:
        del sys.modules[name]


def _become(descriptors: Sequence[int], environment: dict[str, str]) -> None:
    """Take the descriptors for standard input and output, and the environment."""
    os.environ.clear()
    os.environ.update(environment)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as the process lives


def _run(module: str, *arguments: str) -> NoReturn:
    """A forked process must not go on with its parent's code, however its own ends."""
    sys.argv = [module, *arguments]
    code = 1
    try:
        sys.modules.pop(module, None)  # it may have been imported for what others need of it
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
