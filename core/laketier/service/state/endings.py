"""What the end of a lease makes of its table, and what is recorded of its round."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from laketier.service.schedule import Backoff, State, due_at, move
from laketier.service.state.enqueueing import given_back
from laketier.service.state.records import Failure, Lease, LeaseEnd, RegisteredTable, RoundRecord, Success
from laketier.service.state.rows import NOT_IN_QUEUE, UNLEASED, Queue, storable
from laketier.spi.redaction import redacted

Result = Success | Failure | None
"""How a lease ends; None: given back."""
TRIES_AT_ONCE = 3
"""After so many failures in a row a table waits, also where the next try may well go better: another writer that
commits all the time must not keep a worker busy for nothing."""

_ERROR_CHARACTERS = 4000


@dataclass(frozen=True)
class Retries:
    """When tables that failed are tried again. ``now``: ms since the epoch, by the database's clock."""

    now: int
    backoff: Backoff
    draw: random.Random

    def next_try_at(self, failure: Failure, failures: int) -> int:
        """After so many ``failures`` in a row, the last of which is ``failure``."""
        at_once = failure.at_once and failures <= TRIES_AT_ONCE
        return self.now if at_once else self.now + self.wait_ms(failures)

    def wait_ms(self, failures: int) -> int:
        """How long to wait after so many of them in a row."""
        return self.backoff.wait_ms(failures, self.draw)

    @property
    def longest_ms(self) -> int:
        """No wait is longer."""
        return round(self.backoff.longest_seconds * 1000)


def after(table: RegisteredTable, result: Result, queue: Queue, retries: Retries) -> dict[str, Any]:
    """The columns of a table whose lease ends with a result. Those of all results are the same, as one statement sets
    them."""
    now = retries.now
    same = {name: getattr(table, name) for name in _ENDING_COLUMNS}
    if result is None:
        return {**same, **given_back(table, queue, now)}
    if isinstance(result, Failure):
        return {**same, **after_failure(table, result, retries)}
    # A round's own clock may be another one: what it looked up was there between its lease's begin and now.
    read_until = min(now, max(table.leased_at or 0, now if result.read_until_at is None else result.read_until_at))
    values: dict[str, Any] = {
        **same,
        **NOT_IN_QUEUE,
        "last_tiered_at": _past(table.last_tiered_at, now) if result.force_completed else read_until,
        "due_at": due_at(read_until, table.freshness_seconds, max(0, now - table.due_at)),
        "failures": 0,
        "deaths": 0,
        "suspect": False,
        "error": None,
        "offsets": table.offsets if result.offsets is None else result.offsets,
        "epoch": table.epoch if result.epoch is None else result.epoch,
        "snapshot_id": table.snapshot_id if result.snapshot_id is None else result.snapshot_id,
        "lag_offsets": result.lag_offsets,
        "lag_seconds": result.lag_seconds,
        "rounds_total": table.rounds_total + 1,
        "rows_total": table.rows_total + result.rows,
        "bytes_total": table.bytes_total + result.bytes,
        "files_total": table.files_total + result.files,
        "bad_records_total": table.bad_records_total + result.bad_records,
    }
    if result.force_completed:
        return {**values, **given_back(table, queue, now)}
    then = State.PAUSED if table.paused else State.SCHEDULED
    return {**values, "state": move(table.name, table.state, State.TIERED, then).value}


def _past(tiered_at: int | None, now: int) -> int | None:
    """None where a clock that was ahead set it: nobody knows how old the table is."""
    return None if tiered_at is None or tiered_at > now else tiered_at


_ENDING_COLUMNS = (
    *("state", "enqueued_at", "next_try_at", "last_tiered_at", "due_at", "failures", "error", *UNLEASED),
    *("deaths", "suspect"),
    *("offsets", "epoch", "snapshot_id", "lag_offsets", "lag_seconds"),
    *("rounds_total", "rows_total", "bytes_total", "files_total", "bad_records_total"),
)


def after_failure(table: RegisteredTable, failure: Failure, retries: Retries) -> dict[str, Any]:
    """The columns that a failure changes."""
    failures = table.failures + 1
    # It did no harm this time: it need not be alone for that again, unless a death has been charged to it.
    suspect = table.suspect and table.deaths > 0
    values: dict[str, Any] = {**NOT_IN_QUEUE, "failures": failures, "error": text_of(failure), "suspect": suspect}
    if not failure.retryable:
        return {**values, "state": move(table.name, table.state, State.STOPPED).value}
    state = move(table.name, table.state, State.FAILED)
    if table.paused:
        return {**values, "state": move(table.name, state, State.PAUSED).value}
    return {**values, "state": state.value, "next_try_at": retries.next_try_at(failure, failures)}


def ending(result: Result) -> LeaseEnd:
    """How the record of a round names its end."""
    if result is None:
        return LeaseEnd.RELEASED
    if isinstance(result, Failure):
        return LeaseEnd.FAILED if result.retryable else LeaseEnd.STOPPED
    return LeaseEnd.FORCE_COMPLETED if result.force_completed else LeaseEnd.TIERED


def of_death(result: Result) -> bool:
    """Whether it may have set its table aside."""
    return isinstance(result, Failure) and result.death is not None


def text_of(failure: Failure) -> str:
    """A failure's error as the database keeps it: without secrets, and cut."""
    error = failure.error
    text = error if isinstance(error, str) else str(error) or type(error).__name__
    return redacted(storable(text))[:_ERROR_CHARACTERS]


def round_of(table: RegisteredTable, lease: Lease, result: Result, now: int) -> RoundRecord:
    """The record of a round that ends at ``now``."""
    began = now if table.leased_at is None else table.leased_at
    ended = RoundRecord(table.id, lease.fence, lease.worker, began, now, ending(result))
    if isinstance(result, Failure):
        return replace(ended, error=text_of(result))
    if result is None:
        return ended
    return replace(
        ended,
        epoch=result.epoch,
        rows=result.rows,
        bytes=result.bytes,
        files=result.files,
        bad_records=result.bad_records,
        snapshot_id=result.snapshot_id,
        range_start=result.range_start,
        range_end=result.range_end,
        lag_offsets=result.lag_offsets,
        lag_seconds=result.lag_seconds,
    )
