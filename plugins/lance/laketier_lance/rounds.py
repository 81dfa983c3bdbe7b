"""The rounds of laketier that a dataset's versions tell of.

A version never changes once it is there, so what was read of it is kept for the life of the process: a driver that
opens a table four times per round, beside a writer that made a hundred versions, reads each of them once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from laketier_lance.dataset import properties_of, read_transaction, recent_transactions
from laketier_lance.table import COMMIT_ID, PIPELINE, TABLE_UUID
from laketier_lance.versions import versions_of

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction

REMEMBERED_TABLES = 1024


@dataclass(frozen=True)
class LanceRound:
    """That ``version`` was published by a round of ``pipeline``."""

    version: int
    pipeline: str
    commit_id: str | None


@dataclass(frozen=True)
class _Looked:
    """What the versions ``first`` to ``last`` tell."""

    first: int
    last: int
    rounds: tuple[LanceRound, ...]


@dataclass
class _Memory:
    """Of one table. Two threads may read the same versions; none sees half of what another put here."""

    table: tuple[str, bytes | None]
    looked: _Looked | None = None


def rounds_since(
    dataset: LanceDataset, location: str, metadata: Mapping[bytes, bytes], first: int
) -> tuple[LanceRound, ...]:
    """Those of the versions from ``first`` to that of ``dataset`` that can still be read, or could when this process
    looked before; the oldest first. Raises what `read_transaction` raises."""
    last = int(dataset.version)
    table_uuid = metadata.get(TABLE_UUID)
    table = (location, table_uuid)
    memory = _Memory(table) if table_uuid is None else _memory_of(table)
    known = memory.looked
    if known is None or not known.first <= first <= known.last + 1 or last < known.last:
        known = _Looked(first, first - 1, ())
    fresh = tuple(_rounds(dataset, known.last + 1, last))
    rounds = tuple(each for each in known.rounds + fresh if each.version >= first)
    memory.looked = _Looked(first, last, rounds)
    return rounds


@lru_cache(REMEMBERED_TABLES)
def _memory_of(table: tuple[str, bytes | None]) -> _Memory:
    return _Memory(table)


def _rounds(dataset: LanceDataset, first: int, last: int) -> Iterator[LanceRound]:
    for version, transaction in _transactions(dataset, first, last):
        properties = properties_of(transaction)
        if PIPELINE in properties:
            yield LanceRound(version, properties[PIPELINE], properties.get(COMMIT_ID))


def _transactions(dataset: LanceDataset, first: int, last: int) -> Iterator[tuple[int, Transaction | None]]:
    """They are asked for in one call, which ends at a version that was cleaned up. Tags may hold older ones: one
    listing tells which, as to ask for each costs as much as to read it, and others may have made thousands."""
    recent = recent_transactions(dataset, last + 1 - first)
    older = range(first, last + 1 - len(recent))
    retained = set(versions_of(dataset)) if older else set()
    for version in older:
        if version in retained:
            yield version, read_transaction(dataset, version)
    yield from zip(range(older.stop, last + 1), reversed(recent), strict=True)
