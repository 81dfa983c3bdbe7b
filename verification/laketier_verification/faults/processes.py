"""Processes to be killed. Each life of a driver is one: forked from a parent that has imported everything already,
but libraries that don't survive a fork.

Run as a module it is that parent; requests and answers are JSON, one a line.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 120.0
FORKLESS = ("lance",)
"""Libraries that start threads when they are imported, and do not work in a forked process: each life imports them."""
_POLL_SECONDS = 0.005


class Life(ABC):
    """A driver that is at work."""

    patience = PATIENCE_SECONDS

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.began = time.time()

    @abstractmethod
    def poll(self) -> int | None:
        """As `subprocess.Popen.poll`."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL."""

    def until_paused(self) -> bool:
        """Wait until it stands at the failpoint that pauses it. False: it ended without getting there."""
        flag = Path(self.request["flag"])
        deadline = time.monotonic() + self.patience
        while not flag.exists():
            if self.poll() is not None:
                return False
            self._still(deadline)
        return True

    def resume(self) -> None:
        """Let it go on."""
        Path(self.request["flag"]).unlink()

    def wait(self) -> dict[str, Any]:
        """How it ended: what `bare.live` returned, or that it was killed."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (code := self.poll()) is None:
            self._still(deadline)
        answer = Path(self.request["answer"])
        if code == -signal.SIGKILL:
            return {"outcome": "killed"}
        if code or not answer.exists():
            log = Path(self.request["log"]).read_text(encoding="utf-8", errors="replace")
            return {"outcome": "crashed", "error": f"exit code {code}", "message": log[-2000:]}
        result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return result

    def _still(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            self.kill()
            raise TimeoutError(f"a driver was still at work after its time: {self.request}")
        time.sleep(_POLL_SECONDS)


class Processes(ABC):
    """Starts drivers of one format."""

    @abstractmethod
    def start(self, request: dict[str, Any]) -> Life:
        """Start one."""

    @abstractmethod
    def close(self) -> None:
        """End the processes that wait."""


class _ForkedLife(Life):
    def __init__(self, parent: Forked, pid: int, request: dict[str, Any]) -> None:
        super().__init__(request)
        self._parent = parent
        self._pid = pid

    def poll(self) -> int | None:
        return self._parent.status(self._pid)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)


class Forked(Processes):
    """One parent that forks on request. ``modules``: what it imports beforehand."""

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._process = _open(modules)
        self._ended: dict[int, int] = {}
        self._buffer = b""
        self._pids: list[int] = []

    def start(self, request: dict[str, Any]) -> Life:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        while not self._pids:
            self._listen(PATIENCE_SECONDS)
        return _ForkedLife(self, self._pids.pop(), request)

    def status(self, pid: int) -> int | None:
        self._listen(0)
        return self._ended.get(pid)

    def close(self) -> None:
        _close(self._process)

    def _listen(self, seconds: float) -> None:
        assert self._process.stdout is not None
        while select.select([self._process.stdout], [], [], seconds)[0]:
            data = self._process.stdout.read(65536)
            if not data:
                raise RuntimeError("the forking parent ended")
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            for line in lines:
                event = json.loads(line)
                if "code" in event:
                    self._ended[event["pid"]] = event["code"]
                else:
                    self._pids.append(event["pid"])
            seconds = 0


def _open(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "laketier_verification.faults.processes", *arguments]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0)


def _close(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


# -- the other end ------------------------------------------------------------------------------------------------


def main(*modules: str) -> None:
    answers = os.dup(1)
    os.dup2(2, 1)
    forkless: dict[str, Any] = dict.fromkeys(FORKLESS)  # None: importing it fails, and so does what imports it
    sys.modules |= forkless
    _import(modules)
    for name in forkless:
        del sys.modules[name]
    _fork_on_request(answers, modules)


def _import(modules: Sequence[str]) -> None:
    for module in ("laketier_verification.faults.bare", *modules):
        try:
            __import__(module)
        except ImportError:  # one of these, or a name that only an import hook knew
            continue


def _fork_on_request(answers: int, modules: Sequence[str]) -> None:
    awake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    alive = 0
    buffer = b""
    while True:
        ready = select.select([0, awake], [], [])[0]
        if awake in ready:
            os.read(awake, 4096)
            while alive:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                alive -= 1
                os.write(answers, json.dumps({"pid": pid, "code": os.waitstatus_to_exitcode(status)}).encode() + b"\n")
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                pid = os.fork()
                if not pid:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    _import(modules)  # what is left; a life may find no file handle for it
                    _live(json.loads(line))
                    os._exit(0)
                alive += 1
                os.write(answers, json.dumps({"pid": pid}).encode() + b"\n")


def _live(request: dict[str, Any]) -> None:
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    from laketier_verification.faults import bare

    # Open beforehand: the driver may be left without a file handle to spare.
    with open(request["answer"], "w", encoding="utf-8") as answer:
        try:
            result = bare.live(request)
            if request.get("modules"):
                result["modules"] = sorted(sys.modules)
            answer.write(json.dumps(result))
        except BaseException:  # noqa: BLE001 - a forked process must not run its parent's code
            traceback.print_exc()
            os._exit(70)


if __name__ == "__main__":
    main(*sys.argv[1:])
