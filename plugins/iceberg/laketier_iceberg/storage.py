"""One Iceberg warehouse, and the factory that crosses to executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from laketier.kit.event_time import check_event_time
from laketier.kit.file_names import NameSettings
from laketier.kit.parquet import Compression, ParquetSettings
from laketier.spi import (
    CommitterInitContext,
    Feature,
    FeatureNotSupported,
    LakeChanges,
    LakeCommitter,
    LakeHistory,
    LakeMaintenance,
    LakeSource,
    LakeStorage,
    LakeStorageConfig,
    LakeTieringFactory,
    LakeWriter,
    Passthrough,
    TableInfo,
    TablePath,
    WriteResult,
    WriterInitContext,
    require_mode,
)
from laketier_iceberg.catalog import IcebergCatalog
from laketier_iceberg.connection import CatalogSettings
from laketier_iceberg.features import FEATURES
from laketier_iceberg.loading import handle_of, load
from laketier_iceberg.locations import Below
from laketier_iceberg.metrics import metrics_properties
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.partitions import PartitionPlan
from laketier_iceberg.spec import BUCKETS_PROPERTY, FORMAT, fields_of, named_fields
from laketier_iceberg.table_properties import EXPIRY, TARGET_FILE_SIZE, check_properties, refuse_unopened
from laketier_iceberg.types import check_types
from laketier_iceberg.writer import IcebergWriter, WriterPlan

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from laketier_iceberg.committer import IcebergState

_DEFAULT_FILE_BYTES = 512 * 1024 * 1024


class IcebergStorage(LakeStorage):
    """Tables of one catalog."""

    def __init__(self, config: LakeStorageConfig) -> None:
        self._options = config.options if isinstance(config.options, IcebergOptions) else IcebergOptions()
        self._settings = CatalogSettings.of(config.warehouse, self._options)

    def catalog(self) -> IcebergCatalog:
        """The tables."""
        return IcebergCatalog(self._settings)

    def load(self, path: TablePath) -> Table:
        """The handle that pyiceberg has of a table, fresh."""
        return load(self._settings, path)

    def tiering_factory(self, table: TableInfo) -> IcebergTieringFactory:
        """Raises `FeatureNotSupported` for tables that can't be written."""
        from laketier_iceberg.committer import refuse_version

        loaded = handle_of(self._settings, table)
        refuse_version(loaded)
        _refuse_unwritable(table, loaded, self._options)
        return IcebergTieringFactory(
            self._settings, writer_plan(table, loaded, self._options), self._options.expire_in_commit
        )

    def source(self, table: TableInfo) -> LakeSource:
        """A reader of the table."""
        from laketier_iceberg.source import IcebergSource

        return IcebergSource(self._settings, table.with_handle(None), self._io(table))

    def state(self, table: TableInfo) -> IcebergState:
        """Also of tables of version 1 or 3, which can only be read."""
        from laketier_iceberg.committer import IcebergState

        return IcebergState(handle_of(self._settings, table))

    def history(self, table: TableInfo) -> LakeHistory:
        """The snapshots of ``main``."""
        from laketier_iceberg.snapshots import IcebergHistory

        return IcebergHistory(self._settings, table.path)

    def changes(self, table: TableInfo) -> LakeChanges:
        """Make the object that plans the rows that snapshots appended."""
        from laketier_iceberg.changes import IcebergChanges

        return IcebergChanges(self._settings, table.path, self._io(table))

    def maintenance(self, table: TableInfo) -> LakeMaintenance:
        """Orphan collection."""
        from laketier_iceberg.maintenance import IcebergMaintenance

        return IcebergMaintenance(self._settings, table)

    def _io(self, table: TableInfo) -> Passthrough:
        return Passthrough(handle_of(self._settings, table).io.properties)


@dataclass(frozen=True)
class IcebergTieringFactory(LakeTieringFactory[WriteResult]):
    """Holds plain data only; the repr of the settings shows no secret."""

    settings: CatalogSettings
    plan: WriterPlan
    expire: bool

    def create_writer(self, context: WriterInitContext) -> LakeWriter[WriteResult]:
        """On an executor: imports pyarrow, and pyiceberg_core where the table has partition transforms."""
        require_mode(FORMAT, FEATURES, context.mode)
        return IcebergWriter(self.plan, context.attempt, context.split_index)

    def create_committer(self, context: CommitterInitContext) -> LakeCommitter[WriteResult]:
        """On the driver."""
        from laketier_iceberg.committer import IcebergCommitter

        require_mode(FORMAT, FEATURES, context.mode)
        return IcebergCommitter(self.settings, self.plan, context, expire=self.expire)


def writer_plan(table: TableInfo, loaded: Table, options: IcebergOptions) -> WriterPlan:
    """Make the plan for writers of ``table``. Options win over the table's ``write.*`` properties."""
    check_event_time(options, table.schema)
    options.check_names(FORMAT)
    properties = loaded.metadata.properties
    codec = properties.get("write.parquet.compression-codec", "zstd").lower().replace("uncompressed", "none")
    known = codec in {c.value for c in Compression}
    return WriterPlan(
        table=table.with_handle(None),
        partitions=PartitionPlan(tuple(named_fields(loaded.spec(), loaded.schema())), properties.get(BUCKETS_PROPERTY)),
        parquet=ParquetSettings(
            target_file_rows=options.target_file_rows,
            target_file_bytes=options.target_file_bytes or int(properties.get(TARGET_FILE_SIZE, _DEFAULT_FILE_BYTES)),
            row_group_rows=options.row_group_rows,
            buffer_bytes=options.buffer_bytes,
            max_open_files=options.max_open_files,
            target_file_seconds=options.target_file_seconds,
            idle_file_seconds=options.idle_file_seconds,
            target_file_event_seconds=options.target_file_event_seconds,
            event_time_column=options.event_time_column,
            compression=options.compression or (Compression(codec) if known else Compression.ZSTD),
        ),
        metrics=metrics_properties(properties),
        names=NameSettings(options.file_names, options.file_prefix, options.file_suffix),
        sequence=loaded.metadata.next_sequence_number() - 1,
        data=_data_folder(loaded.metadata.location.rstrip("/"), properties.get("write.data.path")),
        io=Passthrough({key: str(value) for key, value in loaded.io.properties.items()}),
    )


def _data_folder(location: str, given: str | None) -> str:
    """In the form of the table's location where it is below it, so that staged files have relative paths."""
    if given is None:
        return f"{location}/data"
    below = Below(location).path(given)
    return (given if below is None else f"{location}/{below}").rstrip("/")


def _refuse_unwritable(table: TableInfo, loaded: Table, options: IcebergOptions) -> None:
    fields_of(table.descriptor)
    check_types(table.descriptor.schema)  # others may have dropped the last field of a struct
    unread = [] if options.expire_in_commit else list(EXPIRY)
    unread += [] if options.target_file_bytes is None else [TARGET_FILE_SIZE]
    check_properties(loaded.metadata.properties, str(table.path), unread=unread)
    refuse_unopened(loaded.metadata.properties, loaded.io, str(table.path))
    if any(str(field.transform) == "void" for field in loaded.spec().fields):
        raise FeatureNotSupported(
            Feature.PARTITION_TRANSFORMS.value,
            format=FORMAT,
            reason="the table's partition spec has a void field",
            fix="Replace the spec by one without it.",
        )
    if loaded.metadata.properties.get("write.format.default", "parquet").lower() != "parquet":
        raise FeatureNotSupported(
            "writing other files than Parquet",
            format=FORMAT,
            reason="the table asks for them by write.format.default",
            fix="Set write.format.default to parquet.",
        )
