"""The creation of a table: its first manifest, then the file that makes it one."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from laketier.kit.failpoints import failpoint
from laketier.kit.local_store import store_of
from laketier.kit.manifests.file_entry import FileEntry
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import ADOPTED, REBUILT, Manifest
from laketier.kit.manifests.table import ManifestTable
from laketier.kit.manifests.table_file import ROLLUPS, TableFile
from laketier.kit.table_store import TableStore
from laketier.spi.clocks import host_time
from laketier.spi.table import TableDescriptor
from laketier.spi.writer import new_attempt_id

_KINDS = {"": "create", ADOPTED: "adopt", REBUILT: "rebuild"}


def create_manifests(
    table_type: type[ManifestTable],
    place: Path | TableStore,
    descriptor: TableDescriptor,
    manifests_per_rollup: int,
    *,
    added: tuple[FileEntry, ...] = (),
    origin: str = "",
    last_look: Callable[[], None] = lambda: None,
    after: int = 0,
) -> bool:
    """Create the table's own files. False when another process created the table first. ``added`` and ``origin``: the
    files that lie there, and why they do. ``last_look`` is called before the table is there, and may raise.
    ``after``: the time, in ms, of the last manifest of an older chain, made by a host of another clock maybe."""
    layout = table_type.layout
    table = TableFile(layout.format, uuid.uuid4().hex, manifests_per_rollup)
    store = store_of(place)
    manifests = ManifestLog(place, layout, table.table_uuid, table.manifests_per_rollup)
    store.make()
    # In this order: where the folder of manifests is not there, and that of staged files is, something deleted it.
    store.make_folders(f"{manifests.home}/{ROLLUPS}", *([layout.staging] if layout.staging else []))
    first = Manifest(
        table_uuid=table.table_uuid,
        number=0,
        previous="",
        at=max(host_time(), after + 1),
        commit_id=new_attempt_id(),
        kind=_KINDS[origin],
        metadata_at=0,
        added=added,
        metadata=descriptor,
        origin=origin,
    )
    try:
        store.create(manifests.name(0), first.encode())
        failpoint("create.before_table_file")
        last_look()
        store.create(layout.table_file, table.encode())
    except FileExistsError:
        # Another process created the table first. Ours was never part of anything.
        store.remove_below(manifests.home)
        return False
    except Exception:
        # What may still become a table is left to orphan collection.
        if not store.may_land_late and not store.exists(layout.table_file):
            store.remove_below(manifests.home)
        raise
    manifests.note_head(manifests.read(0))
    return True
