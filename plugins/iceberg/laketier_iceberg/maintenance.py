"""Orphans of a table: files in its folders that nothing in the metadata names. Driver only.

A file counts as an orphan only if it can't be a referenced one under another name: Iceberg's writers give every file a
name of its own, so a listed file with the name of a referenced one is never deleted, wherever the metadata says it is.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from laketier.kit.staged import remove_files
from laketier.spi import (
    Feature,
    FeatureNotSupported,
    LakeMaintenance,
    OrphanFile,
    TableChanged,
    TableFinding,
    TableInfo,
)
from laketier_iceberg.checkup import checkup, mend
from laketier_iceberg.clock import known_time
from laketier_iceberg.committer import refuse_version
from laketier_iceberg.connection import CatalogSettings, connect
from laketier_iceberg.files import Files
from laketier_iceberg.loading import load
from laketier_iceberg.locations import Below, is_local, split
from laketier_iceberg.neighbours import (
    DATA_PATH,
    METADATA_PATH,
    METADATA_SUFFIX,
    another_line,
    foreign_metadata,
    neighbour,
)
from laketier_iceberg.references import References, may_delete, name_of
from laketier_iceberg.spec import FORMAT
from laketier_iceberg.writer import attempt_of

if TYPE_CHECKING:
    from pyiceberg.table import Table

log = logging.getLogger(__name__)

_DATA = (".parquet", ".orc", ".avro", ".puffin")
_STATISTICS = (".stats", ".puffin")
_SECOND = 1_000


class IcebergMaintenance(LakeMaintenance):
    """Looks into the table's data and metadata folders, and where ``write.*.path`` says, if that is below the table."""

    def __init__(self, settings: CatalogSettings, table: TableInfo) -> None:
        self._settings = settings
        self._table = table
        self._documents: list[str] = []
        self._alone = False

    def findings(self) -> Sequence[TableFinding]:
        table = self._load()
        return checkup(table.metadata, known_time(table))

    def repair(self) -> Sequence[TableFinding]:
        return mend(self._settings, self._table.path)

    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        # Listed before the metadata is read: what is committed in between is then no orphan.
        listed = [file for file in self._listed(self._load()) if file.modified_at < modified_before]
        if not listed:
            return []
        table = self._load()
        references = References.of(table, Below(self._location))
        found = self._unreferenced(listed, references)
        if found:
            self._refuse_neighbours(references, table)
        return found

    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        return remove_files(Files(self._load().io.properties).folder(self._location), orphans)

    def _refuse_neighbours(self, references: References, table: Table) -> None:
        """Raises `FeatureNotSupported` where what this table does not name may be another's."""
        folder, below = Files(table.io.properties).folder(self._location), Below(self._location)
        odd = [path for path in self._documents if below.key(f"{self._location}/{path}") not in references.inside]
        foreign = foreign_metadata(folder, odd, self._table.table_uuid)
        if foreign is not None:
            _refuse(
                f"{foreign} below the table's location is not the table's: another table may have its files here",
                "Give each table a location of its own, or move away what is not the table's.",
            )
        line = another_line(folder, odd, table)
        if line is not None:
            _refuse(
                f"{line} goes on from metadata of this table that its catalog does not know: another catalog may have "
                "the table, and its rows",
                "Collect orphans through the catalog that has the table now, and take it out of the others; if none "
                "has that one, move it and the metadata files that it names and this table does not away.",
            )
        if not self._alone:
            # Once is enough: what comes later is seen by its metadata files.
            other = neighbour(connect(self._settings), table, below)
            if other is not None:
                _refuse(
                    f"table {other} has its files below this table's location as well",
                    "Give each table a location of its own, or collect orphans with a tool that knows both.",
                )
            self._alone = True

    @property
    def _location(self) -> str:
        return self._table.location.rstrip("/")

    def _load(self) -> Table:
        table = load(self._settings, self._table.path)
        metadata = table.metadata
        refuse_version(table)
        if str(metadata.table_uuid) != self._table.table_uuid or metadata.location.rstrip("/") != self._location:
            raise TableChanged(
                "the table was recreated or moved while its orphans were listed",
                where=str(self._table.path),
                fix="Run it again.",
            )
        if not may_delete(metadata):
            _refuse(
                "the table's property gc.enabled is false: other tables may need its files",
                "Set gc.enabled to true if no other table does.",
            )
        return table

    def _listed(self, table: Table) -> Iterator[OrphanFile]:
        below = Below(self._location)
        folders = _Folders(table, below)
        files = Files(table.io.properties).folder(self._location)
        # Object stores cut off all but the seconds. A file must not look older than the attempt that wrote it, as an
        # attempt that began after the horizon may still be published.
        cut_off = 0 if is_local(split(self._location)) else _SECOND - 1
        self._documents = []
        for folder in folders.roots:
            for file in files.files(folder):
                if METADATA_SUFFIX in file.path:
                    self._documents.append(file.path)
                kind = folders.kind(file.path)
                if kind is not None and below.key(f"{self._location}/{file.path}") is not None:
                    in_full = file.modified_at + cut_off if file.modified_at % _SECOND == 0 else file.modified_at
                    yield OrphanFile(file.path, file.bytes, in_full, kind, attempt_of(file.path))

    def _unreferenced(self, listed: Sequence[OrphanFile], references: References) -> list[OrphanFile]:
        below = Below(self._location)
        found = []
        for file in listed:
            if below.key(f"{self._location}/{file.path}") in references.inside:
                continue
            name = name_of(file.path)
            if name in references.names_outside:
                _refuse(
                    f"the metadata names {references.names_outside[name]}, and there is {self._location}/{file.path}: "
                    "it is unknown whether they are one file",
                    "Move away what is not the table's, or collect orphans with the tool that wrote the table.",
                )
            if name in references.names_inside:
                log.warning("%s has the name of a referenced file and is left alone", file.path)
                continue
            found.append(file)
        return found


class _Folders:
    """Where the files of a table are, relative to it. Raises `FeatureNotSupported` where that is not certain."""

    def __init__(self, table: Table, below: Below) -> None:
        location = table.metadata.location.rstrip("/")
        given = {key: table.metadata.properties.get(key) for key in (DATA_PATH, METADATA_PATH)}
        metadata = [each for each in (f"{location}/metadata", given[METADATA_PATH]) if each]
        current = posixpath.dirname(table.metadata_location or "")
        if not current or below.folder(current) not in [below.folder(each) for each in metadata]:
            _refuse(
                f"its current metadata file is {table.metadata_location or 'not known'}, where the table does not "
                "write such files: it may share its folders with the table that it was copied from",
                f"Set {METADATA_PATH} to the file's folder if the table is the only one there.",
            )
        for key, value in given.items():
            if value and below.path(value) is None:
                log.warning("orphans in %s are not collected: %s leads out of %s", value, key, location)
        data = [each for each in (f"{location}/data", given[DATA_PATH]) if each]
        self._data = {path for each in data if (path := below.path(each)) is not None}
        self._metadata = {path for each in metadata if (path := below.path(each)) is not None}

    @property
    def roots(self) -> list[str]:
        """Folders to list, none of which holds another."""
        every = self._data | self._metadata
        return sorted(folder for folder in every if every.isdisjoint(_parents(folder)))

    def kind(self, path: str) -> str | None:
        """What a file is for; None for one that Iceberg does not write, or that is hidden."""
        *folders, name = path.split("/")
        # Folders of partitions may begin with an underscore: so may columns.
        if name[0] in "._" or any(folder[0] in "._" and "=" not in folder for folder in folders):
            return None
        home = next((parent for parent in _parents(path) if parent in self._data | self._metadata), None)
        if home in self._metadata:
            kind = _kind_of_metadata(name)
            if kind is not None or home not in self._data:
                return kind
        return "data" if name.endswith(_DATA) else None


def _parents(path: str) -> list[str]:
    """The folders above a path, the nearest first, ending with the table's own."""
    parents = []
    while path:
        path = posixpath.dirname(path)
        parents.append(path)
    return parents


def _kind_of_metadata(name: str) -> str | None:
    if name.endswith((".metadata.json", ".metadata.json.gz")):
        return "metadata"
    if name.endswith(_STATISTICS) or name.startswith("partition-stats-"):
        return "statistics"
    if name.endswith(".avro"):
        return "manifest-list" if name.startswith("snap-") else "manifest"
    return None


def _refuse(reason: str, fix: str) -> NoReturn:
    raise FeatureNotSupported(Feature.ORPHAN_COLLECTION.value, format=FORMAT, reason=reason, fix=fix)
