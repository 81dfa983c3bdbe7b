"""Runs of pytest in forks of a process that has imported what each of them imports: 0.7 of the 1.3 seconds of CPU of a
short one. Linux alone: elsewhere, libraries do not bear it. ``python warmed.py``, one request a line, is that process.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

IMPORTED = (
    *("asyncio", "_pytest.config", "_pytest.terminal", "numpy", "pyarrow.compute", "pyarrow.dataset", "pyarrow.fs"),
    *("pyarrow.parquet", "pydantic", "yaml", "laketier.config", "laketier.kit", "laketier.registry", "laketier.spi"),
    "laketier.tiering",
)
"""No plugin of pytest, which warns of those that it can't rewrite any more, and nothing of a format or of the suite."""
READ_ONCE = ("PYTHON", "LANG", "LC_", "ARROW_", "OMP_", "OPENBLAS_", "LD_")
"""Variables that Python and libraries look at as they start, by their first letters."""


def run(arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], said: Path) -> int:
    """The exit code of ``python -m pytest ARGUMENTS``, all of whose output goes to a file."""
    if sys.platform != "linux" or _read_once(environment) != _read_once(os.environ):
        with said.open("wb") as output:
            command = [sys.executable, "-m", "pytest", *arguments]
            return subprocess.run(
                command, cwd=cwd, env=environment, stdout=output, stderr=output, check=False
            ).returncode
    return _started(_key()).run(
        {"arguments": [*arguments], "cwd": str(cwd), "environment": dict(environment), "said": str(said)}
    )


def _key() -> tuple[tuple[str, str], ...]:
    return tuple(sorted(_read_once(os.environ).items()))


def _read_once(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: each for name, each in environment.items() if name.startswith(READ_ONCE) and name != "PYTHONPATH"}


class Warmed:
    """Our end."""

    def __init__(self) -> None:
        # Numpy's BLAS would start threads as it is imported. What a run's path is, it tells.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONPATH", None)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=pipe, stdout=pipe, env=environment, text=True, start_new_session=True
        )
        atexit.register(self.stop)

    def run(self, request: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            code: int = json.loads(self._process.stdout.readline())
        except BaseException:  # its answer would be taken for that of the next request
            _started.cache_clear()
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            raise
        return code

    def stop(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()


@cache
def _started(read_once: tuple[tuple[str, str], ...]) -> Warmed:
    """One for what it read as it started."""
    return Warmed()


def _main() -> None:
    path = sys.path[1:]
    for module in IMPORTED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            break
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    else:
        return
    _become(request, path)
    # From here on it goes on, and ends, as an interpreter does that was started for this.
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


def _become(request: Mapping[str, Any], path: Sequence[str]) -> None:
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    said = os.open(request["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, descriptor in enumerate((nothing, said, said)):
        os.dup2(descriptor, number)
    os.close(nothing)
    os.close(said)
    sys.argv = ["pytest", *request["arguments"]]
    # As ``python -m`` makes it.
    sys.path[:] = [request["cwd"], *filter(None, request["environment"].get("PYTHONPATH", "").split(os.pathsep)), *path]
    importlib.invalidate_caches()


if __name__ == "__main__":
    _main()
