"""Secondary indexes, built in parts by many tasks. A capability that a format may add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from laketier.spi.errors import FeatureNotSupported
from laketier.spi.features import Feature
from laketier.spi.index_resources import UNLIMITED, IndexResources


class IndexKind(StrEnum):
    """The kinds of index that have a name here. A format refuses those that it can't build."""

    INVERTED = "inverted"
    """Full text: the words of a text column."""
    BTREE = "btree"
    BITMAP = "bitmap"
    LABEL_LIST = "label-list"
    """The members of a list column."""
    NGRAM = "ngram"
    """Parts of words, for ``contains``."""
    ZONEMAP = "zonemap"
    BLOOMFILTER = "bloomfilter"
    IVF_FLAT = "ivf-flat"
    """Vectors, in partitions around centres that are trained; each vector as it is."""
    IVF_PQ = "ivf-pq"
    """As ``ivf-flat``; each vector as codes of its sub-vectors, by a codebook that is trained."""
    IVF_SQ = "ivf-sq"
    """As ``ivf-flat``; each number of a vector as a byte."""
    IVF_RQ = "ivf-rq"
    """As ``ivf-flat``; each vector as a few bits for each of its numbers, turned by one rotation."""
    IVF_HNSW_FLAT = "ivf-hnsw-flat"
    """As ``ivf-flat``, with a graph of neighbours in each partition. So are the other two."""
    IVF_HNSW_PQ = "ivf-hnsw-pq"
    IVF_HNSW_SQ = "ivf-hnsw-sq"


class IndexMode(StrEnum):
    """What a build does to an index of the same name."""

    CREATE = "create"
    """There must be none."""
    REPLACE = "replace"
    """It gives way to the new one in the step that publishes that. It need not be there."""
    APPEND = "append"
    """It keeps its segments and gets new ones for the rows that it does not cover."""
    MERGE = "merge"
    """Some of its segments give way to fewer ones that cover the same rows, with the same settings."""


@dataclass(frozen=True)
class IndexSpec:
    """What is built.

    Attributes:
        name: The name of the index, unique in its table.
        column: The column.
        kind: The kind.
        options: Settings of the kind, as the format declares them. Values are str, int, float, bool or None.
    """

    name: str
    column: str
    kind: IndexKind
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class IndexPart:
    """What one task indexes. Picklable.

    Attributes:
        number: Its number in the plan, from 0.
        units: The format's own names of what it covers, such as ids of fragments; for `IndexMode.MERGE`, those of the
            segments that it merges.
        rows: The rows that it covers.
        bytes: An estimate of the column's bytes. 0 where unknown.
    """

    number: int
    units: tuple[str, ...]
    rows: int
    bytes: int = 0


@dataclass(frozen=True)
class BuiltIndexPart:
    """What a task built and nobody sees yet. Picklable and small: the files stay in the table's folder.

    Attributes:
        plan_id: The plan that it belongs to.
        part: The part that was built.
        segment: The id of what was built, unguessable, never used twice.
        snapshot_id: The snapshot that was read.
        settings: All settings of the build, as one text that is equal for equal settings.
        rows: The rows that were read.
        size: The bytes of the files.
        payload: What the format needs to publish it, as text.
        peak_memory: The most bytes that the process held while it built the part, as who runs the task measures it. 0
            where unknown.
        base_memory: The bytes that it held before that, with the library loaded and the snapshot open. 0 where unknown.
    """

    plan_id: str
    part: IndexPart
    segment: str
    snapshot_id: int
    settings: str
    rows: int
    size: int
    payload: str
    peak_memory: int = 0
    base_memory: int = 0

    @property
    def memory_taken(self) -> int:
        """The bytes that the part took of its process, beside what that held before. 0 where unknown."""
        return max(0, self.peak_memory - self.base_memory) if self.base_memory else 0


class LakeIndexBuilder(ABC):
    """Builds parts on executors. Plain data, picklable."""

    @property
    def needs_training(self) -> bool:
        """Whether `train` comes before any `build`. Never, by default."""
        return False

    def train(self) -> LakeIndexBuilder:
        """Train what all parts share, such as the centres of an index of vectors. Once for a plan, on an executor or
        the driver; again if it failed. Reads the plan's snapshot, writes nothing.

        Returns:
            The builder that has it, and builds the parts; itself where there is nothing to train.

        Raises:
            SnapshotNotFound: The plan's snapshot has expired.
            TableError: The table could not be read, or there is too little in it.
        """
        return self

    def within(self, resources: IndexResources) -> LakeIndexBuilder:
        """Bound what each `build` takes. Driver, before any part. A builder may set variables of its process for as
        long as it builds, if the resources need a process of their own. By default nothing can be bounded.

        Args:
            resources: The limits. How many tasks run at a time, and where they spill to, is not the builder's business.

        Returns:
            The builder that keeps to them.

        Raises:
            FeatureNotSupported: This kind of index has no such limit.
            ConfigError: A limit is too small, or they contradict each other.
        """
        for name in ("memory", "partition_size"):
            if getattr(resources, name) is not None:
                raise FeatureNotSupported(
                    f"{name.replace('_', '-')} of an index build", reason="it has no such limit", fix="Leave it out."
                )
        return self

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables without which `build` can't keep its limits, as the library reads them once in a process. Who runs
        the tasks sets them, in processes that do nothing else. None, by default.

        Returns:
            The value of each variable.
        """
        return {}

    def warm_up(self) -> None:  # noqa: B027 - not every library needs it
        """Load the library and open the plan's snapshot, so that what a part takes can be told from what any process
        holds that only opens the table. Executor, before each `build`. Nothing, by default.

        Raises:
            SnapshotNotFound: The plan's snapshot has expired.
            TableError: The table could not be read.
        """

    @abstractmethod
    def build(self, part: IndexPart) -> BuiltIndexPart:
        """Build one part. Executor. Loads the plan's snapshot and nothing else. May run twice for the same part,
        also at the same time: each run leaves files of its own, and one of them is published.

        Args:
            part: The part.

        Returns:
            What was built.

        Raises:
            SnapshotNotFound: The plan's snapshot has expired.
            TableError: The table could not be read.
        """


@dataclass(frozen=True)
class IndexPlan:
    """A build. Picklable.

    Attributes:
        plan_id: Its id.
        spec: What is built, with all settings that count.
        mode: What is done to an index of that name.
        snapshot_id: The snapshot that all parts read.
        parts: The parts. Empty where there is nothing to append or to merge.
        builder: Builds them.
        kept: What an earlier plan had built and `LakeIndexer.replan` or `LakeIndexer.resume` found to be right still.
            It is published beside ``parts``, and not among them.
        resources: What each task may take. Whoever runs the tasks keeps to it.
    """

    plan_id: str
    spec: IndexSpec
    mode: IndexMode
    snapshot_id: int
    parts: tuple[IndexPart, ...]
    builder: LakeIndexBuilder
    kept: tuple[BuiltIndexPart, ...] = ()
    resources: IndexResources = UNLIMITED


@dataclass(frozen=True, kw_only=True)
class IndexInfo:
    """An index of a table, as of one snapshot.

    Attributes:
        name: Its name.
        column: Its column. Dotted where nested; several are separated by commas.
        kind: An `IndexKind`, or the format's own word for a kind that has no name here.
        options: Its settings, as far as the format tells them.
        segments: The ids of its segments.
        rows_indexed: The rows that it covers, deleted ones included where the format counts them.
        rows_not_indexed: The rows that a query has to look through without it.
        bytes: The bytes of its files. None where unknown.
        snapshot_id: The snapshot.
        segment_rows: The rows of each segment, in the order of ``segments``. Empty where unknown.
        rows_deleted: Rows that were deleted and that it still counts. They are no answers, but scores of words drift
            with each. 0 where nothing depends on them.
        built_at: When the newest segment was made, in ms since the epoch. None where unknown.
        damage: Why it can't be used, where a look at it found that out: its files are gone. It can be dropped and
            replaced. None otherwise.
    """

    name: str
    column: str
    kind: str
    options: Mapping[str, Any]
    segments: tuple[str, ...]
    rows_indexed: int
    rows_not_indexed: int
    snapshot_id: int
    bytes: int | None = None
    segment_rows: tuple[int, ...] = ()
    rows_deleted: int = 0
    built_at: int | None = None
    damage: str | None = None


class LakeIndexer(ABC):  # noqa: B024 - plugins of earlier releases have an empty one
    """The secondary indexes of one table. Made by `LakeStorage.indexer`, for a format with `Feature.INDEXING`. Driver.

    An index is planned, its parts are built by tasks, and one atomic step publishes them. Until then no query uses any
    of it. The defaults refuse: a plugin of an earlier release has none of these methods.
    """

    def plan(self, spec: IndexSpec, max_parts: int, mode: IndexMode = IndexMode.CREATE) -> IndexPlan:
        """Plan a build at the table's newest snapshot. Writes nothing.

        Args:
            spec: What to build.
            max_parts: The number of parts at most; 1 or more. For `IndexMode.MERGE`: of the segments that are left.
            mode: What to do to an index of that name.

        Returns:
            The plan, with parts of about the same size.

        Raises:
            ConfigError: The column or an option is unknown or does not fit, an index of that name is there already
                (`IndexMode.CREATE`), differs, or is missing (`IndexMode.APPEND`, `IndexMode.MERGE`).
            FeatureNotSupported: The format does not build this kind, or has no such mode.
        """
        raise FeatureNotSupported(Feature.INDEXING.value, reason="it plans none")

    def resume(self, plan: IndexPlan, max_parts: int) -> IndexPlan:
        """Find what an earlier build of the same index had finished when its driver died, before any part of ``plan``
        is trained or built. What is found has to be what a task would build now. By default nothing is found.

        Args:
            plan: A plan of `plan`.
            max_parts: As for `plan`.

        Returns:
            The plan, with the parts that were found as ``kept``, and without these among ``parts``.

        Raises:
            TableError: The table could not be read.
            StorageError: The storage refused.
        """
        return plan

    def replan(self, plan: IndexPlan, built: Sequence[BuiltIndexPart], max_parts: int) -> IndexPlan:
        """Plan again what `publish` refused with `TableChanged`. Writes nothing. A format may keep the parts whose rows
        are unchanged; by default all is planned anew.

        Args:
            plan: The plan that was refused.
            built: What its tasks built. What is not kept becomes an orphan.
            max_parts: As for `plan`.

        Returns:
            A plan at the table's newest snapshot.

        Raises:
            ConfigError: As `plan`.
            FeatureNotSupported: As `plan`.
        """
        spec = plan.spec
        if plan.mode in (IndexMode.APPEND, IndexMode.MERGE):
            spec = replace(spec, options={})  # those of the index, some of which may be the format's own
        return self.plan(spec, max_parts, plan.mode)

    def publish(self, plan: IndexPlan, built: Sequence[BuiltIndexPart]) -> IndexInfo:
        """Publish what was built, in one atomic step. Calling it again with the same parts changes nothing.

        Args:
            plan: The plan.
            built: One result for each part, in any order.

        Returns:
            The index as it is now.

        Raises:
            Refused: A part is missing, there twice, of another plan, or was built with other settings or at another
                snapshot. Nothing was published.
            TableChanged: Rows of a part were rewritten meanwhile, or an index of that name changed. Nothing was
                published; plan again.
            Conflict: Other commits came first each time. Nothing was published.
            CommitError: It could not be published, or it is unknown whether it was: call it again.
            FeatureNotSupported: The format publishes none.
        """
        raise FeatureNotSupported(Feature.INDEXING.value, reason="it publishes none")

    def indexes(self) -> Sequence[IndexInfo]:
        """List the indexes at the newest snapshot.

        Returns:
            The indexes, sorted by name.

        Raises:
            TableError: The table could not be read.
            FeatureNotSupported: The format lists none.
        """
        raise FeatureNotSupported(Feature.INDEXING.value, reason="it lists none")

    def drop(self, name: str) -> None:
        """Drop an index in one atomic step. Its files stay until clean-up.

        Args:
            name: Its name.

        Raises:
            ConfigError: There is none of that name.
            FeatureNotSupported: The format drops none.
        """
        raise FeatureNotSupported(Feature.INDEXING.value, reason="it drops none")
