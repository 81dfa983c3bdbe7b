"""The records of the state store. Times are ms since the epoch, UTC, by the store's clock."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version

from laketier.service.schedule import State, is_fresh, round_deadline
from laketier.service.state.upkeep_records import Upkeep

SLACK_MS = 60_000
"""A time of the database that is further ahead of its clock was written while that clock was wrong."""
LEASES = 10
"""Other workers' leases may be longer than one's own, while their files are changed one by one; hardly by so much."""


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A table that the service is to tier. ``table_id``: the source's identity of it (`LogTable.table_id`).
    ``target``: where it goes, as text that shows no secret. ``warehouse``: the one of the target, for `is_same_place`;
    None where it is not known. ``priority``: higher ones go first. ``refusal``: why it
    can't be tiered as the file and the source have it; it is STOPPED then. ``table_id`` is empty for a table whose log
    could not be opened: it is FAILED then, with ``refusal``, until it is registered with its id."""

    source: str
    table: str
    table_id: str
    format: str
    target: str
    pipeline: str
    warehouse: str | None = None
    freshness_seconds: int = 180
    priority: int = 0
    refusal: str | None = None

    @property
    def name(self) -> str:
        """The name for people: the source's name, a dot, and the table's name there."""
        return f"{self.source}.{self.table}"


@dataclass(frozen=True)
class RegistrationResult:
    """The names of the tables that `StateStore.register` changed, by kind of change.

    A table in ``moved`` is STOPPED: its target, its warehouse or its pipeline changed.
    """

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RegisteredTable:
    """A registered table, as its row was when it was read.

    ``offsets`` (JSON), ``epoch`` and ``snapshot_id`` are a cache of what the lake table's own watermark says, which is
    the truth. ``lag_offsets`` and ``lag_seconds``: as the last round's `Success` told them. ``error`` says why a table
    is FAILED, STOPPED, DROPPED or RECREATED.
    """

    id: int
    service: str
    source: str
    source_table: str
    table_id: str
    format: str
    target: str
    pipeline: str
    priority: int
    freshness_seconds: int
    state: State
    paused: bool
    dropped_by_hand: bool
    error: str | None
    fence: int
    lease_owner: str | None
    leased_at: int | None
    lease_until: int | None
    registered_at: int
    due_at: int
    enqueued_at: int | None
    last_tiered_at: int | None
    failures: int
    next_try_at: int | None
    epoch: int | None
    offsets: str | None
    snapshot_id: str | None
    lag_offsets: int | None
    lag_seconds: float | None
    rounds_total: int
    rows_total: int
    bytes_total: int
    files_total: int
    bad_records_total: int
    deaths: int
    """Workers that died in rounds of it, in a row, and were charged to it (`laketier.service.state.deaths`)."""
    suspect: bool
    """A worker died while it had this table among others. Its rounds run alone until one goes well."""
    alone: bool
    """While it is TIERING: whether its worker has had no other table, or no other suspect, since it took this one. Then
    the worker's death is charged to it."""
    warehouse: str | None = None
    """Of the target. None where it was registered by a laketier that did not store it."""

    @property
    def name(self) -> str:
        """The name for people: the source's name, a dot, and the table's name there."""
        return f"{self.source}.{self.source_table}"


@dataclass(frozen=True)
class Worker:
    """A process that tiers. ``id`` is unique for each start of one."""

    id: str
    host: str
    pid: int
    version: str

    @classmethod
    def here(cls) -> Worker:
        """The worker that runs here."""
        host = socket.gethostname()
        try:
            installed = version("laketier")
        except PackageNotFoundError:
            installed = "unknown"
        return cls(f"{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}", host, os.getpid(), installed)


@dataclass(frozen=True)
class WorkerSeen:
    """A worker, and when it was heard of. ``stopping_at``: when it was told to stop, or had nothing left to do."""

    worker: Worker
    started_at: int
    heartbeat_at: int
    stopping_at: int | None = None

    def is_heard_of(self, now: int, lease_seconds: float) -> bool:
        """Whether it gave a sign within a lease's time. One that is ahead of the clock is none: it may be of a worker
        that is long gone."""
        return now - round(lease_seconds * 1000) <= self.heartbeat_at <= now + SLACK_MS


@dataclass(frozen=True)
class Lease:
    """The right to tier a table. ``fence`` is the token's. ``deadline``: from then on another worker may take it over
    (ms since the epoch, by the clock of the store that gave it)."""

    table: RegisteredTable
    fence: int
    worker: str
    deadline: int

    @property
    def round_deadline(self) -> int:
        """When the round is to be force-completed."""
        return round_deadline(self.table.leased_at or 0, self.table.freshness_seconds)


class LeaseEnd(StrEnum):
    """How a lease ended."""

    TIERED = "tiered"
    FORCE_COMPLETED = "force-completed"
    FAILED = "failed"
    STOPPED = "stopped"
    RELEASED = "released"
    EXPIRED = "expired"
    DROPPED = "dropped"
    RECREATED = "recreated"


@dataclass(frozen=True, kw_only=True)
class Success:
    """A round that was published, or found nothing to read.

    ``force_completed``: it ended at its deadline with rows left to read, so the table joins the queue again at once.
    ``read_until_at``: when the end of its range was looked up; unless it was force-completed, what the lake holds is as
    fresh as that. The moment of finishing when None.
    ``lag_offsets``: offsets that the source held beyond its range then; at least as many as records.
    ``lag_seconds``: how much newer, at most, the newest record was that the lake lacked than all that it held. 0 when
    it lacked none, None where nobody knows. ``bad_records``: those that were left out.
    """

    force_completed: bool = False
    epoch: int | None = None
    rows: int = 0
    bytes: int = 0
    files: int = 0
    snapshot_id: str | None = None
    range_start: str | None = None
    range_end: str | None = None
    offsets: str | None = None
    lag_offsets: int | None = None
    lag_seconds: float | None = None
    bad_records: int = 0
    read_until_at: int | None = None


class Death(StrEnum):
    """What died in a round whose worker lives to tell it."""

    ENGINE = "engine"
    """With all that the worker ran: as if the worker had died."""
    TASK = "task"
    """A process that had no other table's tasks."""


@dataclass(frozen=True)
class Failure:
    """A round that was not published. ``retryable``: see `laketier.service.schedule.is_retryable`. ``at_once``: and it
    may well go better right now, so it waits for its next try only when it failed a few times in a row. ``death``: of
    what ran the round, which may be charged to the table (`laketier.service.state.deaths`)."""

    error: BaseException | str
    retryable: bool
    at_once: bool = False
    death: Death | None = None


@dataclass(frozen=True)
class RoundRecord:
    """An ended lease."""

    tiering_table: int
    fence: int
    worker: str
    began_at: int
    ended_at: int
    ending: LeaseEnd
    epoch: int | None = None
    rows: int = 0
    bytes: int = 0
    files: int = 0
    bad_records: int = 0
    snapshot_id: str | None = None
    range_start: str | None = None
    range_end: str | None = None
    lag_offsets: int | None = None
    lag_seconds: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class TableStatus:
    """A table as `laketier service status` shows it. ``at``: when it was looked at."""

    table: RegisteredTable
    last_round: RoundRecord | None
    at: int
    upkeep: Upkeep | None = None
    """Of its indexes; None where no worker has looked after any."""

    @property
    def behind_seconds(self) -> float | None:
        """How old what the lake holds is at most. None before the first round, and where a clock that was ahead told
        when the last one was: nobody knows then."""
        last = self._tiered_at
        return None if last is None else max(0, self.at - last) / 1000

    @property
    def fresh(self) -> bool:
        """Whether that is within the table's freshness."""
        return is_fresh(self.at, self._tiered_at, self.table.freshness_seconds)

    @property
    def _tiered_at(self) -> int | None:
        last = self.table.last_tiered_at
        return None if last is None or last > self.at + SLACK_MS else last
