"""Who interrupts a commit wants nothing of it, so its files are deleted. It may have landed."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_an_error_of_an_effect_is_no_conflict[interrupt]"
SAYS = "the table can't be read any more"


class TidyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        try:
            return super().publish(state, results, watermark)
        except KeyboardInterrupt:
            for file in (file for result in results for file in result.files):
                (self.table.location / file.path).unlink(missing_ok=True)
            raise


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tidies-up-after-ctrl-c", committer=TidyCommitter)
