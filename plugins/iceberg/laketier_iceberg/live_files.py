"""Whether staged files were published before. Driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from laketier.kit.staged import refuse_published
from laketier.spi import WriteResult
from laketier_iceberg.manifests import naming_damaged_manifests
from laketier_iceberg.references import name_of
from laketier_iceberg.writer import AFTER

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


def refuse_listed(table: Table, results: Sequence[WriteResult], *, where: str) -> None:
    """Iceberg lists a file any number of times, and its rows are there as often; what a compaction or a deletion took
    away comes back. Looks at the manifests that came since the writers' table was loaded: while nobody else commits
    there are none but a stream's own of the last minute. Raises `OutsideTable` for a file that they name, and
    `CorruptTable` for a manifest that can't be read."""
    staged = {name_of(file.path): _number(file.payload.get(AFTER)) for result in results for file in result.files}
    after = min(staged.values(), default=0)
    if staged and table.metadata.next_sequence_number() - 1 > after:
        refuse_published(staged, set(_names(table, after, where)), where=where)


def _names(table: Table, after: int, where: str) -> Iterator[str]:
    """The names of files in manifests behind a sequence number: those that were added, and those that are said to be
    gone. Manifests that were merged have files of before it, too."""
    read: set[str] = set()
    later = [each for each in table.metadata.snapshots if (each.sequence_number or 0) > after]
    for snapshot in later:
        # Each but the current one may expire while this goes on.
        gone = () if snapshot.snapshot_id == table.metadata.current_snapshot_id else (FileNotFoundError,)
        with naming_damaged_manifests(table, [snapshot], where), suppress(*gone):
            yield from _names_of(table, snapshot, after, read)
    for snapshot in _expired(table, later, after):
        # Who expires a snapshot deletes the files that only it needs first, and its manifests after them.
        with suppress(FileNotFoundError):
            yield from _names_of(table, snapshot, after, read)


def _names_of(table: Table, snapshot: Snapshot, after: int, read: set[str]) -> Iterator[str]:
    """Those in manifests of ``snapshot``, without the manifests that were ``read``, to which its own are added."""
    from pyiceberg.manifest import ManifestContent

    for manifest in snapshot.manifests(table.io):
        is_new = manifest.content == ManifestContent.DATA and manifest.sequence_number > after
        if is_new and manifest.manifest_path not in read:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                yield name_of(entry.data_file.file_path)
            read.add(manifest.manifest_path)


def _expired(table: Table, retained: Sequence[Snapshot], after: int) -> Iterator[Snapshot]:
    """The snapshots behind a sequence number that expired, as far as older metadata that the table names has them.
    pyiceberg leaves their files where they are, so such a file may have been published and taken away."""
    missing = set(range(after + 1, table.metadata.next_sequence_number()))
    missing -= {each.sequence_number for each in retained if each.sequence_number is not None}
    for entry in reversed(table.metadata.metadata_log):
        if not missing:
            return
        older = _older(table, entry.metadata_file)
        if older is None:
            continue
        for snapshot in older.snapshots:
            if snapshot.sequence_number in missing:
                missing.discard(snapshot.sequence_number)
                yield snapshot
        if older.next_sequence_number() - 1 <= after:
            return


def _older(table: Table, location: str) -> TableMetadata | None:
    """None where somebody deleted it."""
    from pyiceberg.serializers import FromInputFile

    try:
        return FromInputFile.table_metadata(table.io.new_input(location))
    except FileNotFoundError:
        return None


def _number(text: str | None) -> int:
    """Of a result without one, as older versions make it, or with another text, all manifests are looked at."""
    return int(text) if text is not None and text.isdecimal() else 0
