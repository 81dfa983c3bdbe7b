"""A short life of a table under some settings: made, written in two rounds, written again, read, and dropped. Each of
many settings is tried, several at once. One that is refused by its name is tried alone, and then the rest; otherwise
halves of them are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import pyarrow as pa

from laketier.maintenance.orphans import list_orphans
from laketier.spi import Feature, LaketierError, Leaf, OffsetsExpired, Op, SnapshotNotFound
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.expect import HarnessFailed, expect, told
from laketier_conformance.lake import QUICK, Lake, Table, batch, ids_of, read_plan, token

FIRST, SECOND = (ids_of(0, 0), ids_of(0, 1)), (ids_of(1),)
_FIRST = [i for task in FIRST for i in task]
_ALL = [*_FIRST, *SECOND[0]]
_names = count()

_FEW = 6


@dataclass(frozen=True)
class Setting:
    """An option, or a property of a table."""

    key: str
    value: Any
    is_option: bool = True

    def __str__(self) -> str:
        return f"{self.key} = {self.value!r:.60}"


def one_of_each(values: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """One value of each property at a time; each value is in one of them at least."""
    most = max(map(len, values.values()), default=0)
    for number in range(most):
        yield {key: each[number % len(each)] for key, each in values.items() if each}


Judge = Callable[[Setting, LaketierError], None]
"""Fails the test unless a setting may be refused like that."""


class ShortLives:
    """Tables of one warehouse, which is opened by ``usual`` options. ``past``: what each round did is read, too."""

    def __init__(self, usual: Lake, *, past: bool = False) -> None:
        self._usual = usual
        self._past = past

    def prove(self, some: Sequence[Setting], judge: Judge) -> bool:
        """All of these together; where they fail, halves of them. Tells whether one was refused by itself."""
        __tracebackhide__ = True
        refusal: LaketierError | None = None
        failure: AssertionError | None = None
        try:
            refusal = self.refusal(some)
        except HarnessFailed:
            raise
        except AssertionError as error:
            if len(some) == 1:
                raise
            failure = error
        if refusal is None and failure is None:
            return False
        if refusal is not None and len(some) == 1:
            judge(some[0], refusal)
            return True
        was_refused = [self.prove(part, judge) for part in _parts(some, refusal)]
        if failure is not None:
            raise self._of_fewest(some, failure)
        if refusal is not None and not any(was_refused):
            named = any(each.key in str(refusal) for each in some)
            assert named, f"a refusal of settings that contradict each other names one of them: found {told(refusal)}"
        return any(was_refused)

    def _of_fewest(self, some: Sequence[Setting], failure: AssertionError) -> AssertionError:
        """The failure of as few of these together as are found to fail."""
        left = list(some)
        for each in some:
            fewer = [other for other in left if other is not each]
            try:
                self.refusal(fewer)
            except HarnessFailed:
                raise
            except AssertionError as error:
                left, failure = fewer, error
        return failure

    def refusal(self, some: Sequence[Setting]) -> LaketierError | None:
        """One life. The error by which the format refused the settings, on the driver, before a task had a row. Any
        other error, and other rows than those that were written, fail the test."""
        __tracebackhide__ = True
        options = {each.key: each.value for each in some if each.is_option}
        properties = {each.key: str(each.value) for each in some if not each.is_option}
        told_of = ", ".join(map(str, some[:_FEW])) + (", …" if len(some) > _FEW else "")
        under = dataclasses.replace(self._usual, options={**self._usual.options, **options})
        usual = self._usual if options else under
        name = f"db.short_{next(_names)}"
        try:
            table = under.create(name=name, properties=properties)
        except (AssertionError, HarnessFailed):
            raise
        except LaketierError as error:
            self._is_not_there(name, f"a table under {told_of} is refused: {told(error)}")
            return error
        except Exception as error:
            raise AssertionError(f"a table under {told_of}: expected it, or a refusal, found {told(error)}") from error
        try:
            factory = table.factory
            TieringRound(factory, token=token(0), policy=QUICK).begin()
        except (AssertionError, HarnessFailed):
            raise
        except LaketierError as error:
            return error
        except Exception as error:
            raise AssertionError(f"a round under {told_of}: expected it, or a refusal, found {told(error)}") from error
        with _well(f"a round under {told_of}, which no driver refused"):
            begun = self._latest(table)
            messages = [table.stage(ids, index, factory) for index, ids in enumerate(FIRST)]
            first = TieringRound(factory, token=token(0), policy=QUICK)
            first.begin()
            done = first.commit_messages(messages)
            middle = self._latest(table)
        expect(done.outcome, RoundOutcome.PUBLISHED, f"a round under {told_of}")
        # Somebody else has not set it. Where he sees the table at all, he sees its rows, and may add to them.
        other = Table(usual, table.path)
        rows = None if usual is under else _read(other, f"a table that was made under {told_of} is read without it")
        if rows is not None:
            _same(rows, _FIRST, f"a table that was made under {told_of} is read without it")
        with _well(f"a second round of a table under {told_of}"):
            if rows is None or not _goes_on(other):
                table.append(1, *SECOND)
            replayed = table.append(1, *SECOND).outcome
        expect(replayed, RoundOutcome.ALREADY_THERE, f"a replay under {told_of}")
        with _well(f"a read under {told_of}"):
            rows, found, one = table.read(), table.read(filters=(Leaf("id", Op.GE, 1_002),)), self._one(table)
        _same(rows, _ALL, f"a read under {told_of}")
        _same(found, [i for i in _ALL if i >= 1_002], f"a read with a filter under {told_of}")
        expect(one, [{"name": "row 1003", "id": 1_003}], f"a read of two columns and one row under {told_of}")
        if self._past:
            self._has_its_past(table, done.snapshot_id, (begun, middle), told_of)
        if self._usual.declares(Feature.DROP_TABLE):
            with _well(f"a drop under {told_of}"):
                under.storage.catalog().drop_table(table.path)
        return None

    def _is_not_there(self, name: str, doing: str) -> None:
        """Whoever was refused may ask again under other settings, and gets the table that he asks for."""
        with _well(f"{doing}, and the tables are listed"):
            listed = [str(path) for path in self._usual.storage.catalog().list_tables()]
        assert name not in listed, f"{doing}. Expected that it is not there, and it is listed"

    def _has_its_past(self, table: Table, first: int | None, versions: tuple[int, int], told_of: str) -> None:
        """The snapshot of the first round, and what each of the two appended. Settings may let them end. Nothing is
        left over that somebody would have to collect."""
        if self._usual.declares(Feature.TIME_TRAVEL):
            doing = f"the snapshot of the first round is read under {told_of}"
            with suppress(SnapshotNotFound), _well(doing, but=(SnapshotNotFound,)):
                _same(table.read(snapshot_id=first), _FIRST, f"the snapshot of the first round under {told_of}")
        if self._usual.declares(Feature.INCREMENTAL_READ):
            begun, middle = versions
            for start, end, ids in ((begun, middle, _FIRST), (middle, self._latest(table), SECOND[0])):
                doing = f"versions {start} to {end} are read under {told_of}"
                with suppress(OffsetsExpired), _well(doing, but=(OffsetsExpired,)):
                    found = read_plan(table.source, table.changes.plan(start, end))
                    _same(found, ids, f"the rows that versions {start} to {end} appended under {told_of}")
        if self._usual.declares(Feature.ORPHAN_COLLECTION):
            self._usual.let_age()
            with _well(f"orphans are listed under {told_of}"):
                orphans = list_orphans(table.lake.storage, table.info, grace=timedelta(0)).orphans
            left = [each.path for each in orphans if each.kind != "record"]  # each watermark supersedes the one before
            expect(left, [], f"orphans after two rounds that went well under {told_of}")

    def _latest(self, table: Table) -> int:
        """The version after the newest, where somebody asks for it."""
        return table.latest if self._past and self._usual.declares(Feature.INCREMENTAL_READ) else 0

    def _one(self, table: Table) -> list[dict[str, Any]]:
        return table.read(columns=("name", "id"), filters=(Leaf("id", Op.EQ, 1_003),), limit=3).to_pylist()


def _parts(some: Sequence[Setting], refusal: LaketierError | None) -> tuple[Sequence[Setting], Sequence[Setting]]:
    """The one that a refusal names, and the others; or two halves."""
    named = [each for each in some if refusal is not None and each.key in str(refusal)]
    if len(named) == 1:
        return named, [each for each in some if each is not named[0]]
    return some[: len(some) // 2], some[len(some) // 2 :]


def _read(table: Table, doing: str) -> pa.Table | None:
    """None where a format refuses it: an option may tell where a table is, or how it can be read."""
    try:
        return table.read()
    except LaketierError:
        return None
    except Exception as error:
        raise AssertionError(f"{doing}: expected its rows, or a refusal, found {told(error)}") from error


def _goes_on(table: Table) -> bool:
    """Whether a round that has other settings is taken. It may be refused, also by what a table keeps of its own."""
    try:
        table.append(1, *SECOND)
    except LaketierError:
        return False
    return True


@contextmanager
def _well(doing: str, *, but: tuple[type[LaketierError], ...] = ()) -> Iterator[None]:
    __tracebackhide__ = True
    try:
        yield
    except Exception as error:
        if isinstance(error, (AssertionError, *but)):
            raise
        raise AssertionError(f"{doing}: expected no error, found {told(error)}") from error


def _same(rows: pa.Table, ids: Sequence[int], sentence: str) -> None:
    __tracebackhide__ = True
    expected = pa.Table.from_batches([batch(ids)]).sort_by("id")
    found = rows.select(expected.schema.names).sort_by("id")
    expect(found.to_pylist(), expected.to_pylist(), sentence)
