"""A discard keeps the files of the newest snapshot. Those that an overwrite replaced are not in it."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_discard.py::test_a_result_that_an_older_snapshot_needs_is_kept"
SAYS = "and the snapshot that needs it is read: expected no error, found CorruptTable"


class Forgetful(kit.ManifestCommitter):
    def _published(self, paths: Sequence[str]) -> set[str]:
        manifests = self.table.manifests()
        head, _ = manifests.head()
        return {entry.path for entry in files_at(manifests, head.number)}.intersection(paths)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-what-snapshots-need", committer=Forgetful)
