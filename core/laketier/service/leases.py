"""The leases of a worker: renewed by heartbeats, and ended with the result of their rounds."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence

from laketier.kit import failpoint
from laketier.service.failpoints import FINISHED
from laketier.service.other_services import ANOTHER
from laketier.service.outage import Outage
from laketier.service.state import Failure, Lease, StateError, StateStore, StateUnavailable, Success, Worker

log = logging.getLogger(__name__)

_HEARTBEATS_PER_LEASE = 4
_TELL_AGAIN_SECONDS = 0.2
_RAISED = "the state database was lost or restored"
# By itself the database gives only fences above the raised one.
_RAISED_AGAIN = f"and it was raised here before. {ANOTHER}. Or the state database was restored again"
_Key = tuple[int, int]


def _key(lease: Lease) -> _Key:
    """A worker may get a table again after it lost the old lease, while the old round still runs."""
    return lease.table.id, lease.fence


_Ended = tuple[Lease, Success | Failure | None]


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
        self._untold: dict[_Key, _Ended] = {}
        self._raised: set[str] = set()
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        self._beating = threading.Lock()
        self._beat_at: float | None = None
        self._outage = Outage(log, "a heartbeat could not be stored")

    def __len__(self) -> int:
        with self._lock:
            return len(self._leases)

    def has(self, table: str) -> bool:
        """Whether a round of ``table`` is under way."""
        with self._lock:
            return any(lease.table.name == table for lease in self._leases.values())

    def take(self, most: int) -> Sequence[Lease]:
        """Lease due tables, ``most`` at most. Raises `StateError`."""
        if self._beat_at is not None and time.monotonic() - self._beat_at > self._lease_seconds / 2:
            self.beat()  # after a standstill it would find its own leases run out, and take them from itself
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
        name = lease.table.name
        log.warning(
            "[table=%s] the lake table has fence %d, and its lease only %d: %s. The lease continues with fence %d. No "
            "row is lost or repeated: the lake table's watermark decides",
            name, lake, lease.fence, _RAISED_AGAIN if name in self._raised else _RAISED, raised.fence,
        )  # fmt: skip
        self._raised.add(name)
        return raised

    @property
    def untold(self) -> int:
        """Results that wait for the state database."""
        with self._lock:
            return len(self._untold)

    def finish(self, results: Sequence[_Ended]) -> None:
        """Store the results of rounds (None: given back without one), and end their leases. While the database is away
        they are kept, with their leases, for `tell`. One that the database refuses is left out: its lease expires, and
        the next round of its table reads its watermark from the lake."""
        for group in _each_table_once(results):
            kept = False
            try:
                self._store_results(group)
            except StateUnavailable as error:
                kept = True
                with self._lock:
                    self._untold |= {_key(lease): (lease, result) for lease, result in group}
                log.warning("%d results of rounds are stored when the state database is back: %s", self.untold, error)
            finally:
                if not kept:
                    self._drop(lease for lease, _ in group)
        failpoint(FINISHED)

    def tell(self) -> None:
        """Store the results that wait for the state database, unless another thread does. Raises `StateUnavailable`
        while it is away."""
        if not self._telling.acquire(blocking=False):
            return
        try:
            with self._lock:
                waiting = list(self._untold.values())
            for group in _each_table_once(waiting):
                self._store_results(group)
                with self._lock:
                    for lease, _ in group:
                        self._untold.pop(_key(lease), None)
                self._drop(lease for lease, _ in group)
            if waiting:
                log.info("the state database is back: the results of %d rounds are stored", len(waiting))
        finally:
            self._telling.release()

    def tell_last(self, patience_seconds: float, hurry: threading.Event) -> None:
        """`tell` at the end of the worker: the state database has so long, or until ``hurry``, to come back."""
        deadline = time.monotonic() + patience_seconds
        while True:
            try:
                return self.tell()
            except StateUnavailable as error:
                if time.monotonic() > deadline or hurry.wait(_TELL_AGAIN_SECONDS):
                    log.warning(
                        "the results of %d rounds are not stored; their leases will expire, and the lake tables say "
                        "where each goes on: %s", self.untold, error,
                    )  # fmt: skip
                    return None

    def _store_results(self, group: Sequence[_Ended]) -> None:
        """Raises `StateUnavailable`; then the same results may be stored again, as those that were change nothing."""
        try:
            lost = {_key(lease) for lease in self._store.finish_all(group)}
        except StateUnavailable:
            raise
        except Exception as error:  # one result that can't be stored must not keep others, or end the heartbeats
            if len(group) > 1:
                for each in group:
                    self._store_results([each])
                return
            name = group[0][0].table.name
            unexpected = None if isinstance(error, StateError) else error
            log.warning(
                "[table=%s] the result of its round was refused; its lease will expire: %s", name, error,
                exc_info=unexpected,
            )  # fmt: skip
            return
        for lease, result in group:
            if result is not None and _key(lease) in lost:
                log.warning("[table=%s fence=%s] the lease was lost", lease.table.name, lease.fence)

    def release(self, lease: Lease) -> None:
        """Release a table without a round."""
        self.finish([(lease, None)])

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
            left = [lease for key, lease in self._leases.items() if key not in self._untold]
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
        """Record that the worker lives, and renew its leases, unless another thread does. Call it once before the first
        lease: otherwise nobody who finds the leases of a dead worker knows that it existed."""
        if not self._beating.acquire(blocking=False):
            return
        try:
            self._beat()
        finally:
            self._beating.release()

    def _beat(self) -> None:
        with self._lock:
            leases = dict(self._leases)
        try:
            renewed = self._store.heartbeat(self._worker, list(leases.values()), self._lease_seconds)
        except StateError as error:
            self._outage.away(error)
        except Exception:
            # Without heartbeats a worker that works looks dead, and its tables go from hand to hand.
            log.exception("a heartbeat failed with an unexpected error")
        else:
            self._outage.back()
            self._note_beat()
            with self._lock:
                self._lost |= (leases.keys() - {_key(each) for each in renewed}) & self._leases.keys()
            try:
                self.tell()
            except StateUnavailable as error:
                log.warning("the results of %d rounds could not be stored yet: %s", self.untold, error)

    def _note_beat(self) -> None:
        now, before = time.monotonic(), self._beat_at
        self._beat_at = now
        if before is not None and now - before > self._lease_seconds:
            log.warning(
                "no heartbeat was stored for %.1f s, and a lease lasts %g s: others may have taken tables of this "
                "worker over. Its process or host stood still or had too much to do, or the state database was slow or "
                "away. If this comes often, give the service a longer `lease`",
                now - before, self._lease_seconds,
            )  # fmt: skip
