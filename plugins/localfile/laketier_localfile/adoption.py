"""Tables of files that lie there: folders of others, and tables whose manifests were lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from laketier.kit.access import access
from laketier.kit.manifests import files_at
from laketier.kit.manifests.manifest import ADOPTED, Manifest
from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import (
    AdoptedTable,
    IncompatibleData,
    IncompatibleTable,
    LakeAdoption,
    OutsideTable,
    PartitionField,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
)
from laketier.tables.folders_apart import folders_told
from laketier.tables.hive import HivePartitions, values_of
from laketier.tables.inference import SchemaSet, refuse_misplaced_types, refuse_strangers
from laketier_localfile.catalog import LocalFileCatalog
from laketier_localfile.entries import adopted_table, canonical_text, entry_of, properties_of
from laketier_localfile.file_formats.known import file_format, of_name, of_table
from laketier_localfile.kept import refuse_other
from laketier_localfile.layout import LAYOUT, MANIFESTS, attempt_of
from laketier_localfile.looking import LyingFile, Progress, look_at, measure, only_value
from laketier_localfile.lying import LyingPlace
from laketier_localfile.lying_place import lying_place_of
from laketier_localfile.rebuilding import lying_in_place, rebuild
from laketier_localfile.types import check_partition_type

_FIX = "Run `laketier schema rebuild`."


@dataclass(frozen=True)
class LocalFileAdoption(LakeAdoption):
    """See `LakeAdoption`."""

    catalog: LocalFileCatalog

    def adopt(
        self,
        path: TablePath,
        *,
        partitions: bool = False,
        types: Mapping[str, pa.DataType] | None = None,
        on_progress: Progress = None,
    ) -> AdoptedTable:
        place = lying_place_of(self.catalog.store(path))
        with naming_storage_errors("a folder was looked at"):
            if not place.store.exists(LAYOUT.table_file):
                _refuse_lost(place)
        there = self._there(path, types or {}, partitions=partitions)
        if there is not None:
            return there
        with naming_storage_errors("a folder was looked at"), access("looking at the folder", where=place.where):
            place.refuse_within_table()
            lying = place.files()
            asked = self.catalog.options.file_format
            chosen = lying.only_of(None if asked is None else file_format(asked.value), place.where)
            place.refuse_unfit()
            schemas = SchemaSet(chosen.spelling)
            looked_at = look_at(place, lying, chosen, schemas, types or {}, on_progress)
            refuse_strangers(schemas, place.where)
            hive = HivePartitions.of([file.path for file in looked_at]) if partitions else HivePartitions()
            schema = hive.added_to(schemas.schema(types), types)
            refuse_misplaced_types(types, schema, place.where)
            for name in hive.names:
                check_partition_type(name, schema.field(name).type)
            files = measure(place, lying, looked_at, schema, on_progress)
        told: tuple[str, ...] = ()
        if not partitions:
            columns = [(file.path, file.schema.names) for file in files]
            told = folders_told(columns, undo=f"delete its {MANIFESTS}", where=place.where)
        in_names = any(name not in file.schema.names for file in files for name in hive.names)
        descriptor = TableDescriptor(
            schema,
            tuple(map(PartitionField, hive.names)),
            properties=properties_of(chosen, in_names=in_names),
        )
        entries = [entry_of(file, descriptor, _of_folders(place, file, schema, hive.names)) for file in files]

        def last_look() -> None:
            lying.refuse_changed(place.files(), place.where)

        try:
            info = self.catalog.create_of(path, descriptor, entries, origin=ADOPTED, last_look=last_look)
        except IncompatibleTable:
            # Another process that was asked for the same may have come first.
            there = self._there(path, types or {}, partitions=partitions)
            if there is None:
                raise
            return there
        return adopted_table(info, entries, lying.left_out, told=told)

    def rebuild(
        self,
        path: TablePath,
        *,
        primary_key: tuple[str, ...] = (),
        types: Mapping[str, pa.DataType] | None = None,
        leave_staged: bool = False,
        on_progress: Progress = None,
    ) -> AdoptedTable:
        return rebuild(self.catalog, path, primary_key, types or {}, leave_staged=leave_staged, on_progress=on_progress)

    def _there(self, path: TablePath, types: Mapping[str, pa.DataType], *, partitions: bool) -> AdoptedTable | None:
        """The table that an earlier call made, for who was killed before it could tell. Raises `IncompatibleTable`
        where that call was asked for another one."""
        try:
            info = self.catalog.load_table(path)
        except TableNotFound:
            return None
        first = self.catalog.table_type(self.catalog.store(path)).manifests().read(0)
        if first.origin != ADOPTED:
            raise IncompatibleTable(
                "the folder is a table of laketier already",
                where=self.catalog.store(path).root,
                fix=f"Read it as {path}.",
            )
        refuse_other(self.catalog.options, info.descriptor.properties, where=str(path))
        _refuse_asked_otherwise(first, info, types, partitions=partitions)
        told: tuple[str, ...] = ()
        strangers: dict[str, str] = {}
        try:
            strangers = self._strangers(info)
        except (OutsideTable, IncompatibleTable) as error:
            # What came later does not touch the table.
            why = f" because {error.why}," if error.why else ""
            told = (f"The table is there. Files beside it were not looked for: {error.what},{why} in {error.where}.",)
        return adopted_table(info, first.added, strangers, told=told, made=False)

    def _strangers(self, info: TableInfo) -> dict[str, str]:
        """Files that are in no commit: who adopts again may think that they are. Raises as `LyingPlace.files`."""
        place = lying_place_of(self.catalog.store(info.path))
        with naming_storage_errors("a folder was looked at"):
            there = lying_in_place(place)
            live = files_at(self.catalog.table_type(place.store).manifests(), info.snapshot_id or 0)
        known = {entry.path for entry in live}
        kind = of_table(info.descriptor.properties, where=place.where)
        return {
            path: "it is not in the table: its rows, where it has any, have to be written into the table"
            for path in sorted(there.files)
            if path not in known and of_name(path) is kind and attempt_of(path) is None
        }


def _refuse_asked_otherwise(
    first: Manifest, info: TableInfo, types: Mapping[str, pa.DataType], *, partitions: bool
) -> None:
    """Raise `IncompatibleTable` where the table that is there is not the one that was asked for."""
    made = first.metadata or info.descriptor
    if not partitions and made.partition_by:
        columns = ", ".join(field.column for field in made.partition_by)
        raise IncompatibleTable(
            f"the folder is a table already, partitioned by {columns}",
            where=str(info.path),
            fix="Ask for it with partitions, or read it as it is.",
        )
    if partitions and not made.partition_by and HivePartitions.of([entry.path for entry in first.added]).names:
        raise IncompatibleTable(
            "the folder is a table already, without partitions",
            where=str(info.path),
            fix=f"Ask for it without partitions. To have them, delete its {MANIFESTS} first, where nothing was written "
            "to the table since.",
        )
    for name, kind in types.items():
        have = [schema.field(name).type for schema in (made.schema, info.schema) if name in schema.names]
        if kind not in have:
            raise IncompatibleTable(
                f"the folder is a table already, in which {name!r} is {have[-1] if have else 'no column'}, "
                f"and not {kind}",
                where=str(info.path),
                fix="Ask for it with the types that it has, or read it as it is.",
            )


def _refuse_lost(place: LyingPlace) -> None:
    """Raise `IncompatibleTable` for what is left of a table of ours: some of its files may not count, and pipelines
    that it knew would begin anew."""
    left = place.left_of_table()
    if left is not None:
        raise IncompatibleTable(
            "the folder is a table of laketier whose manifests are gone",
            where=place.where,
            why=f"it holds {left}, and no {MANIFESTS}/table.json",
            fix=_FIX,
        )


def _of_folders(
    place: LyingPlace, file: LyingFile, schema: pa.Schema, names: tuple[str, ...]
) -> tuple[tuple[str, str | None], ...]:
    """What the folders of a file say, as the text that a manifest has. Raises `IncompatibleData` where the file says
    something else."""
    if not names:
        return ()
    found = []
    for name, text in values_of(file.path):
        canonical = canonical_text(text, schema.field(name).type)
        if name in file.schema.names and file.rows:
            inside = only_value(place, file, schema.field(name))
            if inside != canonical:
                raise IncompatibleData(
                    f"{file.path!r} holds {inside!a} of column {name!r}, and its folder says {text!a}",
                    where=place.where,
                    fix="Move the file to its own folder, or do without partitions.",
                )
        found.append((name, canonical))
    return tuple(found)
