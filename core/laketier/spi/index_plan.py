"""What is built of an index, in parts, and who builds it on executors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from laketier.spi.errors import FeatureNotSupported
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
