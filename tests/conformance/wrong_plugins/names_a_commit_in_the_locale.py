"""A note for people names the pipeline. It is written as text, in whatever encoding the process has."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_files_have_an_encoding_of_their_own"
SAYS = "the locale's encoding is ASCII"


class OddCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        if watermark is not None:
            (self.table.location / self.table.layout.folder / "last.txt").write_text(watermark.token.pipeline)
        return done


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-a-commit-in-the-locale", committer=OddCommitter)
