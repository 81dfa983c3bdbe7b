"""A process has one connection to its catalog, and so one transaction at a time: of whichever thread began it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_races.py::test_streams_of_one_process"
SAYS = "what streams ended with that ran in threads of one process"
SECONDS = 60
"""Nobody waits as long: each of the threads commits."""
_OPENS = threading.Lock()
_OPEN: list[str] = []
_ANOTHER_CAME = threading.Event()


def _begin(table: str) -> None:
    with _OPENS:
        if _OPEN:
            _ANOTHER_CAME.set()
            raise spi.StorageError("cannot start a transaction within a transaction", where=_OPEN[0])
        _OPEN.append(table)


class ConnectedCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        _begin(str(state.table_uuid))
        try:
            if threading.current_thread() is not threading.main_thread():
                _ANOTHER_CAME.wait(SECONDS)  # the transaction of the first thread is open until then
            return super().publish(state, results, watermark)
        finally:
            _OPEN.clear()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("shares-one-transaction", committer=ConnectedCommitter)
