"""A process has one connection to its catalog, and so one transaction at a time: of whichever thread began it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_races.py::test_streams_of_one_process"
SAYS = "to tables of their own: expected ['no error', 'no error', 'no error'], found"
_MET = threading.Barrier(2)
_OPEN: list[str] = []


def _meets_another() -> None:
    """Until another thread is here as well, for as long as one may come."""
    try:
        _MET.wait(timeout=1)
    except threading.BrokenBarrierError:
        _MET.reset()


class ConnectedCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if threading.current_thread() is not threading.main_thread():
            _meets_another()
        if _OPEN:
            raise spi.StorageError("cannot start a transaction within a transaction", where=_OPEN[0])
        _OPEN.append(str(state.table_uuid))
        try:
            if threading.current_thread() is not threading.main_thread():
                _meets_another()
            return super().publish(state, results, watermark)
        finally:
            _OPEN.clear()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("shares-one-transaction", committer=ConnectedCommitter)
