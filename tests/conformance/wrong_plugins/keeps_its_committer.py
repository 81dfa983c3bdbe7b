"""A committer is costly to make, so a process makes one for each table, and hands it out again."""

from __future__ import annotations

from typing import ClassVar

from crooked import CrookedFactory, CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_an_unpublished_commit_is_not_found"
SAYS = "a commit that lost is not found by its id"


class KeepingFactory(CrookedFactory):
    made: ClassVar[dict[str, kit.ManifestCommitter]] = {}

    def create_committer(self, context: spi.CommitterInitContext) -> kit.ManifestCommitter:
        return self.made.setdefault(f"{self.table.location} {context.mode}", super().create_committer(context))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("keeps-its-committer", factory=KeepingFactory)
