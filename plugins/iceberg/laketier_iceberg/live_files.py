"""Whether staged files are in the table already. Driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from laketier.kit.staged import refuse_live
from laketier.spi import WriteResult
from laketier_iceberg.manifests import naming_damaged_manifests
from laketier_iceberg.references import name_of
from laketier_iceberg.writer import AFTER

if TYPE_CHECKING:
    from pyiceberg.table import Table


def refuse_listed(table: Table, results: Sequence[WriteResult], *, where: str) -> None:
    """Iceberg lists a file any number of times, and its rows are there as often. Looks at the manifests that came since
    the writers' table was loaded: while nobody else commits there are none. Raises `OutsideTable` for a file that is in
    the table, and `CorruptTable` for a manifest that can't be read."""
    staged = {name_of(file.path): _number(file.payload.get(AFTER)) for result in results for file in result.files}
    after = min(staged.values(), default=0)
    if staged and table.metadata.next_sequence_number() - 1 > after:
        refuse_live(staged, set(_names(table, after, where)), where=where)


def _names(table: Table, after: int, where: str) -> Iterator[str]:
    """The names of live files in manifests behind a sequence number. Those that were merged have files of before it,
    too."""
    from pyiceberg.manifest import ManifestContent

    snapshot = table.metadata.current_snapshot()
    if snapshot is None:
        return
    with naming_damaged_manifests(table, [snapshot], where):
        for manifest in snapshot.manifests(table.io):
            if manifest.content == ManifestContent.DATA and manifest.sequence_number > after:
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                    yield name_of(entry.data_file.file_path)


def _number(text: str | None) -> int:
    """Of a result without one, as older versions make it, or with another text, all manifests are looked at."""
    return int(text) if text is not None and text.isdecimal() else 0
