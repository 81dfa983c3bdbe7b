"""The harness of this format for the conformance suite: a foreign restore, expiry, compaction, delete and update. Not
used otherwise.

No tool but laketier writes such tables. So what others do is what another process of laketier does: it folds files
without waiting for more of them, ends snapshots as `laketier maintain expire` does, and deletes or changes rows by an
upsert whose merge leaves them out, or changes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from laketier.kit.manifests import FileEntry, files_at
from laketier.kit.manifests.committer import next_manifest
from laketier.spi import (
    CommitterInitContext,
    LakeStorage,
    Passthrough,
    ScanRequest,
    TableInfo,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier_localfile.folding import FoldingTable
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.place import place_of
from laketier_localfile.table import LocalFileTable

if TYPE_CHECKING:
    from laketier_conformance.stores import ObjectStore


class Harness:
    """The entry point ``laketier.conformance``. ``storage``: how the store of tables in S3 is reached."""

    storage = Passthrough()
    dates_by = timedelta(milliseconds=1)
    option_sets = (
        *({"file-format": kind, "open-files": "true"} for kind in ("json", "csv", "arrow")),
        {"fold-files": "2"},
    )

    def object_store(self, store: ObjectStore) -> dict[str, str]:
        """The library gives up early: its patience is not under test."""
        return {f"storage.{name}": value for name, value in {**store.usual_options, "timeout": "1s"}.items()}

    def roll_back(self, storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """Delete the newest manifests, as a careless clean-up or a partial restore does."""
        manifests = LocalFileTable(place_of(table.location, self.storage)).manifests()
        head, _ = manifests.head()
        for number in range(snapshot_id + 1, head.number + 1):
            manifests.store.delete(manifests.name(number))

    def expire(self, storage: LakeStorage, table: TableInfo) -> None:
        """End all snapshots but the newest. Only a snapshot with files that no later one needs ends: so files are
        folded first."""
        self.compact(storage, table)
        time.sleep(0.02 + self.dates_by.total_seconds())  # what was folded just now is not older than now
        storage.maintenance(table).expire(retention=0, keep=1, delete=True)

    def compact(self, storage: LakeStorage, table: TableInfo) -> None:
        """Write the files of each partition and bucket as one, of whichever level they are."""
        own = self._opened(table)
        state = own.open()
        live = sorted(files_at(state.manifests, state.head.number), key=_group)
        entries: list[FileEntry] = []
        gone: list[str] = []
        for _, each in groupby(live, key=_group):
            files = list(each)
            if len(files) > 1:
                level = max(file.level for file in files) + 1
                entries += [replace(own.entry(state, file), level=level) for file in own.rewrite(state, files)]
                gone += [file.path for file in files]
        if not gone:
            return
        manifest = next_manifest(
            state.head,
            commit_id=new_attempt_id(),
            kind="append",
            added=tuple(own.named(state.head.number + 1, entries)),
            removed=tuple(gone),
            folded=tuple(gone),
            folding=None,
        )
        own.finish(state.manifests, state.manifests.append(manifest))

    def delete_rows(self, storage: LakeStorage, table: TableInfo, ids: Sequence[int]) -> None:
        """Replace the files that have such rows by files without them."""
        values = pa.array(ids, pa.int64())
        self._rewrite(storage, table, lambda rows: rows.filter(pc.invert(pc.is_in(rows["id"], values))))

    def update_rows(self, storage: LakeStorage, table: TableInfo, ids: Sequence[int], column: str, text: str) -> None:
        """Replace the files that have such rows by files in which they are changed."""
        values = pa.array(ids, pa.int64())

        def changed(rows: pa.RecordBatch) -> pa.RecordBatch:
            at = rows.schema.get_field_index(column)
            new = pc.if_else(pc.is_in(rows["id"], values), text, rows[column]).cast(rows.schema.field(at).type)
            return rows.set_column(at, rows.schema.field(at), new)

        self._rewrite(storage, table, changed)

    def _rewrite(
        self, storage: LakeStorage, table: TableInfo, change: Callable[[pa.RecordBatch], pa.RecordBatch]
    ) -> None:
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan = source.plan(ScanRequest())
        replaced: list[str] = []
        writer = factory.create_writer(WriterInitContext(new_attempt_id(), mode=WriteMode.UPSERT))
        for split in plan.splits:
            rows = list(source.read(split, plan.schema))
            left = [change(each) for each in rows]
            if left != rows:
                replaced += split.files
                for each in left:
                    writer.write(each)
        result = replace(writer.complete(), replaced=tuple(replaced))
        committer = factory.create_committer(CommitterInitContext(new_attempt_id(), mode=WriteMode.UPSERT))
        committer.publish(committer.open(), [result], None)

    def _opened(self, table: TableInfo) -> FoldingTable:
        return FoldingTable(place_of(table.location, self.storage), LocalFileOptions(storage=self.storage))


def _group(entry: FileEntry) -> str:
    return repr((entry.partition, entry.bucket))
