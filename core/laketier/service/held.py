"""The leases that a worker holds: kept by heartbeats, ended with how their rounds went."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence

from laketier.kit import failpoint
from laketier.service.failpoints import FINISHED
from laketier.service.state import Failure, Lease, LeaseLost, StateError, StateStore, Success, Worker

log = logging.getLogger(__name__)

_HEARTBEATS_PER_LEASE = 4
_Key = tuple[int, int]


def _key(lease: Lease) -> _Key:
    """A worker may get a table anew whose old lease it has lost, while the old round still runs."""
    return lease.table.id, lease.fence


_Ended = tuple[Lease, Success | Failure]


def _each_table_once(results: Sequence[_Ended]) -> list[list[_Ended]]:
    """A worker that lost a lease and got the table anew may end both rounds at a time: the older one is told first."""
    lots: list[list[_Ended]] = []
    for result in sorted(results, key=lambda each: each[0].fence):
        table = result[0].table.id
        free = next((lot for lot in lots if all(lease.table.id != table for lease, _ in lot)), None)
        if free is None:
            lots.append([result])
        else:
            free.append(result)
    return lots


class HeldLeases:
    """Safe in threads."""

    def __init__(self, store: StateStore, worker: Worker, lease_seconds: float) -> None:
        self._store = store
        self._worker = worker
        self._lease_seconds = lease_seconds
        self._held: dict[_Key, Lease] = {}
        self._lost: set[_Key] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def take(self, most: int) -> Sequence[Lease]:
        """Lease what is due. Raises `StateError`."""
        leases = self._store.acquire(self._worker, most, self._lease_seconds, busy=len(self) > 0)
        with self._lock:
            self._held |= {_key(lease): lease for lease in leases}
        return leases

    def is_lost(self, lease: Lease) -> bool:
        """As far as the heartbeats know."""
        with self._lock:
            return _key(lease) in self._lost

    def outrank(self, lease: Lease, lake: int) -> Lease:
        """A lease with a fence above the ``lake``'s. Raises `LeaseLost` where that is the fence of a worker who took
        the table over, and `StateError`."""
        raised = self._store.raise_fence(lease, lake)
        with self._lock:
            self._held.pop(_key(lease), None)
            self._held[_key(raised)] = raised
        log.warning(
            "[table=%s] the lake table knows fence %d, and the lease has %d though it is held: the state database was "
            "lost or restored. The lease goes on with fence %d; rows are safe, as the lake table's watermark decides",
            lease.table.name, lake, lease.fence, raised.fence,
        )  # fmt: skip
        return raised

    def finish(self, results: Sequence[tuple[Lease, Success | Failure]]) -> None:
        """Say how rounds ended. If the database does not answer, the leases run out, and the next round of each finds
        in the lake how far it got."""
        try:
            for lot in _each_table_once(results):
                for lost in self._store.finish_all(lot):
                    log.warning("[table=%s fence=%s] the lease was lost", lost.table.name, lost.fence)
            failpoint(FINISHED)
        except StateError as error:
            log.warning("the end of %d rounds could not be stored: %s", len(results), error)
        finally:
            self._drop(lease for lease, _ in results)

    def release(self, lease: Lease) -> None:
        """Give a table back without a round."""
        try:
            self._store.release(lease)
        except LeaseLost:
            pass  # whoever has it goes on
        except StateError as error:
            log.warning("[table=%s] the lease could not be given back, and will run out: %s", lease.table.name, error)
        finally:
            self._drop([lease])

    def stopping(self) -> None:
        """Say that this worker takes no more tables: whatever kills it now, no table is charged with it."""
        try:
            self._store.stopping(self._worker)
        except StateError as error:
            log.warning("the state database was not told that this worker stops: %s", error)

    def abandon(self) -> list[str]:
        """Give back what is still under way, and return the names. Its rounds may yet commit as long as the process
        lives: whoever takes the tables has a higher fence, and finds in the lake what was committed."""
        with self._lock:
            left = list(self._held.values())
        for lease in left:
            self.release(lease)
        return sorted({lease.table.name for lease in left})

    def _drop(self, leases: Iterable[Lease]) -> None:
        with self._lock:
            for lease in leases:
                self._held.pop(_key(lease), None)
                self._lost.discard(_key(lease))

    def beat_until(self, drained: threading.Event) -> None:
        """Renew the leases that are held, until the last round has ended."""
        while not drained.wait(self._lease_seconds / _HEARTBEATS_PER_LEASE):
            self.beat()

    def beat(self) -> None:
        """Say that the worker lives, and renew what it holds. Once before the first lease: whoever finds the leases of
        a worker that is gone has to know that there was one."""
        with self._lock:
            held = dict(self._held)
        try:
            renewed = self._store.heartbeat(self._worker, list(held.values()), self._lease_seconds)
        except StateError as error:
            log.warning("a heartbeat was not heard: %s", error)
        except Exception:
            # Without heartbeats a worker that works looks dead, and its tables go from hand to hand.
            log.exception("a heartbeat failed in a way that nobody foresaw")
        else:
            with self._lock:
                self._lost |= (held.keys() - {_key(each) for each in renewed}) & self._held.keys()
