"""Drops of datasets in an object store, which has no rename: one object goes after the other.

A sign is put first, then the manifests go, the newest last, then all the rest, and the sign. So a reader finds the
whole dataset or none. Who finds the sign without manifests knows that a drop was cut off, and that the rows which are
left are no lost dataset's: a drop that is asked for again, or the next create, ends it.

Whoever commits looks afterwards whether a drop came before: by a file that it staged and that a drop would have taken
away, or by an object that is put for that. An older file of rows would not do: others may compact it and clean it up
meanwhile, and what is then taken for a drop is all of the table.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

from laketier.spi import Conflict, SnapshotNotFound, TableError, TableNotFound
from laketier_lance.dataset import lance_errors, open_dataset, read_transaction, reading, reason
from laketier_lance.durable import TRANSACTIONS, VERSIONS, manifest_names
from laketier_lance.latest import manifest_number
from laketier_lance.leftovers import has_sign
from laketier_lance.location import SIGN, WITNESS, local_path
from laketier_lance.names import DATA
from laketier_lance.private import data_path
from laketier_lance.sessions import file_session
from laketier_lance.table import TABLE_UUID, metadata_of

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.file import LanceFileSession

log = logging.getLogger(__name__)

_REQUESTS = 16


def drop_in_store(location: str, storage: dict[str, str]) -> None:
    """Delete all of a dataset. Driver. Raises `TableError`; asked again, it goes on."""
    session = file_session(location, storage)
    try:
        with tempfile.NamedTemporaryFile() as empty:
            session.upload_file(empty.name, SIGN)
        while manifests := _manifests(session):  # a round may have put one more meanwhile
            *older, newest = manifests
            _delete(session, older)
            _delete(session, [newest])
        _delete(session, (name for name in _listed(session) if name != SIGN))
        _delete(session, [SIGN])
    except lance_errors() as error:
        raise TableError(
            "the table could not be removed",
            where=location,
            why=reason(error),
            fix="Drop it once more: that goes on where this one ended.",
        ) from error


def end_drop(location: str, storage: dict[str, str]) -> bool:
    """Whether a drop was cut off here that left no manifest. It is ended then."""
    with reading(location):
        if not has_sign(location, storage) or _manifests(file_session(location, storage)):
            return False
    drop_in_store(location, storage)
    return True


@contextmanager
def witness(
    location: str, storage: dict[str, str], dataset: LanceDataset, staged: Iterable[str] = ()
) -> Iterator[Sequence[str]]:
    """What a drop takes away that comes before a commit onto ``dataset``, and nobody else does: one of the files that
    were ``staged`` for it; without any, in an object store, an object that is there for as long as the block. Raises
    `Conflict` where the table is gone or another one by now, and `LaketierError` where that can't be found out."""
    some = list(islice(staged, 1))
    if some or local_path(location) is not None:
        yield some
        return
    session, name = file_session(location, storage), f"{WITNESS}{uuid4().hex}"
    with reading(location), tempfile.NamedTemporaryFile() as empty:
        session.upload_file(empty.name, name)
    try:
        # It tells of drops from here on.
        if _table_at(location, storage) != metadata_of(dataset).get(TABLE_UUID):
            raise Conflict("the table was dropped and made anew meanwhile", where=location)
        yield [name]
    finally:
        try:
            session.delete_file(name)
        except lance_errors() as error:
            log.debug("%s is left in %s: %s", name, location, error)


def _table_at(location: str, storage: dict[str, str]) -> bytes | None:
    """The identity that laketier gave the table there. Raises `Conflict` where there is none."""
    try:
        return metadata_of(open_dataset(location, storage)).get(TABLE_UUID)
    except TableNotFound as error:
        raise Conflict("the table was dropped meanwhile", where=location) from error


def was_dropped(
    location: str, storage: dict[str, str], dataset: LanceDataset, witnesses: Sequence[str], version: int
) -> bool:
    """Whether the table went away under a commit onto ``version`` of ``dataset``, in an object store: a key can be put
    where there is no table. ``witnesses``: as `witness` gives them. Raises `LaketierError` where that can't be found
    out."""
    if local_path(location) is not None:
        return False
    try:
        before = open_dataset(location, storage, version)
        return metadata_of(before).get(TABLE_UUID) != metadata_of(dataset).get(TABLE_UUID)
    except (SnapshotNotFound, TableNotFound):
        # Others may have cleaned that version up. A drop takes the witness, too.
        session = file_session(location, storage)
        with reading(location):
            return session.contains(SIGN) or not all(session.contains(name) for name in witnesses)


def take_back(location: str, storage: dict[str, str], version: int, transaction: str) -> None:
    """Delete what a commit of ``transaction`` put in the place of a dropped table, and nothing of the table that others
    made there since. Raises `LaketierError`."""
    session = file_session(location, storage)
    try:
        committed = read_transaction(open_dataset(location, storage, version), version)
    except (SnapshotNotFound, TableNotFound):
        committed = None
    names = manifest_names(version) if committed is not None and committed.uuid == transaction else ()
    try:
        _delete(session, [f"{VERSIONS}/{name}" for name in names])
        _delete(session, [f"{TRANSACTIONS}/{version - 1}-{transaction}.txn"])
    except lance_errors() as error:
        raise _not_taken_back(location, error) from error


def take_back_alterations(location: str, storage: dict[str, str], dataset: LanceDataset, after: int) -> None:
    """Delete the versions behind ``after`` that alterations of ``dataset`` put in the place of a dropped table, and the
    files of their columns. Raises `LaketierError`."""
    session = file_session(location, storage)
    for version in range(after + 1, int(dataset.version) + 1):
        try:
            committed = open_dataset(location, storage, version)
        except (SnapshotNotFound, TableNotFound):
            continue
        if metadata_of(committed).get(TABLE_UUID) != metadata_of(dataset).get(TABLE_UUID):
            continue
        made = read_transaction(committed, version)
        fragments = (fragment.metadata for fragment in committed.get_fragments())
        files = [f"{DATA}/{data_path(file)}" for fragment in fragments for file in fragment.files]
        if made is not None:
            take_back(location, storage, version, made.uuid)
        try:
            _delete(session, files)
        except lance_errors() as error:
            raise _not_taken_back(location, error) from error


def _not_taken_back(location: str, error: BaseException) -> TableError:
    return TableError(
        "a version that was committed onto a dropped table could not be taken back",
        where=location,
        why=reason(error),
        fix="Drop the table once more.",
    )


def _listed(session: LanceFileSession, folder: str | None = None) -> list[str]:
    return [str(name) for name in session.list(folder)]


def _manifests(session: LanceFileSession) -> list[str]:
    """Those of the main branch, the oldest first, and what is no manifest before them."""
    return sorted(_listed(session, VERSIONS), key=lambda name: manifest_number(name.rpartition("/")[2]) or 0)


def _delete(session: LanceFileSession, names: Iterable[str]) -> None:
    def delete(name: str) -> None:
        try:
            session.delete_file(name)
        except lance_errors() as error:
            if "not found" not in reason(error).lower():
                raise

    with ThreadPoolExecutor(_REQUESTS) as pool:
        list(pool.map(delete, names))
