"""How the suite's tests are spread over processes of pytest-xdist."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from laketier_conformance.spreading import by_format_and_file

COUNTS = {"a": 5, "operations": 3, "store_faults": 3}
IDS = [f"lib/test_{file}.py::test_{number}" for file, many in COUNTS.items() for number in range(many)]


class _Process:
    shutting_down = False

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.sent: list[str] = []

    def send_runtest_some(self, which: Sequence[int]) -> None:
        self.sent += [IDS[at] for at in which]

    def shutdown(self) -> None:
        pass


def _begun(formats: list[str]) -> list[str]:
    """The file that each of two processes begins with."""
    config = SimpleNamespace(option=SimpleNamespace(loadscopereorder=True))

    def parted(nodeid: str) -> tuple[str, str]:
        return formats[0], nodeid

    spread: Any = by_format_and_file(cast("pytest.Config", config), None, parted, alone=len(formats) == 1)
    processes = [_Process("gw0"), _Process("gw1")]
    for process in processes:
        spread.add_node(process)
        spread.add_node_collection(process, IDS)
    spread.schedule()
    return [process.sent[0].partition("::")[0] for process in processes]


def test_what_takes_longest_is_begun_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it is what everybody waits for at the end. Of several formats they would wait for stores together."""
    monkeypatch.setattr("xdist.scheduler.loadscope.parse_tx_spec_config", lambda _: ["popen", "popen"])
    assert _begun(["one"]) == ["lib/test_store_faults.py", "lib/test_operations.py"]
    assert _begun(["one", "other"]) == ["lib/test_a.py", "lib/test_operations.py"]
