"""A host: a process with a clock of its own, which stages, publishes or collects when it is told to."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from laketier_conformance.host_clocks import MISSING, of_another_time, shifting_library


class Host:
    """``days`` ahead of this process, or behind it."""

    def __init__(self, format: str, warehouse: Path, days: int) -> None:
        assert shifting_library() is not None, MISSING
        environment = of_another_time(days) if days else dict(os.environ)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "laketier_verification.clocks.host", format, str(warehouse)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def ask(self, do: str, **request: Any) -> Any:
        """What the host answers. Raises `RuntimeError` for an answer that is none of those that it knows."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the host ended with {self._process.wait()}")
        answer = json.loads(line)
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer["is"]

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def main() -> None:
    """The other end."""
    from laketier.maintenance.orphans import collect_orphans
    from laketier.spi import Collected, LaketierError, Token, WriterInitContext, new_attempt_id
    from laketier.tiering import TieringRound, write_task
    from laketier.tiering.horizon import lower_horizon
    from laketier_verification.lakes import append, ids, lake_at, rows_of

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    lake = lake_at(Path(sys.argv[2]), sys.argv[1])
    rounds: dict[int, TieringRound] = {}

    def table() -> Any:
        return lake.load_table()

    def begin(epoch: int) -> int:
        rounds[epoch] = TieringRound(lake.tiering_factory(table()), token=Token("p", "run", epoch))
        rounds[epoch].begin()
        return rounds[epoch].attempts_after

    def stage(epoch: int, after: int) -> str:
        context = WriterInitContext(attempt=new_attempt_id(after))
        message = write_task(lake.tiering_factory(table()), [rows_of(epoch)], context)
        return base64.b64encode(message).decode()

    def commit(epoch: int, message: str) -> str:
        try:
            return rounds[epoch].commit_messages([base64.b64decode(message)]).outcome.value
        except Collected:
            return "refused"

    def collect() -> int:
        return len(collect_orphans(lake.storage, table(), grace=timedelta(0)).removed)

    def lower() -> list[int]:
        return list(lower_horizon(lake.tiering_factory(table()), table().table_uuid))

    requests: dict[str, Callable[..., Any]] = {
        "create": lambda: append(lake, rows_of(0), epoch=0).outcome.value,
        "time": lambda: time.time(),
        "begin": begin,
        "stage": stage,
        "commit": commit,
        "collect": collect,
        "lower": lower,
        "read": lambda: ids(lake),
    }
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"is": requests[request.pop("do")](**request)}
        except LaketierError as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
