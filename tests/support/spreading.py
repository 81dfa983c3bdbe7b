"""How tests are spread over the processes of pytest-xdist: ``pytest -n 3 --dist loadfile --no-loadscope-reorder``."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from laketier_conformance.spreading import ByScope

SESSION = "tests/spark/"
"""All modules with tests on the session `spark` lie here, so that one process starts it, and no other."""


def scope_of(nodeid: str) -> str:
    """A module goes to one process, so that what its tests share is made once; all tests on the session are one."""
    module = nodeid.partition("::")[0]
    return SESSION if module.startswith(SESSION) else module


def order(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no process waits for another at the end: the session, then modules with
    tests that are marked as slow. The order is the same in each process, as xdist needs it."""
    slow: dict[str, bool] = defaultdict(bool)
    for item in items:
        scope = scope_of(item.nodeid)
        slow[scope] |= item.get_closest_marker("slow") is not None
    # A sort keeps the order of equals, so the tests of a module stay together.
    items.sort(key=lambda item: (scope_of(item.nodeid) != SESSION, not slow[scope_of(item.nodeid)]))


def scheduler(config: pytest.Config, log: Any) -> ByScope | None:
    """Ours instead of ``--dist loadfile``."""
    return ByScope(config, log, scope_of) if config.getoption("dist") == "loadfile" else None
