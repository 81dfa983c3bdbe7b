"""Writing small files as one, with the writer that made them and the reader that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from laketier.bucketing import assigner_for
from laketier.kit.file_names import FileNames
from laketier.kit.manifests import FileEntry, FoldSettings, ManifestSnapshot, ManifestState, written_with
from laketier.kit.partition import OddPartitionValues
from laketier.spi import StagedFile, TableInfo, TablePath, WriterInitContext, new_attempt_id
from laketier_localfile.file_formats.known import of_table
from laketier_localfile.growing import finish_open
from laketier_localfile.naming import Naming
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.outside import file_schema
from laketier_localfile.source import LocalFileSource
from laketier_localfile.table import LocalFileTable
from laketier_localfile.writer import LocalFileWriter


@dataclass(frozen=True)
class FoldingTable(LocalFileTable):
    """The table of those who commit, with their ``options``."""

    options: LocalFileOptions

    @property
    def folding(self) -> FoldSettings | None:
        options = self.options
        if not options.fold_files:
            return None
        most = min(options.fold_file_bytes, options.target_file_bytes)
        return FoldSettings(options.fold_files, most, options.target_file_rows)

    def named(self, number: int, added: Sequence[FileEntry]) -> Sequence[FileEntry]:
        return self._naming.applied(number, added)

    @cached_property
    def _naming(self) -> Naming:
        options = self.options
        return Naming(options.file_prefix, options.file_suffix, options.file_names is FileNames.SERIAL)

    def finish_open(self, state: ManifestState, entry: FileEntry) -> StagedFile:
        schema = file_schema(written_with(state.manifests, entry.schema, state.head))
        chosen = of_table(state.metadata.properties, where=str(self.location))
        return finish_open(self.location, entry, schema, chosen, self.options)

    def rewrite(self, state: ManifestState, files: Sequence[FileEntry]) -> Sequence[StagedFile]:
        """Hold one row group in memory. Delete what was staged when it fails."""
        snapshot = ManifestSnapshot(state.manifests, state.head, state.head, settled=True)
        descriptor = state.metadata
        path = TablePath(*self.store.root.split("/")[-2:])
        info = TableInfo(path, descriptor, state.table_uuid, self.store.root)
        # Rows that are in the table were accepted once, whatever the option says now.
        accepting = replace(self.options, odd_partition_values=OddPartitionValues.ACCEPT)
        assigner = None if descriptor.buckets is None else assigner_for(descriptor)
        writer = LocalFileWriter(info, accepting, assigner, WriterInitContext(new_attempt_id()))
        source = LocalFileSource(self)
        try:
            for index, entry in enumerate(files):
                for batch in source.read(source.split(index, entry, snapshot, snapshot.schema), snapshot.schema):
                    writer.write(batch)
            return writer.complete().files
        except BaseException:
            writer.abort()
            raise
