"""A pytest plugin: a module that is installed can't be found."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

_found = importlib.util.find_spec


def _hidden(name: str, package: str | None = None) -> Any:
    return None if name == os.environ["HIDDEN"] else _found(name, package)


importlib.util.find_spec = _hidden
