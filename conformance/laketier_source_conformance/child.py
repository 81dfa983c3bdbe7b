"""The other end of `laketier_source_conformance.children`. Requests and answers are JSON, one a line."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

from laketier_conformance.asked import say
from laketier_conformance.interposed.supervisor import be_supervised
from laketier_source_conformance.reads import read_splits


def serve() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not end up among the answers
    for line in sys.stdin:
        request = json.loads(line)
        try:
            told = _DO[request["do"]](request)
        except Exception as error:  # noqa: BLE001 - the parent decides what it means
            told = {"failed": type(error).__name__, "message": str(error)[:1000]}
        say(answers, told)


def _read(request: dict[str, Any]) -> dict[str, Any]:
    log, splits = pickle.loads(Path(request["task"]).read_bytes())  # noqa: S301 - of the process that asks
    if "supervised" in request:
        be_supervised(request["supervised"], request["sees"])
    read = read_splits(log, splits)
    Path(request["to"]).write_bytes(pickle.dumps(read))
    return {"rows": len(read.rows)}


_DO = {"read": _read}

if __name__ == "__main__":
    serve()
