"""The catalog: the toolbox's, and what a table's file format adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from laketier.kit.manifests import ManifestCatalog
from laketier.spi import CorruptTable, SchemaChange, TableDescriptor, TableInfo, TableNotFound, TablePath
from laketier_localfile.file_formats.known import of_table
from laketier_localfile.kept import refuse_other
from laketier_localfile.layout import MANIFESTS
from laketier_localfile.lying_place import lying_place_of
from laketier_localfile.names import FILE_FORMAT, PARQUET
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.outside import OUTSIDE
from laketier_localfile.partitioning import Partitioning, check_partitioning
from laketier_localfile.time_pattern import TIME_PATTERN


@dataclass(frozen=True)
class LocalFileCatalog(ManifestCatalog):
    """New tables get the file format of ``options``; see `laketier_localfile.file_formats`."""

    options: LocalFileOptions = field(default_factory=LocalFileOptions)

    def create_table(self, path: TablePath, descriptor: TableDescriptor) -> TableInfo:
        chosen = self.options.file_format
        properties = dict(descriptor.properties)
        if chosen is not None and chosen.value != PARQUET:
            properties.setdefault(FILE_FORMAT, chosen.value)
        if properties.get(FILE_FORMAT) == PARQUET:
            del properties[FILE_FORMAT]  # as in tables of older versions, which know no such property
        if self.options.time_pattern is not None:
            properties.setdefault(TIME_PATTERN, self.options.time_pattern)
        if self.options.partition_columns_in_files is False:
            properties.setdefault(OUTSIDE, "false")
        refuse_other(self.options, properties, where=str(path))
        found = super().create_table(path, replace(descriptor, properties=properties))
        refuse_other(self.options, found.descriptor.properties, where=str(path))
        return found

    def load_table(self, path: TablePath) -> TableInfo:
        """Tells a table whose manifests are gone from none: the next writer would make a new one beside its files."""
        try:
            return super().load_table(path)
        except TableNotFound as error:
            store = self.store(path)
            left = lying_place_of(store).left_of_table()
            if left is None:
                raise
            # Another process may have created it in between, and then what was found is not left of one.
            with suppress(TableNotFound):
                return super().load_table(path)
            cut_off = " If a drop was cut off, drop the table again." if store.needs_no_folder else ""
            raise CorruptTable(
                "the table's manifests are gone, and its files are there",
                where=store.root,
                why=f"it holds {left}, and no {MANIFESTS}/table.json",
                fix="Restore that folder from a backup, with all that was written since; or run "
                f"`laketier schema rebuild`, which makes it again from the files.{cut_off}",
            ) from error

    def drop_table(self, path: TablePath) -> None:
        """In S3 a drop takes many steps. One that was cut off is ended by the next."""
        try:
            super().drop_table(path)
        except TableNotFound:
            if not lying_place_of(self.store(path)).end_drop():
                raise

    def _apply(self, table: TableInfo, changes: Sequence[SchemaChange]) -> TableDescriptor:
        altered = super()._apply(table, changes)
        of_table(altered.properties, where=str(table.path)).check_types(altered.schema)
        if Partitioning.of(altered).is_more:  # a column may have got the name of its folders
            check_partitioning(altered)
        return altered
