"""Watermarks that are stored as something else than they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crooked import CrookedPlugin

from laketier import kit, spi


def marked(identifier: str, stored: Callable[[spi.Watermark], spi.Watermark]) -> CrookedPlugin:
    """A plugin that stores ``stored`` of a watermark."""

    class MarkingCommitter(kit.ManifestCommitter):
        def publish(
            self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
        ) -> spi.LakeCommitResult:
            return super().publish(state, results, None if watermark is None else stored(watermark))

    return CrookedPlugin(identifier, committer=MarkingCommitter)
