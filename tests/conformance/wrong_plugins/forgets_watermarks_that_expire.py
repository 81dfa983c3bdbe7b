"""A watermark is kept with the snapshot that carried it, and ends with it."""

from __future__ import annotations

import json

from local import local

from laketier import kit, spi
from laketier.kit.manifests.committer import next_manifest
from laketier.registry import hookimpl
from laketier.spi.writer import new_attempt_id

CAUGHT_BY = "test_expiry.py::test_the_table_and_its_watermarks_stay"
SAYS = "the watermark of 'early' after older snapshots expired"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        done = super().expire(retention=retention, keep=keep, delete=delete)
        state = self.table.open()
        old = [name for name, text in state.head.watermarks.items() if json.loads(text)["snapshot"] < done.earliest]
        if delete and old:
            marks = {name: text for name, text in state.head.watermarks.items() if name not in old}
            mark = next_manifest(state.head, commit_id=new_attempt_id(), kind="expire", watermarks=marks)
            self.table.finish(state.manifests, state.manifests.append(mark))
        return done


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("forgets-watermarks-that-expire", ExpiringMaintenance)
