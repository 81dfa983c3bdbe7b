"""What a log says of transactions, asked of its newest entries first.

delta-rs reads all entries since the newest checkpoint for each transaction that it is asked for, wherever that is, and
the checkpoint, too, for one that is nowhere. A look asks for six. The newest entry nearly always names them: its writer
was the pipeline itself, or another one just after it. So entries are read here, each once a look, and delta-rs is asked
about what the nearest of them do not name.

The horizon of orphan collection is old where there is one, and mostly there is none. So each commit of laketier says in
its ``commitInfo`` which one the table has, as of it. An entry comes only after the one that its writer looked at, so
that is as sure as a transaction; where a laketier from before raised the horizon later, its transaction comes first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from laketier.kit import RecordStore
from laketier.kit.record import record_pointer
from laketier.spi import COLLECTOR, CorruptTable, Watermark
from laketier_delta.delta_log import COMMIT_ID, HORIZON, DeltaLog, Entry
from laketier_delta.engine import transaction_version
from laketier_delta.protocol import RETENTION

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from laketier_delta.location import Location

_NEAREST = 4
"""So many entries are read, one after the other, before delta-rs reads all of them at once."""

Numbers = tuple[int | None, int | None, int | None]


def transaction_ids(pipeline: str) -> tuple[str, str, str]:
    """The application ids that hold a pipeline's epoch, fence and record pointer."""
    return f"laketier/epoch/{pipeline}", f"laketier/fence/{pipeline}", f"laketier/record/{pipeline}"


@dataclass
class Transactions:
    """Those of the version that ``handle`` is at. One thread. Keeps what it read."""

    handle: DeltaTable
    location: Location
    log: DeltaLog
    version: int
    _entries: dict[int, Entry | None] = field(default_factory=dict)
    _told: dict[str, int | None] = field(default_factory=dict)

    def version_of(self, application: str) -> int | None:
        """The newest version under this id. None where there is none, or it expired. Raises as
        `laketier_delta.engine.transaction_version`."""
        if not self.expire:
            for entry in self._nearest():
                if application in entry.versions:
                    return entry.versions[application]
        if application not in self._told:
            self._told[application] = transaction_version(self.handle, self.location, application)
        return self._told[application]

    def numbers_of(self, pipeline: str) -> Numbers:
        """The epoch, the fence and the pointer of a pipeline; all None where the table does not know it. One commit
        writes all three, so one speaks for them. Raises as `version_of`."""
        names = transaction_ids(pipeline)
        if pipeline == COLLECTOR and (told := self._horizon(names)) is not None:
            return told
        pointer = self.version_of(names[2])
        if pointer is None:
            return None, None, None
        return self.version_of(names[0]), self.version_of(names[1]), pointer

    @property
    def expire(self) -> bool:
        """Whether the table forgets transactions. Only delta-rs says which."""
        return RETENTION in self.handle.metadata().configuration

    def _horizon(self, names: tuple[str, str, str]) -> Numbers | None:
        """None where no near entry tells."""
        if self.expire:
            return None
        for entry in self._nearest():
            if not entry.versions.keys().isdisjoint(names):
                return None
            if COMMIT_ID in entry.info and HORIZON in entry.info:
                return _numbers(entry.info)
        return None

    def _nearest(self) -> Iterator[Entry]:
        for version in range(self.version, max(-1, self.version - _NEAREST), -1):
            if version not in self._entries:
                try:
                    self._entries[version] = self.log.entry(version)
                except CorruptTable:  # what delta-rs makes of it counts
                    self._entries[version] = None
            entry = self._entries[version]
            if entry is None:
                return
            yield entry


def lost_round(records: RecordStore, log: DeltaLog, pipeline: str, version: int) -> Watermark | None:
    """A round of a pipeline that the table, at ``version``, has no transactions of: one that landed, or of which nobody
    can tell, as its entry was cleaned up. None for a pipeline that never published, whatever it tried to."""
    for watermark in records.of(pipeline):
        target = watermark.snapshot_id
        if target is None or target > version:
            continue
        entry = log.entry(target)
        if entry is None or entry.versions.get(transaction_ids(pipeline)[2]) == record_pointer(watermark):
            return watermark
    return None


def horizon_text(numbers: Numbers) -> str:
    """What a commit says of the horizon, in its ``commitInfo``."""
    return json.dumps(None if None in numbers else numbers)


def _numbers(info: Mapping[str, object]) -> Numbers | None:
    try:
        told = json.loads(str(info[HORIZON]))
    except ValueError:
        return None
    if told is None:
        return None, None, None
    if isinstance(told, list) and len(told) == 3 and all(type(each) is int for each in told):
        return told[0], told[1], told[2]
    return None
