"""Looks at the fragments that results name, on the driver, before they are committed: Lance takes their word."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from laketier.kit import confined
from laketier.kit.staged import check_staged, refuse_foreign, refuse_lost
from laketier.spi import CommitError, OutsideTable, StagedFile, StagedFileLost, TableError, WriteResult
from laketier_lance.dataset import lance_errors, reason
from laketier_lance.lance_schema import column_field_ids, with_field_ids
from laketier_lance.location import local_folder
from laketier_lance.names import DATA, attempt_of
from laketier_lance.options import LanceOptions
from laketier_lance.sessions import file_session
from laketier_lance.writer import FRAGMENT, described

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.file import LanceFileSession
    from lance.fragment import FragmentMetadata

_STAGED = re.compile(rf"{DATA}/([0-9A-Za-z_-]+\.lance)")
_MARK = b"LANC"
_REQUESTS = 16


def _not_whole(location: str, file: StagedFile, why: str) -> StagedFileLost:
    return StagedFileLost(
        f"a staged file does not end after the {file.bytes} bytes that its writer wrote; nothing was published",
        where=f"{location}: {file.path}",
        why=why,
        fix="Run the round again: it stages its files again.",
    )


def staged_fragments(dataset: LanceDataset, results: Sequence[WriteResult], location: str) -> list[FragmentMetadata]:
    """The fragments that ``results`` name, each as its writer made it for the table as it is. Raises `TableError`
    where the table has other columns by now, and `OutsideTable` where a fragment is not that of its staged file."""
    from lance.fragment import FragmentMetadata

    staged = [file for result in results for file in result.files]
    fragments = [FragmentMetadata.from_json(file.payload[FRAGMENT]) for file in staged]
    # Lance commits fragments with any field ids, and reads nulls where they don't match.
    version = dataset.data_storage_version
    expected = list(column_field_ids(with_field_ids(dataset.lance_schema), version))
    for file in (file for fragment in fragments for file in fragment.files):
        if file.fields != expected or f"{file.file_major_version}.{file.file_minor_version}" != version:
            raise TableError(
                f"data file {file.path} has fields {file.fields} in format {file.file_major_version}."
                f"{file.file_minor_version}, and the table has {expected} in format {version}",
                where=location,
                fix="Run the round again: it will be staged for the table as it is now.",
            )
    for each in staged:
        _refuse_forged(each, expected, version, location)
    return fragments


def _refuse_forged(file: StagedFile, columns: Sequence[int], version: str, location: str) -> None:
    """A fragment may name any file, also of another dataset."""
    match = _STAGED.fullmatch(confined(file.path, where=location))
    if match is None or json.loads(file.payload[FRAGMENT]) != described(
        match[1], file.rows, file.bytes, columns, version
    ):
        raise OutsideTable(
            f"the fragment that was staged as {file.path!r} is not the one of that file; nothing was published",
            where=location,
            why="something other than the writer made the result",
            fix="Run the round again: it stages its files again.",
        )


def check_files(results: Sequence[WriteResult], location: str, options: LanceOptions) -> None:
    """Raises `StagedFileLost` where a file is gone or cut off, and `OutsideTable` where no writer of this format staged
    it. Lance commits fragments whose files are missing, and every later read of the table fails."""
    local = local_folder(location)
    if local is not None:
        check_staged(local, results, attempt_of=attempt_of, where=location)
        return
    refuse_foreign(results, attempt_of, where=location)
    session = file_session(location, options.storage_options())
    files = [file for result in results for file in result.files]
    if files:
        with ThreadPoolExecutor(_REQUESTS) as pool:
            list(pool.map(lambda file: _check_end(session, file, location), files))


def _check_end(session: LanceFileSession, file: StagedFile, location: str) -> None:
    """One request: Lance's API tells no sizes, but a file ends with Lance's mark where its writer ended it."""
    try:
        end = session.read_range(file.path, file.bytes - len(_MARK), len(_MARK))
    except lance_errors() as error:
        text = reason(error)
        if "not found" in text.lower():
            refuse_lost(file.path, None, file.bytes, where=location)
        if "range" in text.lower():
            raise _not_whole(location, file, text) from error
        raise CommitError("a staged file could not be read", where=location, why=text) from error
    if end != _MARK:
        raise _not_whole(location, file, f"its last bytes are {end!r}")
