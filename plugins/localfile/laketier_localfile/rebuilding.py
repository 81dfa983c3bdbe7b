"""The manifests of a table, made again after they were deleted or damaged.

Three things may be left. The whole chain, where only ``table.json`` is gone: then that file is written again, and
nothing is lost. Some manifests: the newest of them tells the columns, partitions and key. Nothing but data files: then
these tell what they can. In the last two cases nobody knows which epochs the files hold, and the table says so to each
pipeline (`laketier.kit.manifests.table.ManifestState.watermark`).

What is left of the chain is moved aside before the files are looked at. So a writer that still has the old table can't
publish into it, unseen, while a new one is made.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from laketier.kit.access import access
from laketier.kit.failpoints import failpoint
from laketier.kit.manifests import FileEntry, Manifest, ManifestLog, files_at
from laketier.kit.manifests.manifest import REBUILT
from laketier.kit.manifests.rollup import blocks_back_from
from laketier.kit.manifests.table_file import ROLLUPS, TableFile
from laketier.spi import (
    COLLECTOR,
    AdoptedTable,
    IncompatibleTable,
    LaketierError,
    StorageError,
    TableDescriptor,
    TableNotFound,
    TablePath,
)
from laketier.tables.inference import SchemaSet, refuse_misplaced_types
from laketier_localfile.catalog import LocalFileCatalog
from laketier_localfile.entries import adopted_table, entry_of
from laketier_localfile.file_formats.interface import FileFormat
from laketier_localfile.file_formats.known import file_format, of_name, of_table
from laketier_localfile.layout import IN_PROGRESS, LAYOUT, LOST, attempt_of, bucket_of
from laketier_localfile.looking import Progress, look_at, measure
from laketier_localfile.lying import LyingFiles, LyingPlace
from laketier_localfile.lying_place import lying_place_of
from laketier_localfile.names import PARQUET
from laketier_localfile.partitioning import Partitioning
from laketier_localfile.rebuilt_columns import described, value_of
from laketier_localfile.table import LocalFileTable

log = logging.getLogger(__name__)

_UUID = re.compile(r"[0-9a-f]{32}\Z")
_MANIFEST = re.compile(r"\d{20}\.json\Z")
_NO_ROLLUPS = 1 << 62
_TABLE = LAYOUT.table_file.rpartition("/")[2]
_WATERMARKS_LOST = (
    "The watermarks of all pipelines are lost: which epochs the files hold is not known. Each pipeline is refused "
    "until `laketier pipeline adopt` says its last epoch, or `laketier pipeline forget` that it never wrote here."
)
_NO_HISTORY = "The history is lost: snapshots of before can't be read, nor files that were superseded."


def rebuild(
    catalog: LocalFileCatalog,
    path: TablePath,
    primary_key: tuple[str, ...],
    types: Mapping[str, pa.DataType],
    *,
    leave_staged: bool,
    on_progress: Progress,
) -> AdoptedTable:
    """See `LakeAdoption.rebuild`."""
    place = lying_place_of(catalog.store(path))
    if not place.is_there():
        raise TableNotFound("there is no such folder", where=place.where)
    with access("looking at the table", where=place.where):
        _refuse_whole(place)
        place.refuse_unfit()
        chain = _whole_chain(place)
        if chain is not None:
            return _restored(catalog, path, chain)
        _refuse_staged(place, leave_staged=leave_staged)
        lying = lying_in_place(place)
        if not lying.files and not _remains(place):
            raise TableNotFound(
                "there is no table, and nothing left of one",
                where=place.where,
                fix="Move the folder away, with what is staged in it. A new table can then be made under this name."
                if leave_staged
                else None,
            )
        _format_of(catalog, place, lying, _newest(place, quietly=True))  # raises while nothing is moved yet
        _move_aside(place)
        failpoint("rebuild.after_move_aside")
        # Once more: what a writer published just before is in its place by now, or staged.
        _refuse_staged(place, leave_staged=leave_staged)
        found = what_is_left(catalog, place, primary_key, types, on_progress)

    def last_look() -> None:
        _refuse_staged(place, leave_staged=leave_staged)
        found.lying.refuse_changed(lying_in_place(place), place.where)

    info = catalog.create_of(
        path, found.descriptor, found.entries, origin=REBUILT, last_look=last_look, after=found.newest_at
    )
    told = (*found.told, _WATERMARKS_LOST, _NO_HISTORY)
    return adopted_table(info, found.entries, found.lying.left_out, told=told)


@dataclass(frozen=True)
class WhatIsLeft:
    """A table whose manifests are lost, as its files and the newest manifest tell it. ``newest_at``: the time of that
    manifest, 0 without one. ``told``: what users have to know of it."""

    lying: LyingFiles
    descriptor: TableDescriptor
    entries: list[FileEntry]
    newest_at: int
    told: tuple[str, ...]


def what_is_left(
    catalog: LocalFileCatalog,
    place: LyingPlace,
    primary_key: tuple[str, ...] = (),
    types: Mapping[str, pa.DataType] | None = None,
    on_progress: Progress = None,
    *,
    durable: bool = True,
) -> WhatIsLeft:
    """Look at all files that are in their places. Writes nothing. ``durable``: the files are synced."""
    lying = lying_in_place(place)
    newest = _newest(place)
    chosen = _format_of(catalog, place, lying, newest)
    schemas = SchemaSet(chosen.spelling)
    looked_at = look_at(place, lying, chosen, schemas, types or {}, on_progress, durable=durable)
    descriptor, told = described(place, looked_at, chosen, schemas, newest, primary_key, types or {})
    refuse_misplaced_types(types, descriptor.schema, place.where)
    files = measure(place, lying, looked_at, descriptor.schema, on_progress, durable=durable)
    partitioning = Partitioning.of(descriptor)
    entries = [
        entry_of(
            file,
            descriptor,
            tuple((field.name, value_of(place, file, field, partitioning)) for field in partitioning.fields),
            None if descriptor.buckets is None else bucket_of(file.path),
        )
        for file in files
    ]
    return WhatIsLeft(lying, descriptor, entries, 0 if newest is None else newest.at, (*_known(newest), *told))


def _refuse_whole(place: LyingPlace) -> None:
    try:
        manifests = LocalFileTable(place.store).manifests()
        head, _ = manifests.head()
        for _ in blocks_back_from(replace(manifests, manifests_per_rollup=_NO_ROLLUPS), head.number):
            pass
        manifests.metadata(head)
    except LaketierError:
        return
    raise IncompatibleTable("the table's manifests are whole", where=place.where, fix="There is nothing to rebuild.")


def _whole_chain(place: LyingPlace) -> ManifestLog | None:
    """The one chain that was a table, whole, where only ``table.json`` does not name it any more."""
    chains = [_log(place, uuid) for uuid in _uuids(place) if _was_table(place, uuid)]
    if len(chains) != 1:
        return None
    try:
        head, _ = chains[0].head()
        for _ in blocks_back_from(chains[0], head.number):
            pass
        chains[0].metadata(head)
    except LaketierError:
        return None
    return chains[0]


def _restored(catalog: LocalFileCatalog, path: TablePath, chain: ManifestLog) -> AdoptedTable:
    place = lying_place_of(chain.store)
    place.move_aside([_TABLE])
    table = TableFile(LAYOUT.format, chain.table_uuid, _rolled_up(chain) or catalog.manifests_per_rollup)
    try:
        place.store.create(LAYOUT.table_file, table.encode())
    except FileExistsError as error:
        raise IncompatibleTable("another process rebuilt the table meanwhile", where=place.where) from error
    info = catalog.load_table(path)
    entries = files_at(LocalFileTable(place.store).manifests(), info.snapshot_id or 0)
    told = "Only table.json was lost, and is written again: history and watermarks are as they were."
    return adopted_table(info, entries, {}, told=(told,))


def _rolled_up(chain: ManifestLog) -> int | None:
    """How many manifests the smallest rollups sum up, which ``table.json`` said."""
    names = [name.removesuffix(".json").split("-") for name in chain.store.names(f"{chain.home}/{ROLLUPS}")]
    spans = [name for name in names if len(name) == 2 and all(part.isdecimal() for part in name)]
    sizes = [int(last) - int(first) + 1 for first, last in spans]
    return min((size for size in sizes if size >= 2), default=None)


def _refuse_staged(place: LyingPlace, *, leave_staged: bool) -> None:
    staged = sorted(file.path for file in place.store.files(IN_PROGRESS))
    if staged and not leave_staged:
        raise IncompatibleTable(
            f"{len(staged):,} files are staged, and some may be published",
            where=place.where,
            why=f"without manifests nobody knows whether {staged[0]} is of a commit that was acknowledged, or how much "
            "of it, where files stay open across epochs",
            fix="Stop all writers. If these files are left by failed rounds, or their rounds are run again, go on with "
            "--leave-staged: they stay where they are, and are not in the table.",
        )


def lying_in_place(place: LyingPlace) -> LyingFiles:
    """Without what an overwrite or an upsert was about to take away: it has its place among the superseded already."""
    lying = place.files()
    for path in place.superseded(lying):
        del lying.files[path]
        lying.left_out[path] = "it was superseded"
    return lying


def _format_of(catalog: LocalFileCatalog, place: LyingPlace, lying: LyingFiles, newest: Manifest | None) -> FileFormat:
    """The table's file format, by the newest manifest or else by its files; those of others are left out. Raises
    `IncompatibleData` where it can't be told."""
    if newest is not None and newest.metadata is not None:
        known = of_table(newest.metadata.properties, where=place.where)
        lying.only_of(known, place.where, may_be_empty=True)
        return known
    if not lying.files:
        return file_format(PARQUET)
    asked = catalog.options.file_format
    own = {each.name for path in lying.files if attempt_of(path) is not None and (each := of_name(path)) is not None}
    name = asked.value if asked is not None else next(iter(own)) if len(own) == 1 else None
    return lying.only_of(None if name is None else file_format(name), place.where)


def _remains(place: LyingPlace) -> bool:
    return any(_was_table(place, uuid) for uuid in _uuids(place)) or any(name.endswith(LOST) for name in _names(place))


def _move_aside(place: LyingPlace) -> None:
    place.move_aside([*_uuids(place), _TABLE])


def _newest(place: LyingPlace, *, quietly: bool = False) -> Manifest | None:
    """The newest manifest of any chain that can still be read, with the table's description."""
    newest: list[Manifest] = []
    store = place.store
    for name in _names(place):
        if not ((name.endswith(LOST) or _UUID.match(name)) and _was_table(place, name)):
            continue
        found = described = None
        files = [file for file in place.names(f"{LAYOUT.folder}/{name}") if _MANIFEST.match(file)]
        _refuse_lag(place, f"{LAYOUT.folder}/{name}", files)
        for file in sorted(files):
            path = f"{LAYOUT.folder}/{name}/{file}"
            try:
                manifest = Manifest.decode(store.read(path), store.where(path), LAYOUT)
            except (LaketierError, OSError) as error:
                if not quietly:
                    log.warning("a manifest can't be read: %s", error)
                continue
            described = manifest.metadata or described
            if described is not None:
                found = replace(manifest, metadata=described, added=())
        newest += [found] if found is not None else []
    return max(newest, key=lambda each: each.at, default=None)


def _refuse_lag(place: LyingPlace, folder: str, listed: list[str]) -> None:
    """A listing without the newest manifest may lack its data files, too, and their rows would be lost without a
    word."""
    newest = max((int(file.removesuffix(".json")) for file in listed), default=-1)
    unlisted = f"{folder}/{newest + 1:020}.json"
    if place.store.exists(unlisted):
        raise StorageError(
            "a listing does not show a manifest that is there",
            where=place.store.where(unlisted),
            why="the store lists what was written only later, so files of the table may be missing in lists, too",
            fix="Wait until listings show all, and run it again: a table is rebuilt from what is listed.",
        )


def _known(newest: Manifest | None) -> tuple[str, ...]:
    """What the last manifest that can be read said of pipelines: at least so far they came."""
    if newest is None:
        return ()
    found = (newest.watermark(name) for name in sorted(newest.watermarks) if name != COLLECTOR)
    tokens = [mark.token for mark in found if mark is not None]
    return tuple(
        f"Pipeline {token.pipeline} was at epoch {token.epoch} of run {token.run}, or later, by the newest manifest "
        "that can be read."
        for token in tokens
    )


def _uuids(place: LyingPlace) -> list[str]:
    return sorted(name for name in _names(place) if _UUID.match(name))


def _names(place: LyingPlace) -> list[str]:
    return place.names(LAYOUT.folder)


def _log(place: LyingPlace, uuid: str) -> ManifestLog:
    return ManifestLog(place.store, LAYOUT, uuid, _NO_ROLLUPS)


def _was_table(place: LyingPlace, name: str) -> bool:
    """A creation that was killed, or lost a race, left one manifest and no head."""
    folder = f"{LAYOUT.folder}/{name}"
    return any(place.store.exists(f"{folder}/{file}") for file in ("head.json", f"{1:020}.json"))
