"""A landing zone: its tables, and where their files and ledgers are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from pyarrow import fs

from laketier.config.locations import absolute
from laketier.connectors.files.files import ROOT_TABLE
from laketier.connectors.files.folder import Folder, is_left_alone
from laketier.connectors.files.ledger import Ledger
from laketier.connectors.files.local import Astray, escaped, is_text, list_folder
from laketier.connectors.files.log import LandingLog
from laketier.connectors.files.options import LandingOptions, LandingTableOptions
from laketier.connectors.location import filesystem_of, shown
from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import FeatureNotSupported, LogSource, StorageError, TableNotFound

log = logging.getLogger(__name__)

_LEDGER = "_laketier/ledger"
_LEDGER_OF_ROOT = "_root"  # hidden, so no sub-folder's table has this name


class LandingZone(LogSource):
    """See `LogSource`. Keeps what it has read of each ledger, so a table may be opened again at no cost."""

    def __init__(self, name: str, options: LandingOptions) -> None:
        self.name = name
        self._options = options
        self._location = absolute(options.path)  # the ledger goes on to know it as it is given
        self._filesystem, self._root = filesystem_of(self._location, used_as="a landing zone")
        self._ledgers: dict[str, Ledger] = {}
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._ledger_root = _local_folder(options)

    def list_tables(self) -> Sequence[str]:
        """See `LogSource.list_tables`. Raises `StorageError` when the landing zone is not there."""
        if self._options.one_table:
            return [ROOT_TABLE]
        with naming_storage_errors("the landing zone was listed", setting="the source's options"):
            if not isinstance(self._filesystem, fs.LocalFileSystem):
                found = self._filesystem.get_file_info(fs.FileSelector(self._root))
                names = [info.base_name for info in found if info.type is fs.FileType.Directory]
                return sorted(name for name in names if not is_left_alone(name))
            listing = list_folder(self._root, "", skip=is_left_alone, follow=self._options.follow_links, deep=False)
        for path, why in listing.refused.items():
            if path not in self._warned:
                self._warned.add(path)
                log.warning("%s: %s is left out: %s", self.name, path, why)
        return sorted(listing.folders)

    def open(self, name: str, options: LandingTableOptions) -> LandingLog:
        """See `LogSource.open`. Makes the ledger when there is none."""
        folder = Folder(self._location, name, self._options.follow_links)
        allowed = (
            name == ROOT_TABLE
            if self._options.one_table
            else name and "/" not in name and "\\" not in name and not is_left_alone(name)
        )
        why = None
        try:
            there = bool(allowed) and is_text(name) and self._is_folder(folder)
        except Astray as error:
            there, why = False, str(error)
        if not there:
            raise TableNotFound(
                f"the landing zone has no table {escaped(name)!r}",
                where=shown(self._options.path),
                why=why,
                fix="Its tables are its sub-folders whose names don't begin with _ or . (with one-table: '.').",
            )
        ledger_path = self._ledger_root / (_LEDGER_OF_ROOT if name == ROOT_TABLE else name)
        if self._options.one_table and not self._options.ledger:
            self._refuse_to_begin_anew(folder, ledger_path, was_made=name in self._ledgers)
        with self._lock:
            fresh = _open_ledger(ledger_path, shown(self._options.path), name)
            ledger = self._ledgers.get(name)
            if ledger is None or ledger.ledger_id != fresh.ledger_id:
                ledger = self._ledgers[name] = fresh
        return LandingLog.of(folder, options, ledger)

    def _refuse_to_begin_anew(self, folder: Folder, ledger: Path, *, was_made: bool) -> None:
        """Make no ledger below a mount that was lost: with another id, the table would count as another one for good,
        also once the disk is back. ``was_made``: whether this process has seen one."""
        with naming_storage_errors("the landing zone was listed", setting="the source's options"):
            if Ledger.is_made(ledger) or (not was_made and len(folder.listed().files)):
                return
        away = "its disk, or network share, is not mounted, or"
        below = "and a ledger made in a folder below a mount would be another table's"
        if was_made:
            raise StorageError(
                "the ledger of the landing zone is gone",
                where=str(ledger),
                why=f"{away} somebody deleted the ledger; {below}",
                fix="Mount it, or restore the ledger from a backup. To begin anew, start this process again: a new "
                "ledger is made then, and the table counts as another one.",
            )
        raise StorageError(
            "the landing zone holds no files and no ledger",
            where=shown(self._options.path),
            why=f"{away} nothing has landed yet; {below}",
            fix="Mount it, or land the first file. Or set options.ledger to a folder outside: then an empty landing "
            "zone can be opened.",
        )

    def _is_folder(self, folder: Folder) -> bool:
        _, path = folder.open()
        if not isinstance(self._filesystem, fs.LocalFileSystem):
            return bool(self._filesystem.get_file_info(path).type is fs.FileType.Directory)
        try:
            inside = "" if folder.name == ROOT_TABLE else folder.name
            list_folder(self._root, inside, skip=lambda _: True, follow=folder.follow_links, deep=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


def _open_ledger(folder: Path, path: str, table: str) -> Ledger:
    try:
        return Ledger.open(folder, path=path, table=table)
    except OSError as error:
        raise StorageError(
            "the ledger can't be made or read",
            where=str(error.filename or folder),
            why=(error.strerror or str(error)).lower(),
            fix="Set options.ledger to a folder that every driver of this source can write.",
        ) from error


def _local_folder(options: LandingOptions) -> Path:
    """Names are taken by exclusive create, which pyarrow offers on no object store."""
    location = absolute(options.ledger or options.path)
    filesystem, root = filesystem_of(location, used_as="a ledger")
    if not isinstance(filesystem, fs.LocalFileSystem):
        raise FeatureNotSupported(
            "a ledger that is not on a file system",
            format="a landing zone",
            reason=f"{shown(location)} has no exclusive create",
            fix="Set options.ledger to a folder on a disk that all drivers share.",
        )
    return Path(root) if options.ledger else Path(root, _LEDGER)
