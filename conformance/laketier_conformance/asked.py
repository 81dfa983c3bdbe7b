"""What all requests to another process have in common."""

from __future__ import annotations

import json
import os
from typing import Any, TextIO

from laketier.kit.failpoints import VARIABLE


def say(answers: TextIO, answer: dict[str, Any]) -> None:
    """Answer in a line."""
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def switch_on(request: dict[str, Any]) -> None:
    """The failpoints of a request, or none."""
    if "failpoints" in request:
        os.environ[VARIABLE] = request["failpoints"]
    else:
        os.environ.pop(VARIABLE, None)
