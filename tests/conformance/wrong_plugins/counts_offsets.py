"""Positions of a source are numbers, as those of the only source that its author has: they are kept as integers where
they look like one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_decision_table.py::test_a_watermark_is_stored_as_it_is[numbers]"
SAYS = "the token in the stored watermark: expected"


def _kept(position: str) -> str:
    return str(int(position)) if position.isdecimal() else position


class CountingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if watermark is not None and watermark.token.source is not None:
            source = spi.SourceRange(_kept(watermark.token.source.start), _kept(watermark.token.source.end))
            watermark = replace(watermark, token=replace(watermark.token, source=source))
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("counts-offsets", committer=CountingCommitter)
