"""To give a new column to old rows, an alter takes their files out, and puts them in again with the new schema."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import Manifest, files_at
from laketier.kit.manifests.committer import next_manifest
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_operations.py::test_an_operation_is_cut_off[alter]"
SAYS = "a part is there: expected 5 rows"


class TwoStepLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        if manifest.kind != "alter":
            return super().append(manifest)
        before = manifest.number - 1
        files = tuple(files_at(self, before))
        out = next_manifest(
            self.read(before),
            commit_id=f"{manifest.commit_id}-out",
            kind="overwrite",
        )
        emptied = super().append(out)
        number = emptied.number + 1
        return super().append(
            replace(manifest, number=number, previous=emptied.sha256, metadata_at=number, added=files)
        )


class TwoStepTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return TwoStepLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("alters-in-two-commits", table=TwoStepTable)
