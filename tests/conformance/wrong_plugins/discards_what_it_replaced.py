"""A discard takes all paths of a result, those of the files that it would have replaced with them."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert.py::test_only_removing"
SAYS = "a task is discarded that replaces a file: the file stays, as it is not what the task staged: expected no error"


class ThoroughCommitter(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        super().discard(results)
        for result in results:
            for path in result.replaced:
                (self.table.location / path).unlink(missing_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("discards-what-it-replaced", committer=ThoroughCommitter)
