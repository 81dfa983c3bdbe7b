"""What the author of a source writes, so that the suite can fill the system that the source reads.

An entry point of group ``laketier.source_conformance``, named as the source, names a subclass of `SourceHarness`.
"""

from __future__ import annotations

import importlib.metadata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

from laketier.spi import PluginNotFound
from laketier_conformance.supplied import Supplied

GROUP = "laketier.source_conformance"
Row = Mapping[str, Any]
"""What a reader must see of a row: its columns by their names, as `pyarrow.RecordBatch.to_pylist` gives them."""


class KeptByReader(Exception):
    """The system lets nobody do this while somebody reads, as one that locks its table. Says why."""


class AtItsBound(KeptByReader):
    """The system has as many as it can have. Says how many."""


class SourceHarness(ABC):
    """One system with tables of its own, made for one test and closed after it. Only `make_table` and `append` are
    needed. What of the others is not there, the report tells as "not shown", and the verdict is at most partial; what
    the system can't have, `cannot` says. Whatever a method raises is an error of the harness, never of the source.

    Tables are small, and their rows come one `append` at a time: a row belongs to its number, so that no two rows of a
    table are equal. The suite calls from one thread."""

    cannot: ClassVar[Mapping[str, str]] = {}
    """By the name of a method below, why the system can't have it: "a landing zone has no transactions"."""
    answers_at: tuple[str, int] | None = None
    """Set by the suite, see `endpoint`."""
    engine_modules: ClassVar[tuple[str, ...]] = ()
    """Top-level modules, such as a client library, that importing the plugin must not import."""

    def __init__(self, folder: Path) -> None:
        """``folder``: empty, and the test's own."""
        self.folder = folder

    @property
    def source_options(self) -> Mapping[str, Any]:
        """The options of the source, as below ``options:`` in a service file."""
        return {}

    @property
    def table_options(self) -> Mapping[str, Any]:
        """The options of each table, as below ``read:`` in a service file."""
        return {}

    def listed(self, name: str) -> str:
        """The name in the source of the table that the suite calls ``name``, where it is another: ``db.orders``."""
        return name

    @abstractmethod
    def make_table(self, name: str) -> None:
        """Make an empty table. Raise ``ValueError`` for a name that the system can't have."""

    @abstractmethod
    def append(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        """Append a row for each number, each in a record of its own, final once this returns, to a table. Return the
        rows that a reader must see of them, in the order of the numbers. In a table with several buckets, spread
        them. In a log of changes, all are inserts, and their column of change types is a part of the rows."""

    def append_several(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        """Append one record that has a row for each number. Return the rows, as `append` does."""
        raise NotImplementedError

    def append_partly_bad(self, name: str, numbers: Sequence[int]) -> bytes | None:
        """Append one record that has a row for each number, and among them one that is no row of the table. Return the
        bytes that `BadRecord.value` must have. Asked for only beside `append_several`."""
        raise NotImplementedError

    def append_equal(self, name: str) -> Sequence[Row]:
        """Append two records that are equal in all that the table has of them. Return both rows."""
        raise NotImplementedError

    def append_late(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        """Append rows as `append` does, which sort before those that are there, in whatever order the system has: a
        file whose name, or a record whose time, comes first."""
        raise NotImplementedError

    def append_bad(self, name: str) -> bytes | None:
        """Append one record that is no row of the table. Return the bytes that `BadRecord.value` must have; None where
        a bad record has none."""
        raise NotImplementedError

    def append_bad_with_key(self, name: str) -> tuple[bytes, bytes | None]:
        """Append one record that has a key, and is no row of the table. Return the bytes that `BadRecord.key` and
        `BadRecord.value` must have."""
        raise NotImplementedError

    def append_limits(self, name: str) -> Sequence[Row]:
        """Append rows with values at the limits of their types: the smallest and the largest number, ``2**53 + 1`` and
        ``0.1 + 0.2``, which need all their digits, nulls, empty and long text, moments far away. Return them as a
        reader must see them."""
        raise NotImplementedError

    def append_texts(self, name: str, texts: Sequence[str]) -> Sequence[Row]:
        """Append a row for each text, which has it in a column of text: as it is, where a format could also escape it.
        Leave out those that the system can't hold.
        Return the rows as a reader must see them."""
        raise NotImplementedError

    def append_bytes(self, name: str, values: Sequence[bytes]) -> Sequence[bytes | None]:
        """Append a record of each of these bytes, none of which is a row. Leave out those that the system can't hold,
        or that its format takes for no record, as an empty line, or for another one, as a line with its end. Return
        those that `BadRecord.value` must have."""
        raise NotImplementedError

    def append_open(self, name: str, numbers: Sequence[int]) -> Callable[[], Sequence[Row]]:
        """Append rows in a transaction that stays open, while `append` appends others. Return what commits it, and then
        returns its rows."""
        raise NotImplementedError

    def append_begun(self, name: str, numbers: Sequence[int]) -> Callable[[], Sequence[Row]]:
        """Write a part of what `append` would, as a writer that is in the midst of it: half a line, or a file under
        the name that it has until it is whole. Return what writes the rest, and then returns the rows."""
        raise NotImplementedError

    def append_many(self, name: str, count: int) -> None:
        """Append so many rows quickly. They may equal rows that are there."""
        raise NotImplementedError

    def make_many(self, names: Sequence[str]) -> None:
        """Make empty tables of these names quickly: there are more than a page of a listing has."""
        raise NotImplementedError

    def update_rows(self, name: str) -> None:
        """Change rows that are there, as an UPDATE does, and append none. Where the user names the column by which
        `TableLog.stamp` knows a row, change others."""
        raise NotImplementedError

    def change_rows(self, name: str) -> Sequence[Row]:
        """In a log of changes: update a row that is there, and delete another. Return the changes that a reader must
        see of it, in their order, with their kinds. Asked for only where `LogTable.change_column` names a column."""
        raise NotImplementedError

    def add_bucket(self, name: str) -> None:
        """Give a table one more bucket, empty. At least one of the rows that are appended next goes into it. Raise
        `AtItsBound` where the system has no more: the suite asks for 101, and for a dozen."""
        raise NotImplementedError

    def close_bucket(self, name: str) -> None:
        """Close a bucket that has rows, as a shard is closed that is cut in two: its records stay, and what is appended
        next goes into others."""
        raise NotImplementedError

    def leave_gap(self, name: str) -> None:
        """Use up some offsets at the end of a bucket without a record that a reader sees, as an aborted transaction
        does."""
        raise NotImplementedError

    def compact(self, name: str) -> Sequence[Row]:
        """Take away some records in the midst of a bucket, whose offsets stay missing, as the compaction of a topic by
        its keys does. Return the rows that are left of the whole table. Raise `KeptByReader` as `expire_all` does."""
        raise NotImplementedError

    def expire(self, name: str) -> None:
        """Take the oldest records away, as the system does when their time is over: some of those that were appended
        before, and not all of them."""
        raise NotImplementedError

    def expire_all(self, name: str) -> None:
        """Take all records away, as the system does when the time of each is over. A bucket may go with its records, as
        that of a partition which is dropped, and does not come back then. Raise `KeptByReader` where a read that is not
        over keeps the records from going."""
        raise NotImplementedError

    def drop_table(self, name: str) -> None:
        """Drop a table: there is none of that name then."""
        raise NotImplementedError

    def make_again(self, name: str) -> None:
        """Drop a table, and make one of the same name, empty."""
        raise NotImplementedError

    def add_column(self, name: str) -> Sequence[Row]:
        """Add a column to a table, as an ALTER TABLE does, and append a row that has a value in it. Return all rows of
        the table as a reader must see them now, in the order of their append. Where the user names the columns, the
        system can't."""
        raise NotImplementedError

    def rename_column(self, name: str) -> tuple[str, str]:
        """Rename a column of a table, in a system that tells of it. Return its former name and its new one."""
        raise NotImplementedError

    def put_back(self, name: str) -> Callable[[], None]:
        """Take a backup of a table as it is now. Return what puts it back, as a person does after a disaster."""
        raise NotImplementedError

    def files(self, name: str) -> Sequence[Path]:
        """The files that hold the records of a table now, each of which has some. The suite removes and cuts them."""
        raise NotImplementedError

    def replace_input(self, name: str) -> None:
        """Replace a part of what was appended by other rows that take as many bytes, as who writes a file once more
        under its name."""
        raise NotImplementedError

    def endpoint(self) -> tuple[str, int]:
        """The host and the port at which the system answers. While `answers_at` is set, `source_options` must name that
        place instead: it hands on all bytes, and breaks connections. Leave it out where clients learn addresses from
        the system itself."""
        raise NotImplementedError

    def cut_off(self) -> AbstractContextManager[None]:
        """For as long as the block, the system answers nobody. Afterwards it holds what it held."""
        raise NotImplementedError

    def secret_options(self) -> Mapping[str, Any]:
        """`source_options`, with ``{secret}`` in place of each password. Only made, never connected with."""
        raise NotImplementedError

    def close(self) -> None:
        """End what was begun: the test is over."""
        return


MEMBERS = tuple(name for name in vars(SourceHarness) if not name.startswith("_"))


def harness_of(name: str, place: str | None = None) -> type[SourceHarness]:
    """The author's harness; ``place`` is a module and a class in it, for another one than the entry point's.

    Raises `PluginNotFound`, `PluginConflict` for two, and `PluginBroken` for one that can't be used."""
    named = importlib.metadata.EntryPoint(name, place, GROUP) if place else None
    offered = [named] if named else importlib.metadata.entry_points(group=GROUP, name=name)
    supplied = Supplied.load(f"the source {name!r}", offered)
    if supplied is None:
        raise PluginNotFound(
            f"there is no harness for the source {name!r}",
            why=f"no installed distribution has an entry point {name!r} of group {GROUP}",
            fix=f'Write a laketier_source_conformance.harness.SourceHarness, name it below [project.entry-points."'
            f'{GROUP}"] in pyproject.toml, and install it again.',
        )
    found = supplied.found
    if not (isinstance(found, type) and issubclass(found, SourceHarness)):
        raise supplied.broken(f"{found!r} is no subclass of SourceHarness", fix="Derive it from it.")
    supplied.check_names(vars(found), MEMBERS)
    if not isinstance(found.cannot, Mapping):
        raise supplied.broken("`cannot` is no mapping", fix="Give a reason for each method.")
    reasons: Mapping[str, object] = found.cannot
    silent = sorted(name for name, why in reasons.items() if not (isinstance(why, str) and why.strip()))
    if silent:
        raise supplied.broken(
            f"`cannot` gives no reason for {silent}, and the report repeats it",
            fix="Say in a sentence why the system can't have it.",
        )
    unknown = sorted(set(found.cannot) - set(MEMBERS))
    if unknown:
        raise supplied.broken(f"`cannot` has {unknown}, which are no members", fix="Name methods of SourceHarness.")
    return found
