"""The files that a worker's tables keep open across rounds, where its engine runs tasks in the worker's own process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from laketier.kit.library_errors import ends_the_process
from laketier.registry import open_lake
from laketier.service.tables import ServiceTables
from laketier.spi import LaketierError, OpenFilesSlot
from laketier.tables import changed
from laketier.tiering.open_files import finish_open_files, is_crowded

log = logging.getLogger(__name__)


@dataclass
class OpenFileKeeper:
    """Has a slot for each table, finishes what gets old while no rows come, and everything at the end. Killed at any
    point, it leaves files that the next round of their table finishes, whoever runs it. Safe in threads.

    Attributes:
        tables: The tables of the service.
        idle_seconds: How often it looks whether something is due.
    """

    tables: ServiceTables
    idle_seconds: float = 1.0
    _slots: dict[str, OpenFilesSlot] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def slot(self, key: str) -> OpenFilesSlot:
        """The slot of the table ``key``, made when it is first asked for. Where the process has few descriptors left, a
        table that has nothing open gets one for this round alone, whose files are finished with it: so tables that came
        first keep their files, and no round lacks descriptors because of them."""
        with self._lock:
            found = self._slots.get(key)
            if found is None or found.is_empty:
                if is_crowded():
                    log.info("[table=%s] its files don't stay open: the process has many open (ulimit -n)", key)
                    found = OpenFilesSlot()
                    found.ending = True
                    return found
                found = self._slots.setdefault(key, OpenFilesSlot())
        return found

    def run_until(self, stopping: threading.Event, is_busy: Callable[[str], bool]) -> None:
        """Look until ``stopping`` is set. ``is_busy``: whether a round of a table is under way, which sees to its files
        itself."""
        while not stopping.wait(self.idle_seconds):
            for key, slot in self._known():
                # A table that is gone would have the sources listed at each look. `end` says what is left of it.
                if slot.is_due and not is_busy(key) and self.tables.known(key) is not None:
                    self._finish(key, slot, ending=False)

    def end(self) -> None:
        """Finish all files, once no round is under way any more. What fails is logged: whoever comes next finishes
        it."""
        for key, slot in self._known():
            self._finish(key, slot, ending=True)
        self.abandon()

    def abandon(self) -> None:
        """Give all files up. Idempotent."""
        for _, slot in self._known():
            slot.close()

    def _known(self) -> list[tuple[str, OpenFilesSlot]]:
        with self._lock:
            return list(self._slots.items())

    def _finish(self, key: str, slot: OpenFilesSlot, *, ending: bool) -> None:
        if slot.is_empty:
            return
        try:
            config = self.tables.table(key).config
            lake = open_lake(config)
            done = finish_open_files(lake.tiering_factory(lake.load_table()), slot, ending=ending)
            changed(config)
        except LaketierError as error:
            log.warning("[table=%s] its open files were not finished; the next round does it: %s", key, error)
        except BaseException as error:
            if ends_the_process(error):
                raise
            log.exception("[table=%s] its open files were not finished; the next round does it", key)
        else:
            if done is not None:
                log.info("[table=%s] finished open files: snapshot %s", key, done.snapshot_id)
