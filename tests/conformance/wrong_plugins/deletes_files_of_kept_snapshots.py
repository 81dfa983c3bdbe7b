"""A file goes unless the newest snapshot has it. Those between that stay were not thought of."""

from __future__ import annotations

from dataclasses import replace

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_expiry.py::test_what_is_kept_is_whole_and_the_rest_is_refused[3]"
SAYS = "which has not expired, is read: expected its rows, found CorruptTable"


class ExpiringMaintenance(kit.ManifestMaintenance):
    def expire(self, *, retention: int, keep: int, delete: bool) -> spi.Expiry:
        done = super().expire(retention=retention, keep=keep, delete=delete)
        manifests = self.table.manifests()
        for file in self.table.store.files(self.table.layout.superseded) if delete else ():
            if self.table.layout.was_superseded is not None and self.table.layout.was_superseded(file.path):
                self.table.store.delete(file.path)
        return replace(done, newest=manifests.current()[0].number)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("deletes-files-of-kept-snapshots", ExpiringMaintenance)
