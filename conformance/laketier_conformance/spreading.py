"""How tests are spread over the processes of pytest-xdist, by what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

ON_SPARK = "test_spark.py"
_LONG = (
    ON_SPARK, "test_store_faults.py", "test_operations.py", "test_foreign_tables.py", "test_effects.py",
    "test_looks.py", "test_meanwhile.py", "test_old_results.py", "test_index_answers.py", "test_power.py",
    "test_filters.py", "test_orphans.py", "test_depth.py",
)  # fmt: skip
"""Files that take longest, on most formats. One that begins last keeps the other processes waiting for it."""


class ByScope(LoadScopeScheduling):
    """Tests of one scope go to one process. A test that ended its process is not run again, and the rest of its scope
    is: xdist itself (3.8) gives that test to the next process, and waits for ever when it is the only one left."""

    def __init__(
        self, config: pytest.Config, log: Any, scope_of: Callable[[str], str], first: Sequence[str] = ()
    ) -> None:
        """``first``: scopes that end so are begun before all others, in this order."""
        super().__init__(config, log)
        self._scope_of = scope_of
        self._first = first

    def _split_scope(self, nodeid: str) -> str:  # the point that xdist's documentation gives for this
        return self._scope_of(nodeid)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give back what the process did not get to. Returns the test that it ended in."""
        workload = self.assigned_work.pop(node)
        left = [(unit, test) for unit in workload.values() for test, completed in unit.items() if not completed]
        if not left:
            return None
        unit, crashed = left[0]
        unit[crashed] = True
        self.workqueue.update({scope: unit for scope, unit in workload.items() if not all(unit.values())})
        for other in self.nodes:
            self._reschedule(other)
        return str(crashed)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """A process runs a test when it knows the next one, so it is given two at least."""
        self._assign_next(node)
        while self.workqueue and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_next(node)

    def _assign_next(self, node: WorkerController) -> None:
        first = next((scope for end in self._first for scope in self.workqueue if scope.endswith(end)), None)
        if first is not None:
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


def by_format_and_file(
    config: pytest.Config, log: Any, parted: Callable[[str], tuple[str, str] | None], *, alone: bool
) -> LoadScopeScheduling:
    """The tests of one file on one format go to one process. Those on Spark of all formats go to one as well.
    ``parted`` tells a format from a node id. Of one that is ``alone`` in its run, the files that take longest come
    first. Those of several would wait for their stores together, and leave cores free."""

    def scope_of(nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.endswith(ON_SPARK):
            return ON_SPARK
        whose = parted(nodeid)
        return file if whose is None else f"{whose[0]} {file}"

    return ByScope(config, log, scope_of, _LONG if alone else ())
