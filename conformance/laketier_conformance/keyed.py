"""Tables with a primary key, and the tasks and rounds that replace their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from laketier.spi import LakeSplit, ScanRequest, WriteMode, WriteResult
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.expect import expect
from laketier_conformance.lake import QUICK, SCHEMA, Table, read_plan, token

UPSERT = WriteMode.UPSERT
Rows = Mapping[int, str]


def publish(
    table: Table, epoch: int, *results: WriteResult, pipeline: str = "p", mode: WriteMode = UPSERT
) -> RoundOutcome:
    """A whole round of results."""
    tiering = TieringRound(table.factory, token=token(epoch, pipeline), mode=mode, policy=QUICK)
    tiering.begin()
    return tiering.commit(results).outcome


@dataclass(frozen=True)
class Keyed:
    """A table with the primary key ``id``, whose rows are told apart by ``name``. It is made once it is asked for: a
    format without such tables must refuse one in the test itself."""

    make: Callable[[], Table]

    @classmethod
    def of(cls, table: Table) -> Keyed:
        """One that is there."""
        return cls(lambda: table)

    @cached_property
    def table(self) -> Table:
        """The table."""
        return self.make()

    def staged(self, rows: Rows, replaced: Sequence[str] = ()) -> WriteResult:
        """One task: its rows, and the files that they stand for."""
        batch = pa.record_batch(
            [
                pa.array(rows.keys(), pa.int64()),
                pa.array(rows.values(), pa.string()),
                pa.nulls(len(rows), pa.float64()),
            ],
            schema=SCHEMA,
        )
        result = self.table.stage_arrow([batch] if rows else [], mode=UPSERT)
        return replace(result, replaced=tuple(replaced))

    def round(self, epoch: int, *results: WriteResult, pipeline: str = "p") -> RoundOutcome:
        """A whole round of results."""
        return publish(self.table, epoch, *results, pipeline=pipeline)

    @property
    def rows(self) -> Rows:
        """What a reader gets. A key that is there twice fails."""
        read = self.table.read(columns=("id", "name"))
        pairs = list(zip(*read.to_pydict().values(), strict=True))
        expect(len(dict(pairs)), len(pairs), f"a key is there twice: {sorted(pairs)}")
        return dict(sorted(pairs))

    def splits(self) -> list[tuple[LakeSplit, frozenset[int]]]:
        """The splits of the current snapshot, each with its keys."""
        plan = self.table.source.plan(ScanRequest())
        found = []
        for split in plan.splits:
            keys = read_plan(self.table.source, replace(plan, splits=(split,)))["id"].to_pylist()
            assert split.files, "a split says which files it reads"
            found.append((split, frozenset(keys)))
        return found

    def files(self, *keys: int) -> tuple[str, ...]:
        """The live files that hold ``keys``; all without any."""
        return tuple(f for split, found in self.splits() if not keys or found & set(keys) for f in split.files)

    def beside(self, *keys: int) -> Rows:
        """The other rows of the files that hold ``keys``, which a task that replaces these files stages again."""
        shared = {key for _, found in self.splits() if found & set(keys) for key in found.difference(keys)}
        return {key: name for key, name in self.rows.items() if key in shared}


AFTER_1: Rows = {1: "A", 2: "b", 3: "c", 4: "d"}
"""The rows of the fixture ``keyed`` after `epoch_1`."""


def epoch_1(keyed: Keyed) -> WriteResult:
    """The task of an epoch of the fixture ``keyed`` that changes 1 and brings 4."""
    return keyed.staged({**keyed.beside(1), 1: "A", 4: "d"}, keyed.files(1))
