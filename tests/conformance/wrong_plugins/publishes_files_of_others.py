"""Publishes any file that is in the table, whole, and whose it is does not matter."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin
from feather_lake.plugin import Committer

from laketier import kit, spi
from laketier.kit import staged
from laketier.registry import hookimpl


class GenerousCommitter(Committer):
    def check(self, results: Sequence[spi.WriteResult]) -> None:
        for result in results:
            anybody = lambda path, attempt=result.attempt: attempt  # noqa: E731
            staged.check_staged(kit.TableFolder.at(self.home), [result], attempt_of=anybody, where=self.home)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-files-of-others", committer=GenerousCommitter)
