"""The format of `richer` without a feed, and tools of others for it, for mistakes in long histories: what they do is a
commit each, which replaces files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable
from richer import RICHER, RicherTable, richer
from updating import UpdatingHarness

from laketier import spi
from laketier.kit.manifests import FileEntry, files_at
from laketier.kit.manifests.committer import next_manifest

LASTING = {**RICHER, spi.Feature.CHANGE_FEED: spi.unsupported("others rewrite whole files")}


class LastingHarness(UpdatingHarness):
    def delete_rows(self, storage: spi.LakeStorage, table: spi.TableInfo, ids: Sequence[int]) -> None:
        gone = pa.array(ids, pa.int64())
        self._rewrite(storage, table, lambda rows: rows.filter(pc.invert(pc.is_in(rows["id"], gone))))

    def compact(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        """All rows are written as one file. Which rows there are is as before, and a log tells none of them again."""
        own = RicherTable(Path(table.location))
        state, source = own.open(), storage.source(table)
        live = files_at(state.manifests, state.head.number)
        plan = source.plan(spi.ScanRequest())
        writer = storage.tiering_factory(table).create_writer(spi.WriterInitContext(spi.new_attempt_id()))
        names = self.columns(own, live)
        for split in plan.splits:
            for rows in source.read(split, plan.schema):
                writer.write(rows.select([name for name in rows.schema.names if name in names]) if names else rows)
        entries = [replace(own.entry(state, file), level=1) for file in writer.complete().files]
        gone = tuple(entry.path for entry in live)
        manifest = next_manifest(
            state.head,
            commit_id=spi.new_attempt_id(),
            kind="append",
            added=tuple(own.named(state.head.number + 1, entries)),
            removed=gone,
            folded=gone,
            folding=None,
        )
        own.finish(state.manifests, state.manifests.append(manifest))

    def columns(self, own: FeatherTable, files: Sequence[FileEntry]) -> Sequence[str]:
        """Those that a compaction keeps; all for none."""
        return ()

    def _rewrite(self, storage: spi.LakeStorage, table: spi.TableInfo, change: Callable[[pa.Table], pa.Table]) -> None:
        source, factory = storage.source(table), storage.tiering_factory(table)
        plan = source.plan(spi.ScanRequest())
        replaced: list[str] = []
        writer = factory.create_writer(spi.WriterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT))
        for split in plan.splits:
            rows = pa.Table.from_batches(source.read(split, plan.schema), plan.schema)
            left = change(rows)
            if left.num_rows != rows.num_rows:
                replaced += split.files
                for batch in left.to_batches():
                    writer.write(batch)
        result = replace(writer.complete(), replaced=tuple(replaced))
        committer = factory.create_committer(spi.CommitterInitContext(spi.new_attempt_id(), mode=spi.WriteMode.UPSERT))
        committer.publish(committer.open(), [result], None)


def lasting(identifier: str, **parts: Any) -> CrookedPlugin:
    """A plugin, one of its parts replaced."""
    return richer(identifier, **{"features": LASTING, **parts})
