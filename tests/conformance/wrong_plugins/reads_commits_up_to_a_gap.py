"""Commits are read from the first one on, until there is none: where one in the middle is lost, the table is an older
one, and nobody is told."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.registry import hookimpl

CAUGHT_BY = "test_torn.py::test_what_an_older_commit_made_is_gone"
SAYS = "of an older commit is gone: a reader has to get all rows or a refusal, as a commit after it is there"


class CountingLog(ManifestLog):
    def head(self) -> tuple[Manifest, bool]:
        number = 0
        while self.exists(number + 1):
            number += 1
        return self.read(number), False

    def current(self) -> tuple[Manifest, bool]:
        return self.head()


class CountingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return CountingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-commits-up-to-a-gap", table=CountingTable)
