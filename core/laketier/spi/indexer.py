"""Secondary indexes, built in parts by many tasks. A capability that a format may add."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from laketier.spi.errors import FeatureNotSupported
from laketier.spi.features import Feature
from laketier.spi.index_plan import BuiltIndexPart, IndexMode, IndexPlan, IndexSpec


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
            ConfigError: The column or an option is unknown or does not fit, the name of a new index is none
                (`check_index_name`), an index of that name is there already (`IndexMode.CREATE`), differs, or is
                missing (`IndexMode.APPEND`, `IndexMode.MERGE`).
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
