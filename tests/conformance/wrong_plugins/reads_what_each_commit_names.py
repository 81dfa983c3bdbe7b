"""The files of a snapshot are those that its commits name, one after the other: also one that two of them name."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import Source
from remembering_results import UnaskingCommitter

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_an_old_result_is_handed_over_again[pipeline]"
SAYS = "rows after a result was handed over again that is in the table: expected 10 rows, found 15"


class NamingSource(Source):
    def prune(
        self, snapshot: ManifestSnapshot, filters: tuple[spi.Predicate, ...]
    ) -> tuple[Sequence[FileEntry], tuple[spi.Predicate, ...]]:
        numbers = range(snapshot.manifest.number + 1)
        return [entry for number in numbers for entry in snapshot.manifests.read(number).added], filters


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-what-each-commit-names", source=NamingSource, committer=UnaskingCommitter)
