"""The entrance to a format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic
from weakref import finalize

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
from laketier.spi.serializer import DataclassSerializer, SimpleVersionedSerializer
from laketier.spi.source import LakeSource
from laketier.spi.table import TableInfo
from laketier.spi.writer import WR, LakeWriter, WriteResult, new_attempt_id


@dataclass(frozen=True)
class LakeStorageConfig:
    """What `LakeStoragePlugin.create_storage` gets: the warehouse (an absolute path or URI, unless the plugin says that
    it is a name) and the plugin's own options, an instance of its ``options_type``, already checked."""

    warehouse: str
    options: Any = field(default_factory=NoOptions)


class LakeTieringFactory(ABC, Generic[WR]):
    """Makes the writers and the committer of one table. Made on the driver by `LakeStorage.tiering_factory`;
    picklable, crosses to executors. So it holds what a writer needs (schema, uuid, location, options) as plain
    data, and imports its library inside the methods."""

    @abstractmethod
    def create_writer(self, context: WriterInitContext) -> LakeWriter[WR]:
        """On an executor: a writer for one task attempt. Loads no table metadata."""

    @abstractmethod
    def create_committer(self, context: CommitterInitContext) -> LakeCommitter[WR]:
        """On the driver: a committer for one round attempt."""

    @property
    def write_result_serializer(self) -> SimpleVersionedSerializer[WR]:
        """How write results travel. The default suits `WriteResult` itself."""
        return DataclassSerializer(WriteResult)  # type: ignore[arg-type] # others override this


class LakeStorage(ABC):
    """One warehouse of one format. Driver only."""

    @abstractmethod
    def catalog(self) -> LakeCatalog:
        """The warehouse's tables."""

    @abstractmethod
    def tiering_factory(self, table: TableInfo) -> LakeTieringFactory[Any]:
        """The factory for rounds into ``table``, as loaded just now. Needs no look at the table where ``table`` has a
        handle. Raises `UnsafeTable`."""

    @abstractmethod
    def source(self, table: TableInfo) -> LakeSource:
        """The source that reads ``table``."""

    def state(self, table: TableInfo) -> TableState:
        """The state of ``table`` for those who read: its snapshot, schema and watermarks. Also for tables that can't be
        written. As old as ``table`` where that has a handle, else fresh; never given to `LakeCommitter.publish`.
        Raises `TableNotFound`, `CorruptTable`, and what the format can't read.

        A format overrides it. Without that it is what a committer sees, and fails where a table can't be written.
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
        """The snapshots of ``table`` (`Feature.HISTORY`)."""
        raise FeatureNotSupported(Feature.HISTORY.value, reason="it does not list its snapshots")

    def changes(self, table: TableInfo) -> LakeChanges:
        """What commits appended to ``table`` (`Feature.INCREMENTAL_READ`)."""
        raise FeatureNotSupported(Feature.INCREMENTAL_READ.value, reason="it does not tell what a commit appended")

    def feed(self, table: TableInfo) -> LakeFeed:
        """What commits did to the rows of ``table`` (`Feature.CHANGE_FEED`). Raises `ConfigError` for a table that
        keeps no feed."""
        raise FeatureNotSupported(Feature.CHANGE_FEED.value, reason="it does not tell which rows a commit changed")

    def maintenance(self, table: TableInfo) -> LakeMaintenance:
        """What keeps ``table`` tidy (`Feature.ORPHAN_COLLECTION`)."""
        raise FeatureNotSupported(Feature.ORPHAN_COLLECTION.value, reason="it has no maintenance")

    def indexer(self, table: TableInfo) -> LakeIndexer:
        """The secondary indexes of ``table`` (`Feature.INDEXING`)."""
        raise FeatureNotSupported(Feature.INDEXING.value, reason="it has no indexer")


class LakeStoragePlugin(ABC):
    """A format. Returned by the hook ``laketier_format`` of the module that the entry point (group
    ``laketier.formats``, name = `identifier`) points at. Importing that module must not import the engine: do so
    inside `create_storage` or later. Picklable; stateless."""

    identifier: ClassVar[str]
    """The value of ``lake.format``: lower-case letters, digits and ``-``. Equal to the entry point's name."""
    spi_version: ClassVar[int]
    """The version that the plugin was written for (`FORMAT_SPI_VERSION` at the time), as a number. Not that constant,
    which is another one with the next laketier."""
    delivery: ClassVar[DeliveryLevel]
    features: ClassVar[Features]
    """Each `Feature` that the plugin knows, FULL or unsupported with a reason. What it does not name is unsupported."""
    options_type: ClassVar[type] = NoOptions
    """A frozen dataclass, see `laketier.spi.options`."""

    def warehouse_is_location(self, warehouse: str, options: Mapping[str, str]) -> bool:
        """Whether ``lake.warehouse`` is a path or URI, so that a relative one is made absolute when the configuration
        is read; False where it is a name that a catalog knows. ``options`` are the format's own, not yet typed."""
        return True

    @abstractmethod
    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        """Open a warehouse, on the driver. Touches storage as little as it can; a warehouse that does not exist yet
        is fine. Raises `ConfigError` for options that contradict each other."""

    def open_with(self, table: TableInfo) -> Mapping[str, str]:
        """How people open the table without laketier: tool (``DuckDB``, ``Polars``, …) → one line of Python with its
        imports, whose last expression is the table: ``import polars; polars.read_parquet("…")``. The line must run
        as it stands, in a process without laketier (Spark's lines take a session named ``spark`` for given). Tested
        by the conformance suite, and used by the demo to count with readers that are not ours."""
        return {}
