"""What the state store must do, in dictionaries and lists: the model that the real one is compared with.

A time that is further ahead than any that the store would write now was written by a clock that was wrong: it is not
waited for. So each wait ends when its time has come, or when it is too far ahead to be one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from laketier.service.schedule import State
from laketier.service.state.deaths import APART_MS, MOST_RETURNS, PATIENCE_MS, SET_ASIDE_AFTER

SLACK_MS = 60_000
LEASES = 10
RUNNABLE = (State.NEW, State.SCHEDULED, State.PENDING, State.FAILED)


@dataclass
class Table:
    name: str
    table_id: str
    state: State = State.NEW
    priority: int = 0
    freshness: int = 60
    fence: int = 0
    owner: str | None = None
    lease_until: int = 0
    due_at: int = 0
    next_try_at: int = 0
    last_tiered_at: int | None = None
    failures: int = 0
    paused: bool = False
    by_hand: bool = False
    back: bool = False
    leased_at: int = 0
    deaths: int = 0
    suspect: bool = False
    alone: bool = False


@dataclass
class Model:
    """Tables by their number in the store. ``queue``: numbers in the order in which they joined."""

    longest_wait_ms: int
    tables: dict[int, Table] = field(default_factory=dict)
    queue: list[int] = field(default_factory=list)
    ended: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    stopping: set[str] = field(default_factory=set)

    def note(self, number: int, *how: Any) -> None:
        """The end of a lease. Each ends once, so that ``ended`` is in the order of the ends."""
        self.ended[number, self.tables[number].fence] = how

    def become(self, number: int, state: State) -> None:
        self.tables[number].state = state
        self.tables[number].owner = None
        if number in self.queue:
            self.queue.remove(number)
        if state is State.PENDING:
            self.queue.append(number)

    def enqueue_due(self, worker: str, lease_ms: int, now: int) -> None:
        def is_over(at: int, longest_ms: int) -> bool:
            return at <= now or at > now + longest_ms + SLACK_MS

        rows = self.tables.items()
        waiting = [(n, t) for n, t in rows if t.state in (State.NEW, State.SCHEDULED)]
        failed = [(n, t) for n, t in rows if t.state is State.FAILED]
        leased = [(n, t) for n, t in rows if t.state is State.TIERING]
        # Those whose time is ahead join as if it were now.
        due = [(min(t.due_at, now), n) for n, t in waiting if is_over(t.due_at, t.freshness * 1000)]
        retried = [(min(t.next_try_at, now), n) for n, t in failed if is_over(t.next_try_at, self.longest_wait_ms)]
        expired = [(t.lease_until, n) for n, t in leased if is_over(t.lease_until, LEASES * lease_ms)]
        for _, number in sorted(due) + sorted(retried):
            self.become(number, State.PENDING)
        for _, number in sorted(expired):
            table = self.tables[number]
            owner = table.owner or ""
            silent = owner != worker and owner in self.seen and is_over(self.seen[owner] + lease_ms, lease_ms)
            dead = silent and owner not in self.stopping and not self.has_returned(number, owner)
            table.suspect = table.suspect or dead
            table.deaths += dead and table.alone
            guilty = dead and table.alone and table.deaths >= SET_ASIDE_AFTER
            if guilty and self.has_others(number) and not self.others_are_aside(number):
                self.note(number, owner, "stopped", None)
                self.become(number, State.STOPPED)
                continue
            self.note(number, owner, "expired", None)
            if guilty and not table.paused:
                table.failures += 1
                self.become(number, State.FAILED)
            else:
                self.give_back(number)

    def has_returned(self, number: int, owner: str) -> bool:
        """Whether the worker lost a lease of the table before, and lived to take it again; not so often, though, that
        the table may be what freezes it."""
        lost = [how for key, how in self.ended.items() if key[0] == number and how[:2] == (owner, "expired")]
        return 0 < len(lost) < MOST_RETURNS

    def has_others(self, number: int) -> bool:
        """Whether the service has another table."""
        others = [table.state for other, table in self.tables.items() if other != number]
        return any(state not in (State.DROPPED, State.RECREATED) for state in others)

    def others_are_aside(self, number: int) -> bool:
        """Whether another table was set aside, and no round went well since."""
        aside = [
            place
            for place, (key, how) in enumerate(self.ended.items())
            if how[1] == "stopped" and key[0] != number and self.tables[key[0]].state is State.STOPPED
            and self.tables[key[0]].deaths >= SET_ASIDE_AFTER
        ]  # fmt: skip
        good = [place for place, how in enumerate(self.ended.values()) if how[1] in ("tiered", "force-completed")]
        return bool(aside) and max(aside) > max(good, default=-1)

    def give_back(self, number: int) -> None:
        self.become(number, State.PAUSED if self.tables[number].paused else State.PENDING)

    def acquire(self, worker: str, limit: int, lease_ms: int, now: int) -> list[tuple[int, int]]:
        self.enqueue_due(worker, lease_ms, now)
        leased = [table for table in self.tables.values() if table.state is State.TIERING and table.owner == worker]
        apart = any(t.suspect and abs(now - t.leased_at) < APART_MS for t in leased)
        queue = [number for number in self.queue if not (apart and self.tables[number].suspect)]
        first = sorted(queue, key=lambda number: -self.tables[number].priority)[:limit]
        young = [table for table in leased if abs(now - table.leased_at) < PATIENCE_MS]
        if first and self.tables[first[0]].suspect:
            first = [] if young else first[:1]
        else:
            first = [] if any(t.suspect for t in young) else [n for n in first if not self.tables[n].suspect]
        suspect = bool(first) and self.tables[first[0]].suspect
        for table in leased if first else ():
            table.alone = table.alone and table.suspect and not suspect
        alone = not any(table.suspect for table in leased) if suspect else len(first) == 1 and not leased
        for number in first:
            self.become(number, State.TIERING)
            table = self.tables[number]
            table.fence, table.owner, table.lease_until = table.fence + 1, worker, now + lease_ms
            table.leased_at, table.alone = now, alone
        return [(number, self.tables[number].fence) for number in first]

    def holds(self, number: int, fence: int, worker: str) -> bool:
        table = self.tables[number]
        return table.state is State.TIERING and (table.fence, table.owner) == (fence, worker)

    def end(self, number: int, fence: int, worker: str, ending: str, epoch: int | None, now: int) -> bool:
        """Whether the lease was held, or was ended just so before."""
        if not self.holds(number, fence, worker):
            return self.ended.get((number, fence)) == (worker, ending, epoch)
        self.note(number, worker, ending, epoch)
        table = self.tables[number]
        if ending in ("tiered", "force-completed"):
            table.deaths, table.suspect = 0, False
            early = min(max(0, now - table.due_at) * 1.5, table.freshness * 500)
            table.failures, table.due_at = 0, now + table.freshness * 1000 - int(early)
        if ending == "tiered":
            table.last_tiered_at = now
        if ending in ("failed", "stopped"):
            table.failures += 1
            table.suspect = table.suspect and table.deaths > 0
        if ending in ("force-completed", "released"):
            self.give_back(number)
        elif ending == "stopped":
            self.become(number, State.STOPPED)
        elif table.paused:
            self.become(number, State.PAUSED)
        else:
            self.become(number, State.SCHEDULED if ending == "tiered" else State.FAILED)
        return True

    def pause(self, number: int) -> bool:
        table = self.tables[number]
        if table.state not in (*RUNNABLE, State.TIERING, State.PAUSED):
            return False
        table.paused = True
        if table.state in RUNNABLE:
            self.become(number, State.PAUSED)
        return True

    def resume(self, number: int, now: int) -> bool:
        table = self.tables[number]
        if table.state is State.TIERING and table.paused:
            table.paused = False
            return True
        by_hand = table.state is State.DROPPED and table.by_hand
        if table.state not in (State.PAUSED, State.STOPPED) and not by_hand and not table.back:
            return False
        table.paused = table.by_hand = table.back = False
        table.failures, table.deaths, table.suspect, table.due_at = 0, 0, False, now
        self.become(number, State.SCHEDULED)
        return True

    def retier(self, number: int, now: int) -> bool:
        table = self.tables[number]
        if table.state in (State.NEW, State.SCHEDULED):
            table.due_at = now
        elif table.state is State.FAILED:
            table.next_try_at = now
        return table.state in RUNNABLE

    def drop(
        self, number: int, now: int, ending: str = "dropped", state: State = State.DROPPED, by_hand: bool = True
    ) -> bool:
        table = self.tables[number]
        if table.state is State.RECREATED:
            return False
        table.by_hand = table.by_hand or by_hand
        if table.state is State.TIERING:
            self.note(number, table.owner, ending, None)
        self.become(number, state)
        return True

    def register(self, wanted: dict[str, tuple[str, int, int]], now: int) -> list[Table]:
        """``wanted``: name → (table id, priority, freshness). Returns the rows that are to be made."""
        known = {table.name for table in self.tables.values()}
        new = [Table(n, w[0], State.NEW, w[1], w[2], due_at=now) for n, w in wanted.items() if n not in known]
        for name in sorted(known, key=lambda n: min(i for i, t in self.tables.items() if t.name == n)):
            rows = [number for number, table in self.tables.items() if table.name == name]
            if name not in wanted:
                for number in rows:
                    if self.tables[number].state not in (State.DROPPED, State.RECREATED):
                        self.drop(number, now, by_hand=False)
                continue
            table_id, priority, freshness = wanted[name]
            same = [number for number in rows if self.tables[number].table_id == table_id]
            for number in rows:
                self.tables[number].back = False
            if same and self.tables[same[0]].state is State.RECREATED:
                self.tables[same[0]].back = True
                continue
            ended = [self.tables[number] for number in rows if self.tables[number].state is not State.RECREATED]
            for number in rows:
                if self.tables[number].table_id != table_id:
                    self.drop(number, now, "recreated", State.RECREATED, by_hand=False)
            if not same:
                fence = max(self.tables[number].fence for number in rows)
                made = Table(name, table_id, State.NEW, priority, freshness, fence, due_at=now)
                made.paused, made.by_hand = any(t.paused for t in ended), any(t.by_hand for t in ended)
                if made.paused or made.by_hand:
                    made.state = State.DROPPED if made.by_hand else State.PAUSED
                new.append(made)
            else:
                self._update(same[0], priority, freshness, now)
        return new

    def _update(self, number: int, priority: int, freshness: int, now: int) -> None:
        table = self.tables[number]
        if table.state is State.DROPPED and not table.by_hand:
            table.due_at = now
            self.become(number, State.PAUSED if table.paused else State.SCHEDULED)
        if (priority, freshness) == (table.priority, table.freshness):
            return
        if priority != table.priority and table.state is State.PENDING:
            self.queue.remove(number)
            self.queue.append(number)
        table.priority, table.freshness = priority, freshness
        if table.last_tiered_at is not None:
            table.due_at = table.last_tiered_at + freshness * 1000
