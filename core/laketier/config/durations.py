"""Durations, as files write them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from laketier.config.parsing import Named

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)\Z")
_LONGEST = 3650 * 86400.0
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _seconds(value: Any) -> float:
    """``90s``, ``1.5 min``, ``2 hours`` in seconds."""
    match = _DURATION.match(str(value).strip())
    if match is None:
        raise ValueError("write a duration, for example 30s, 5 min or 2 hours")
    unit = match["unit"] if match["unit"] == "ms" else match["unit"][0]
    seconds = float(match["number"]) * _SECONDS[unit]
    if seconds > _LONGEST:
        raise ValueError("that is more than ten years")
    return seconds


Duration = Annotated[float, BeforeValidator(_seconds), Named("a duration")]
"""Seconds, written as a number with a unit."""
