"""Opening datasets, and saying what went wrong in laketier's words."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laketier.kit.library_errors import errors_and_panics, refused_by_the_system
from laketier.spi import (
    ConfigError,
    Conflict,
    CorruptTable,
    IncompatibleTable,
    LaketierError,
    SnapshotNotFound,
    StorageError,
    TableError,
    TableNotFound,
)
from laketier_lance.base_paths import refuse_elsewhere
from laketier_lance.lance_schema import column_field_ids, with_field_ids
from laketier_lance.leftovers import has_sign, left_rows
from laketier_lance.sessions import file_session

if TYPE_CHECKING:
    from lance import LanceDataset, Transaction
    from lance.fragment import FragmentMetadata

LANCE_ERRORS = (OSError, ValueError, RuntimeError)
"""The errors of pylance. Which of them says little: its file sessions raise the third for what datasets raise the
first for."""


def lance_errors(*more: type[Exception]) -> tuple[type[BaseException], ...]:
    """Those and ``more``, and panics, which Lance has for some files that are damaged."""
    return errors_and_panics(*LANCE_ERRORS, *more)


_STORE_ERROR = re.compile(r"Generic \S+ error|HTTP|timed out|Permission denied")
_MISSING = re.compile(r"Not found: ([^\n]+?\.(?:lance|idx|arrow|bin|txn|manifest))(?![\w/.])")
_NEWER = re.compile(r"cannot be (?:read|written) by this version of Lance")
_BOOKS = "__lance_"
UPGRADE = "Upgrade pylance, on the executors too; or write to another table."
_SOURCE_LINE = re.compile(r",? (?:location: )?/(?:home|rustc)/\S+?\.rs:\d+(?::\d+)?")


def open_dataset(location: str, storage: dict[str, str], version: int | None = None) -> LanceDataset:
    """A fresh handle, never from a cache. Raises `TableNotFound`, `SnapshotNotFound` for a version that does not
    exist or was cleaned up, `CorruptTable`, and `IncompatibleTable` for files out of the table."""
    opened = _opened(location, storage, version)
    refuse_elsewhere(opened, location)
    return opened


def refuse_missing(location: str, storage: dict[str, str]) -> None:
    """Raise `TableNotFound` and the like where there is no dataset. Nothing of it is read, so its files may be
    anywhere."""
    _opened(location, storage)


def _opened(location: str, storage: dict[str, str], version: int | None = None, *, again: bool = True) -> LanceDataset:
    import lance

    try:
        opened = lance.dataset(location, version=version, storage_options=storage)
        _ = opened.schema  # a type that nobody knows is told only here, by a panic
        return opened
    except lance_errors(OverflowError) as error:  # the last one for a number that is not of 64 bits without a sign
        text = reason(error)
        if not isinstance(error, OverflowError) and "was not found" not in text and "Not found" not in text:
            raise unreadable(location, error) from error
        if version is None:
            with reading(location):
                left = left_rows(location, storage)
                if left is not None and has_sign(location, storage):
                    left = None  # what a drop left that was cut off
            if left is None:
                raise TableNotFound(
                    "there is no Lance dataset", where=location, fix="Create the table first, or check lake.warehouse."
                ) from error
            if again:  # another process may have made it in between
                return _opened(location, storage, again=False)
            raise CorruptTable(
                "the dataset's list of versions is gone, and files of its rows are there",
                where=location,
                why=f"it holds {left}, and no manifest in _versions",
                fix="Restore the folder _versions from a backup. If another program is about to commit its first rows, "
                "wait for it. If a drop or a first write was interrupted, or nobody needs the rows, delete the folder "
                "of the dataset.",
            ) from error
        _opened(location, storage)
        raise SnapshotNotFound(
            f"version {version} does not exist or was cleaned up",
            where=location,
            fix="`laketier history` lists the versions that can be read.",
        ) from error


def refuse_dropped(location: str, storage: dict[str, str]) -> None:
    """Raise `Conflict` when the table is gone. A commit would make its folder anew, and a dataset without its files."""
    try:
        refuse_missing(location, storage)
    except TableNotFound as error:
        raise Conflict("the table was dropped meanwhile", where=location) from error


def read_transaction(dataset: LanceDataset, version: int) -> Transaction | None:
    """The transaction that made ``version``; None when it can't be read any more."""
    import lance

    try:
        return dataset.read_transaction(version)
    except lance_errors() as error:
        if "not found" in reason(error).lower():
            return None
        raise unreadable(dataset.uri, error) from error
    except TypeError as error:
        # pylance fails to make a Python object of a compaction that rewrote an index. It is never one of ours.
        if "RewrittenIndex" not in str(error):
            raise
        return lance.Transaction(version - 1, lance.LanceOperation.Rewrite([], []), uuid=f"version {version}")


def properties_of(transaction: Transaction | None) -> Mapping[str, str]:
    """What its commit tells of itself; nothing of one that can't be read any more."""
    return {} if transaction is None else transaction.transaction_properties or {}


def recent_transactions(dataset: LanceDataset, count: int) -> list[Transaction | None]:
    """Those of the newest ``count`` versions, the newest first: as many as can be read in one call, in a seventh of
    the time of one call each. It ends before a version that was cleaned up; None stands for a transaction that was."""
    if count <= 0:
        return []
    try:
        return list(dataset.get_transactions(count))
    except lance_errors(TypeError):
        return []  # the caller reads them one by one, and finds out which it is


def indexes_of(dataset: LanceDataset) -> list[Any]:
    """The indexes that somebody made, as Lance describes them. Those with which it keeps books itself, such as of
    fragments that a compaction moved without its indexes, answer no question."""
    return [each for each in dataset.describe_indices() if not each.name.startswith(_BOOKS)]


def has_moved(dataset: LanceDataset) -> bool:
    """Whether a compaction moved fragments without their indexes, and Lance looks up for each answer where a row is."""
    return any(each.name.startswith(_BOOKS) for each in dataset.describe_indices())


def create_dataset(location: str, schema: pa.Schema, file_version: str, storage: dict[str, str]) -> None:
    """Make an empty dataset, only if there is none: of many racers one wins, the others get Lance's `OSError`.

    `lance.write_dataset(mode="create")` is no compare-and-set: it looks first and commits later, and of two that
    looked at the same time the second buries the first. An `Overwrite` of version 0 without retries is one.
    """
    import lance
    from lance.commit import CommitConflictError

    def overwrite(read_version: int, fragments: list[FragmentMetadata]) -> None:
        operation = lance.LanceOperation.Overwrite(schema, fragments)
        transaction = lance.Transaction(read_version=read_version, operation=operation)
        lance.LanceDataset.commit(location, transaction, storage_options=storage, max_retries=0)

    if file_version == _default_file_version():
        overwrite(0, [])
        return
    # A commit takes the file format from its fragments; so one without rows goes in, and out again.
    overwrite(0, [_empty_fragment(location, schema, file_version, storage)])
    with suppress(CommitConflictError):
        overwrite(1, [])


def _default_file_version() -> str:
    import lance

    return str(lance.write_dataset(pa.table({}), "memory://empty").data_storage_version)


def _empty_fragment(location: str, schema: pa.Schema, version: str, storage: dict[str, str]) -> FragmentMetadata:
    from lance.fragment import DataFile, FragmentMetadata
    from lance.schema import LanceSchema

    name = f"{uuid.uuid4().hex}-empty.lance"
    session = file_session(location, storage)
    with session.open_writer(f"data/{name}", schema=schema.remove_metadata(), version=version):
        pass
    columns = column_field_ids(with_field_ids(LanceSchema.from_pyarrow(schema)), version)
    major, minor = (int(part) for part in version.split("."))
    return FragmentMetadata(0, [DataFile(name, list(columns), list(range(len(columns))), major, minor)], 0)


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Within the block errors of Lance's are those of `unreadable`."""
    try:
        yield
    except lance_errors() as error:
        raise unreadable(location, error) from error


def unreadable(location: str, error: BaseException) -> LaketierError:
    """What to raise when Lance could not read a dataset: damaged, or the store did not answer as it should."""
    text = reason(error)
    if "No object store provider" in text:
        return ConfigError(
            "Lance does not know this kind of store",
            where=location,
            why=text.splitlines()[0],
            fix="Use a local path, s3://, gs://, az:// or abfss:// in lake.warehouse.",
        )
    if is_for_newer(error):
        return IncompatibleTable("a newer version of Lance wrote the dataset", where=location, why=text, fix=UPGRADE)
    missing = _MISSING.search(text)
    if missing is not None:
        path = missing[1]
        if location.startswith("/") and not path.startswith("/"):
            path = f"/{path}"  # some of Lance's messages name a path as its object store does
        of_index = "/_indices/" in path
        return CorruptTable(
            f"{'an index' if of_index else 'a data'} file of the snapshot is missing",
            where=path,
            why="a clean-up of old versions or another program deleted it",
            fix="Read a newer version."
            + (" Is it the newest, `laketier index list` names the index: replace or drop it." if of_index else ""),
        )
    # Lance has the same class of error for damage and for a process that has too many files open.
    if _STORE_ERROR.search(text) or refused_by_the_system(error):
        return StorageError(
            "Lance could not read the dataset",
            where=location,
            why=text,
            fix="Check permissions, the network and lake.lance.storage.*, and run it again.",
        )
    if isinstance(error, ValueError):
        return CorruptTable("the Lance dataset can't be read", where=location, why=text)
    return TableError("Lance could not read the dataset", where=location, why=text)


def is_for_newer(error: BaseException) -> bool:
    """Whether the dataset uses what this version of Lance does not know. Lance tells before it writes anything."""
    return _NEWER.search(str(error)) is not None


def reason(error: BaseException) -> str:
    """Lance's message without the lines of its source code."""
    return _SOURCE_LINE.sub("", str(error)).strip().rstrip(".,")
