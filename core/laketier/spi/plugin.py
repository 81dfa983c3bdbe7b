"""The entry points of a format: plugin, storage and factory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic
from weakref import finalize

from laketier.spi.adoption import LakeAdoption
from laketier.spi.catalog import LakeCatalog
from laketier.spi.changes import LakeChanges
from laketier.spi.committer import LakeCommitter, TableState
from laketier.spi.context import CommitterInitContext, WriterInitContext
from laketier.spi.errors import FeatureNotSupported
from laketier.spi.features import DeliveryLevel, Feature, Features
from laketier.spi.feed import LakeFeed
from laketier.spi.history import LakeHistory
from laketier.spi.indexer import LakeIndexer
from laketier.spi.maintenance import LakeMaintenance
from laketier.spi.options import NoOptions
from laketier.spi.searcher import LakeSearcher
from laketier.spi.serializer import DataclassSerializer, SimpleVersionedSerializer
from laketier.spi.source import LakeSource
from laketier.spi.table import TableInfo
from laketier.spi.writer import WR, LakeWriter, WriteResult, new_attempt_id


@dataclass(frozen=True)
class LakeStorageConfig:
    """The parameter of `LakeStoragePlugin.create_storage`.

    Attributes:
        warehouse: An absolute path or URI. A name, where `LakeStoragePlugin.warehouse_is_location` says so.
        options: The plugin's own options: a checked instance of its ``options_type``.
    """

    warehouse: str
    options: Any = field(default_factory=NoOptions)


class LakeTieringFactory(ABC, Generic[WR]):
    """Makes the writers and the committer of one table. Made on the driver by `LakeStorage.tiering_factory`; picklable,
    as it goes to executors. So it holds plain data for its writers (schema, uuid, location, options), and imports its
    library inside the methods."""

    @abstractmethod
    def create_writer(self, context: WriterInitContext) -> LakeWriter[WR]:
        """Make a writer for one task attempt. Executor. Loads no table metadata.

        Args:
            context: The attempt, the task's number and the write mode.

        Returns:
            The writer.

        Raises:
            FeatureNotSupported: The format does not support the write mode.
        """

    @abstractmethod
    def create_committer(self, context: CommitterInitContext) -> LakeCommitter[WR]:
        """Make a committer for one round attempt. Driver.

        Args:
            context: The commit id and the write mode.

        Returns:
            The committer.

        Raises:
            FeatureNotSupported: The format does not support the write mode.
        """

    @property
    def leaves_files_open(self) -> bool:
        """Whether its options ask for files that stay open across epochs. An engine that has no `OpenFilesSlot` for
        its writers then refuses, before anything is written."""
        return False

    @property
    def write_result_serializer(self) -> SimpleVersionedSerializer[WR]:
        """The serializer of write results. The default suits `WriteResult` itself; override it for a subclass."""
        return DataclassSerializer(WriteResult, version=2)  # type: ignore[arg-type] # others override this


class LakeStorage(ABC):
    """One warehouse of one format. Driver only.

    A format may add capabilities: `history`, `changes`, `feed`, `maintenance`, `indexer` and `searcher`. Each is an
    object with a `Feature` and a file in the conformance suite of its own. The defaults refuse.
    """

    @abstractmethod
    def catalog(self) -> LakeCatalog:
        """The catalog of the warehouse."""

    @abstractmethod
    def tiering_factory(self, table: TableInfo) -> LakeTieringFactory[Any]:
        """Make the factory for rounds into a table. Does not load the table where ``table`` has a handle. Keep none for
        many rounds: a commit looks through all commits since ``table`` was loaded (`WriteResult.after`).

        Args:
            table: The table, as loaded just now.

        Returns:
            The factory.

        Raises:
            UnsafeTable: The table's settings would let it forget the watermark.
        """

    @abstractmethod
    def source(self, table: TableInfo) -> LakeSource:
        """Make the source that reads a table.

        Args:
            table: The table.

        Returns:
            The source.
        """

    def state(self, table: TableInfo) -> TableState:
        """Read the state of a table: snapshot, schema and watermarks. For readers, also of tables that can't be
        written. The state is as old as the handle of ``table``, and fresh without one. It is never given to
        `LakeCommitter.publish`.

        A format overrides it. The default opens a committer, and fails where a table can't be written.

        Args:
            table: The table.

        Returns:
            The state.

        Raises:
            TableNotFound: There is no such table.
            CorruptTable: Its metadata is damaged.
        """
        committer = self.tiering_factory(table).create_committer(CommitterInitContext(commit_id=new_attempt_id()))
        try:
            state = committer.open()
        except BaseException:
            committer.close()
            raise
        # A state may need what its committer holds.
        finalize(state, committer.close)
        return state

    # -- capabilities: what a format may add. Each is an object, with a feature and a file of the suite of its own. ----

    def history(self, table: TableInfo) -> LakeHistory:
        """Make the object that lists the snapshots of a table (`Feature.HISTORY`).

        Args:
            table: The table.

        Returns:
            The object.

        Raises:
            FeatureNotSupported: The format does not list snapshots.
        """
        raise FeatureNotSupported(Feature.HISTORY.value, reason="it does not list its snapshots")

    def changes(self, table: TableInfo) -> LakeChanges:
        """Make the object that plans the rows that commits appended to a table (`Feature.INCREMENTAL_READ`).

        Args:
            table: The table.

        Returns:
            The object.

        Raises:
            FeatureNotSupported: The format does not know which rows a commit appended.
        """
        raise FeatureNotSupported(Feature.INCREMENTAL_READ.value, reason="it does not tell what a commit appended")

    def feed(self, table: TableInfo) -> LakeFeed:
        """Make the object that plans the changes that commits made to rows (`Feature.CHANGE_FEED`).

        Args:
            table: The table.

        Returns:
            The object.

        Raises:
            ConfigError: The table keeps no feed.
            FeatureNotSupported: The format does not know which rows a commit changed.
        """
        raise FeatureNotSupported(Feature.CHANGE_FEED.value, reason="it does not tell which rows a commit changed")

    def adoption(self) -> LakeAdoption:
        """Make the object that makes tables of files where they lie (`Feature.ADOPTION`).

        Returns:
            The object.

        Raises:
            FeatureNotSupported: The format makes none.
        """
        raise FeatureNotSupported(Feature.ADOPTION.value, reason="it makes no tables of files that lie there")

    def maintenance(self, table: TableInfo) -> LakeMaintenance:
        """Make the object that finds and deletes orphans of a table (`Feature.ORPHAN_COLLECTION`).

        Args:
            table: The table.

        Returns:
            The object.

        Raises:
            FeatureNotSupported: The format has none.
        """
        raise FeatureNotSupported(Feature.ORPHAN_COLLECTION.value, reason="it has no maintenance")

    def indexer(self, table: TableInfo) -> LakeIndexer:
        """Make the object that builds secondary indexes of a table (`Feature.INDEXING`).

        Args:
            table: The table.

        Returns:
            The object.

        Raises:
            FeatureNotSupported: The format has none.
        """
        raise FeatureNotSupported(Feature.INDEXING.value, reason="it has no indexer")

    def searcher(self, table: TableInfo) -> LakeSearcher:
        """Make the object that searches a table for words and vectors (`Feature.SEARCH`).

        Args:
            table: The table.

        Returns:
            The object.

        Raises:
            FeatureNotSupported: The format has none.
        """
        raise FeatureNotSupported(Feature.SEARCH.value, reason="it searches neither words nor vectors")


class LakeStoragePlugin(ABC):
    """A format. The hook ``laketier_format`` returns it; the entry point (group ``laketier.formats``, name =
    `identifier`) names the hook's module. Importing that module must not import the engine: import it in
    `create_storage` or later. Picklable and stateless."""

    identifier: ClassVar[str]
    """The value of ``lake.format``: lower-case letters, digits and ``-``. Equal to the entry point's name."""
    spi_version: ClassVar[int]
    """The version that the plugin was written for, as a number: `FORMAT_SPI_VERSION` at that time. Do not use the
    constant itself, which changes with the next laketier."""
    delivery: ClassVar[DeliveryLevel]
    features: ClassVar[Features]
    """The support of each `Feature` that the plugin knows. A feature that it does not name is unsupported."""
    options_type: ClassVar[type] = NoOptions
    """The class of the plugin's options: a frozen dataclass, see `laketier.spi.options`."""

    def warehouse_is_location(self, warehouse: str, options: Mapping[str, str]) -> bool:
        """Say whether ``lake.warehouse`` is a path or URI. The configuration makes a relative location absolute.
        Override it where a warehouse may be a name in a catalog.

        Args:
            warehouse: The value of ``lake.warehouse``.
            options: The format's own options, not yet typed.

        Returns:
            Whether it is a location, rather than a name.
        """
        return True

    @abstractmethod
    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        """Open a warehouse. Driver. Touches storage as little as it can; the warehouse need not exist yet.

        Args:
            config: The warehouse and the options.

        Returns:
            The storage.

        Raises:
            ConfigError: Options contradict each other.
        """

    def open_with(self, table: TableInfo) -> Mapping[str, str]:
        """Say how people open a table without laketier. The conformance suite runs each line, and the demo counts rows
        with them.

        Args:
            table: The table.

        Returns:
            For each tool (``DuckDB``, ``Polars``, …) one line of Python with its imports, whose last expression is the
            table: ``import polars; polars.read_parquet("…")``. The line runs as it stands, in a process without
            laketier. Lines for Spark may use a session named ``spark``.
        """
        return {}
