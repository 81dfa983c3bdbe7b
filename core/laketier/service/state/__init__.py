"""The state of the service: tables, leases, rounds and workers, in SQLite or PostgreSQL.

The life of a table::

    NEW -> SCHEDULED -> PENDING -> TIERING -+-> TIERED -> SCHEDULED     finish: due again after its freshness
                          ^                 +-> PENDING                 finish(force_completed), release, lease expired
                          |                 +-> FAILED -> PENDING       fail: after a backoff
                          |                 +-> STOPPED                 fail(retryable=False): a person resumes it
                          +--- SCHEDULED <------ PAUSED, STOPPED, DROPPED   resume

`laketier.service.schedule.TRANSITIONS` has them all. The order of calls in a worker::

    store = StateStore.open("sqlite:///state.db", service="orders")
    store.register(tables)                         # at the start, and whenever the sources are listed again
    worker = Worker.here()
    store.heartbeat(worker, (), 120)               # records the worker
    leases = store.acquire(worker, 50, 120)        # lease.fence is the fence of the round's token
    leases = store.heartbeat(worker, leases, 120)  # every few seconds, while rounds run; missing leases are lost
    lost = store.finish_all([(lease, Success(…)), (other, Failure(error, is_retryable(error)))])

A worker that dies calls nothing: once its leases have run out, `acquire` puts its tables back into the queue, and
their next leases have higher fences. Should it live after all, its `finish` raises `LeaseLost`, and the lake table,
whose watermark has seen the higher fence, refuses its commit. No clock has a part in that: see
`laketier.service.state.leasing`.

When `finish` raises `StateUnavailable`, whether it was stored is unknown: call it again with the same results.
"""

from laketier.service.state.database import may_pass
from laketier.service.state.errors import LeaseLost, StateError, StateUnavailable
from laketier.service.state.records import (
    Death,
    Failure,
    Lease,
    LeaseEnd,
    RegisteredTable,
    Registration,
    RegistrationResult,
    RoundRecord,
    Success,
    TableStatus,
    Worker,
    WorkerSeen,
)
from laketier.service.state.store import StateStore
from laketier.service.state.upkeep_records import IndexFigures, Upkeep, UpkeepLease

__all__ = [
    "Death",
    "Failure",
    "IndexFigures",
    "Lease",
    "LeaseEnd",
    "LeaseLost",
    "RegisteredTable",
    "Registration",
    "RegistrationResult",
    "RoundRecord",
    "StateError",
    "StateStore",
    "StateUnavailable",
    "Success",
    "TableStatus",
    "Upkeep",
    "UpkeepLease",
    "Worker",
    "WorkerSeen",
    "may_pass",
]
