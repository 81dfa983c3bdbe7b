"""The leases of a worker: renewed by heartbeats, and ended with the result of their rounds."""

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
    """A worker may get a table again after it lost the old lease, while the old round still runs."""
    return lease.table.id, lease.fence


_Ended = tuple[Lease, Success | Failure]


def _each_table_once(results: Sequence[_Ended]) -> list[list[_Ended]]:
    """Group ``results`` so that no group has a table twice, older leases first. A worker that lost a lease and got the
    table again may end both rounds at once."""
    groups: list[list[_Ended]] = []
    for result in sorted(results, key=lambda each: each[0].fence):
        table = result[0].table.id
        free = next((group for group in groups if all(lease.table.id != table for lease, _ in group)), None)
        if free is None:
            groups.append([result])
        else:
            free.append(result)
    return groups


class WorkerLeases:
    """The leases of one worker. Safe in threads."""

    def __init__(self, store: StateStore, worker: Worker, lease_seconds: float) -> None:
        self._store = store
        self._worker = worker
        self._lease_seconds = lease_seconds
        self._leases: dict[_Key, Lease] = {}
        self._lost: set[_Key] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._leases)

    def has(self, table: str) -> bool:
        """Whether a round of ``table`` is under way."""
        with self._lock:
            return any(lease.table.name == table for lease in self._leases.values())

    def take(self, most: int) -> Sequence[Lease]:
        """Lease due tables, ``most`` at most. Raises `StateError`."""
        leases = self._store.acquire(self._worker, most, self._lease_seconds, busy=len(self) > 0)
        with self._lock:
            self._leases |= {_key(lease): lease for lease in leases}
        return leases

    def is_lost(self, lease: Lease) -> bool:
        """Whether the lease is known to be lost. Only heartbeats find out."""
        with self._lock:
            return _key(lease) in self._lost

    def raise_fence(self, lease: Lease, lake: int) -> Lease:
        """Raise the fence of a lease above ``lake``, the fence that the lake table knows.

        Returns:
            The lease with its new fence.

        Raises:
            LeaseLost: ``lake`` is the fence of a worker that took the table over.
            StateError: The state database does not answer.
        """
        raised = self._store.raise_fence(lease, lake)
        with self._lock:
            self._leases.pop(_key(lease), None)
            self._leases[_key(raised)] = raised
        log.warning(
            "[table=%s] the lake table has fence %d, and its lease only %d: the state database was lost or restored. "
            "The lease continues with fence %d. No row is lost or repeated: the lake table's watermark decides",
            lease.table.name, lake, lease.fence, raised.fence,
        )  # fmt: skip
        return raised

    def finish(self, results: Sequence[tuple[Lease, Success | Failure]]) -> None:
        """Store the results of rounds, and end their leases. When the database does not answer, the leases expire, and
        the next round of each table reads its watermark from the lake."""
        try:
            for group in _each_table_once(results):
                for lost in self._store.finish_all(group):
                    log.warning("[table=%s fence=%s] the lease was lost", lost.table.name, lost.fence)
            failpoint(FINISHED)
        except StateError as error:
            log.warning(
                "the results of %d rounds could not be stored; their leases will expire: %s", len(results), error
            )
        finally:
            self._drop(lease for lease, _ in results)

    def release(self, lease: Lease) -> None:
        """Release a table without a round."""
        try:
            self._store.release(lease)
        except LeaseLost:
            pass  # whoever has it goes on
        except StateError as error:
            log.warning("[table=%s] the lease could not be released, and will expire: %s", lease.table.name, error)
        finally:
            self._drop([lease])

    def stopping(self) -> None:
        """Record that this worker takes no more tables. If it is killed now, its death is charged to no table."""
        try:
            self._store.stopping(self._worker)
        except StateError as error:
            log.warning("the state database could not record that this worker stops: %s", error)

    def abandon(self) -> list[str]:
        """Release the leases whose rounds are still under way. Returns the names of their tables.

        These rounds may still commit while the process lives. The next worker has a higher fence, and reads from the
        lake what was committed.
        """
        with self._lock:
            left = list(self._leases.values())
        for lease in left:
            self.release(lease)
        return sorted({lease.table.name for lease in left})

    def _drop(self, leases: Iterable[Lease]) -> None:
        with self._lock:
            for lease in leases:
                self._leases.pop(_key(lease), None)
                self._lost.discard(_key(lease))

    def beat_until(self, drained: threading.Event) -> None:
        """Renew the leases until ``drained`` is set, after the last round."""
        while not drained.wait(self._lease_seconds / _HEARTBEATS_PER_LEASE):
            self.beat()

    def beat(self) -> None:
        """Record that the worker lives, and renew its leases. Call it once before the first lease: otherwise nobody who
        finds the leases of a dead worker knows that it existed."""
        with self._lock:
            leases = dict(self._leases)
        try:
            renewed = self._store.heartbeat(self._worker, list(leases.values()), self._lease_seconds)
        except StateError as error:
            log.warning("a heartbeat could not be stored: %s", error)
        except Exception:
            # Without heartbeats a worker that works looks dead, and its tables go from hand to hand.
            log.exception("a heartbeat failed with an unexpected error")
        else:
            with self._lock:
                self._lost |= (leases.keys() - {_key(each) for each in renewed}) & self._leases.keys()
