"""Manifests that can't be read. Driver."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from laketier.spi import CorruptTable, LaketierError
from laketier_iceberg.stored import DAMAGE

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_DAMAGE = (
    *DAMAGE,
    FileNotFoundError,
    struct.error,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    # Of lengths that are none.
    ArithmeticError,
    MemoryError,
    SystemError,
)
"""What pyiceberg's Avro raises for a file that is damaged. It names none."""


_DECODED = (zlib.error, EOFError, struct.error)
"""Of these none is a mistake of the code: bytes were no manifest when they were decoded."""


def _damage() -> tuple[type[Exception], ...]:
    from pyiceberg.exceptions import ResolveError  # a whole file, of another kind

    return *_DAMAGE, ResolveError


@contextmanager
def naming_damaged_manifests(table: Table, snapshots: Iterable[Snapshot], where: str) -> Iterator[None]:
    """Raise `CorruptTable` for the first manifest, or list of them, of ``snapshots`` that can't be read, if that is why
    what is inside fails. They are read again only then."""
    try:
        yield
    except LaketierError:
        raise  # some are kinds of ValueError and LookupError
    except _damage() as error:
        found = _damaged(table, snapshots)
        if found is None and isinstance(error, _DECODED):
            raise CorruptTable(
                "a manifest, or a list of them, can't be read",
                where=where,
                why=f"{type(error).__name__}: {error}. Another look found none damaged: bytes may follow one's end, "
                "which pyiceberg reads on from as memory has it, or the storage gave other bytes",
                fix="Read it again; if that comes back, read another snapshot, and restore the table's metadata.",
            ) from error
        if found is None:
            raise
        location, why = found
        raise CorruptTable(
            "a manifest is missing" if isinstance(why, FileNotFoundError) else "a manifest can't be read",
            where=f"{where}: {location}",
            why="something deleted it that does not know the table, or the snapshot expired while it was read"
            if isinstance(why, FileNotFoundError)
            else f"{type(why).__name__}: {why}",
            fix="Restore the file, or read another snapshot.",
        ) from error


def _damaged(table: Table, snapshots: Iterable[Snapshot]) -> tuple[str, Exception] | None:
    for snapshot in snapshots:
        try:
            manifests = snapshot.manifests(table.io)
        except _damage() as error:
            return snapshot.manifest_list, error
        for manifest in manifests:
            try:
                manifest.fetch_manifest_entry(table.io)
            except _damage() as error:
                return manifest.manifest_path, error
    return None
