"""Searching one table: words and vectors. A capability that a format may add."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from laketier.spi.asked import as_columns, as_filters
from laketier.spi.errors import ConfigError, CorruptTable, SnapshotNotFound, TableError
from laketier.spi.predicate import Predicate
from laketier.spi.search_query import Hybrid, Nearest, SearchQuery, as_query
from laketier.spi.source import ScanRequest

log = logging.getLogger(__name__)

SCORE = "_score"
"""The column of a result that grows with how well a row matches: BM25, or the sum of a `Hybrid`. A double."""
DISTANCE = "_distance"
"""The column of a result of a `Nearest`: the less, the nearer. A double."""
MOST_ROWS = 10_000
"""The rows that a search returns, at most."""
_ATTEMPTS = 10
"""How often a search is tried where clean-ups outrun it: each is a commit, and a deletion of what was just read."""


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The parameter of `SearchSnapshot.search`.

    Attributes:
        query: The query. A string becomes a `Match`.
        k: The number of rows, at most.
        columns: The columns of the result, each once, in this order. None for all.
        filters: Predicates that each row has to fulfil. They choose the rows that are searched: the result is the best
            ``k`` of them.
    """

    query: SearchQuery
    k: int = 10
    columns: tuple[str, ...] | None = None
    filters: tuple[Predicate, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", as_query(self.query))
        if type(self.k) is not int or not 1 <= self.k <= MOST_ROWS:
            raise ConfigError(f"k is {self.k!r}", fix=f"Ask for 1 to {MOST_ROWS:,} rows.")
        for each in self.filters:
            if not isinstance(each, Predicate):
                raise ConfigError(
                    f"the filter {each!r:.80} is a {type(each).__name__}",
                    fix="Give predicates, such as Leaf('id', Op.LT, 100).",
                )

    @property
    def measure(self) -> str:
        """The column by which the result is in order: `SCORE` or `DISTANCE`."""
        return DISTANCE if isinstance(self.query, Nearest) else SCORE

    def projected(self, schema: pa.Schema, *, where: str) -> pa.Schema:
        """Compute the schema of the result.

        Args:
            schema: The whole schema of the snapshot.
            where: The name of the table, for messages.

        Returns:
            The requested columns, then the measure.

        Raises:
            ConfigError: A column of the request or of a filter does not exist, is asked for twice, or has the name of
                the measure.
        """
        columns = ScanRequest(columns=self.columns, filters=self.filters).projected(schema, where=where)
        own = {SCORE, DISTANCE} if isinstance(self.query, Hybrid) else {self.measure}
        taken = own.intersection(schema.names) or {name for name in columns.names if name.lower() == self.measure}
        if taken:  # readers fold case, and would not know which of two is meant
            raise ConfigError(
                f"the table has a column {', '.join(sorted(taken))}",
                where=where,
                why="a search gives that name to its own",
                fix="Rename the column.",
            )
        return columns.append(pa.field(self.measure, pa.float64(), nullable=False))


@dataclass(frozen=True)
class IndexUse:
    """An index that a search used.

    Attributes:
        name: Its name.
        column: Its column.
        kind: Its kind, as the library calls it.
        rows: The rows that it covers.
    """

    name: str
    column: str
    kind: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class SearchExplain:
    """What a search did.

    Attributes:
        indexes: The indexes that were used. Empty for a search of all rows.
        rows: The rows of the snapshot.
        rows_flat: The rows that some column's search had to read as no index covers them, before filters.
        milliseconds: The time of each part.
        notes: What whoever asked has to know of the answer, a sentence each: that an index drops all words of the
            query. `LakeSearcher` logs them.
    """

    indexes: tuple[IndexUse, ...]
    rows: int
    rows_flat: int
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def rows_covered(self) -> int:
        """The rows that indexes cover."""
        return self.rows - self.rows_flat

    @property
    def share(self) -> float:
        """The part of the rows that indexes cover, from 0 to 1; 1 for a table without rows."""
        return self.rows_covered / self.rows if self.rows else 1.0


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The answer to a `SearchRequest`.

    Attributes:
        rows: The rows in the schema of `SearchRequest.projected`, the best first. Equal ones are in the order of the
            table, so that the same request at the same snapshot has the same answer.
        snapshot_id: The snapshot that was searched.
        explain: How.
    """

    rows: pa.Table
    snapshot_id: int
    explain: SearchExplain


class SearchSnapshot(ABC):
    """One snapshot of a table, opened for any number of searches. It stays in its process."""

    @property
    @abstractmethod
    def snapshot_id(self) -> int:
        """The snapshot."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the snapshot."""

    @property
    def identity(self) -> str:
        """What no snapshot of the same number has, if the table is dropped and made anew: so a task can tell whether it
        searches what the driver chose (`LakeSearcher.at_again`). Empty where that is not known, as it is by default."""
        return ""

    @abstractmethod
    def search(self, request: SearchRequest) -> SearchResult:
        """Search. Rows that no index covers are found all the same; deleted rows never.

        Args:
            request: The query, and what to return.

        Returns:
            The best rows.

        Raises:
            ConfigError: The request does not fit the table: an unknown column, a column of another type, a vector of
                another length, a plain text where no column, or more than one, has a full-text index, or a phrase where
                the index has no positions.
            CorruptTable: A file of the table is missing or damaged.
        """


def _told(result: SearchResult) -> SearchResult:
    for note in result.explain.notes:
        log.warning("%s", note)
    return result


class LakeSearcher(ABC):
    """Searches one table. Made by `LakeStorage.searcher`, for a format with `Feature.SEARCH`. Picklable: tasks search,
    too."""

    @abstractmethod
    def at(self, snapshot_id: int | None = None) -> SearchSnapshot:
        """Open a snapshot. Driver or executor.

        Args:
            snapshot_id: The snapshot. None for the one that is current now, also of a searcher that is kept.

        Returns:
            The snapshot.

        Raises:
            TableNotFound: There is no such table.
            SnapshotNotFound: The snapshot has expired, or never was.
        """

    def at_again(self, snapshot_id: int, identity: str) -> SearchSnapshot:
        """Open a snapshot that another process opened. Executor.

        Args:
            snapshot_id: The snapshot.
            identity: What it had there as `SearchSnapshot.identity`.

        Returns:
            The snapshot.

        Raises:
            TableNotFound: There is no such table any more.
            SnapshotNotFound: The snapshot has expired, or is of a table that was made anew in the place of that one.
        """
        opened = self.at(snapshot_id)
        if identity and opened.identity != identity:
            raise SnapshotNotFound(
                f"snapshot {snapshot_id} is not the one that was chosen",
                why="the table was dropped, and made anew under its name, or its history was",
                fix="Begin anew: the statement or the job chose a snapshot that is gone.",
            )
        return opened

    def search(
        self,
        query: str | SearchQuery,
        *,
        k: int = 10,
        columns: Sequence[str] | None = None,
        filters: Iterable[Predicate] = (),
        snapshot_id: int | None = None,
    ) -> SearchResult:
        """Open a snapshot and search it once. Where none is named, and the newest was cleaned up while it was searched,
        the one that is the newest then is searched; the log says so.

        Args:
            query: The query, or the words of a `Match`.
            k: The number of rows, at most.
            columns: The columns of the result. None for all.
            filters: Predicates that each row has to fulfil.
            snapshot_id: The snapshot. None for the current one.

        Returns:
            The best rows.

        Raises:
            ConfigError: ``columns`` is a text, or the request does not fit the table, as `SearchSnapshot.search` says.
            TableNotFound: There is no such table.
            SnapshotNotFound: The named snapshot has expired, also while it was searched, or never was.
            CorruptTable: A file of the table is missing or damaged.
        """
        request = SearchRequest(query=as_query(query), k=k, columns=as_columns(columns), filters=as_filters(filters))
        if snapshot_id is not None:
            return self.search_opened(self.at(snapshot_id), request)
        opened = self._newest()
        for _ in range(_ATTEMPTS - 1):
            try:
                return _told(opened.search(request))
            except TableError as error:
                newest = self._newest()
                if newest.snapshot_id == opened.snapshot_id:
                    raise
                log.warning(
                    "snapshot %d was superseded while it was searched, so snapshot %d is: %s",
                    opened.snapshot_id,
                    newest.snapshot_id,
                    error,
                )
                opened = newest
        return _told(opened.search(request))

    def _newest(self) -> SearchSnapshot:
        try:
            return self.at()
        except TableError as error:  # it may have been superseded while it was opened
            log.info("the newest snapshot could not be opened, so it is looked for again: %s", error)
            return self.at()

    def search_opened(self, opened: SearchSnapshot, request: SearchRequest) -> SearchResult:
        """Search a snapshot that somebody chose: no other may answer in its place. Driver or executor.

        Args:
            opened: The snapshot, opened by `at`.
            request: The query, and what to return.

        Returns:
            The best rows.

        Raises:
            ConfigError: The request does not fit the table.
            SnapshotNotFound: The snapshot expired while it was searched.
            CorruptTable: A file of it is missing or damaged.
        """
        try:
            return _told(opened.search(request))
        except TableError as error:
            again = "Search a newer snapshot; a statement or a job that chose this one by itself has to begin anew."
            try:
                self.at(opened.snapshot_id)
            except SnapshotNotFound as gone:
                raise SnapshotNotFound(
                    f"snapshot {opened.snapshot_id} was cleaned up while it was searched",
                    where=gone.where,
                    why=str(error),
                    fix=again,
                ) from error
            if not isinstance(error, CorruptTable):
                raise
            raise CorruptTable(
                f"snapshot {opened.snapshot_id} can't be searched", where=error.where, why=str(error), fix=again
            ) from error
