"""What a run began with, before a format was loaded. Processes inherit it, so what a plugin changed in the run's own
looks to the next one as if it had been there before."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

_TWICE = "RLIMIT_OFILE"
"""Another name of a limit that has one."""


def limits() -> dict[str, Callable[[], object]]:
    """Those of the process: of files, memory and time, each by itself. Nothing on a system without them."""
    return {f"the limit {name}": partial(_resource().getrlimit, number) for name, number in _limits().items()}


def restore(environment: Mapping[str, str], limits: Mapping[str, int]) -> None:
    """Give this process what a run began with, as `ENVIRONMENT` and `LIMITS` tell it."""
    os.environ.clear()
    os.environ.update(environment)
    for name, number in _limits().items():
        now, most = _resource().getrlimit(number)
        none = _resource().RLIM_INFINITY
        if name in limits and limits[name] != now and (most == none or none != limits[name] <= most):
            _resource().setrlimit(number, (limits[name], most))


def _limits() -> dict[str, int]:
    try:
        names = dir(_resource())
    except ImportError:
        return {}
    return {name: getattr(_resource(), name) for name in names if name.startswith("RLIMIT_") and name != _TWICE}


def _resource() -> Any:
    return importlib.import_module("resource")


ENVIRONMENT: dict[str, str] = {}
LIMITS: dict[str, int] = {}


def note() -> None:
    """Keep what there is now, as that which the run begins with."""
    ENVIRONMENT.update(os.environ)
    LIMITS.update({name: _resource().getrlimit(number)[0] for name, number in _limits().items()})


def keep_changes(before: Mapping[str, str]) -> None:
    """Take variables that changed since ``before`` for some that the run began with: the harness sets what a warehouse
    needs, such as the password of a server."""
    for name in before.keys() - os.environ.keys():
        ENVIRONMENT.pop(name, None)
    ENVIRONMENT.update({name: value for name, value in os.environ.items() if before.get(name) != value})
