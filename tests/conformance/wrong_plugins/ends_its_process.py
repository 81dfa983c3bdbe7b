"""A commit ends the process, as a crash in an engine's native code would."""

from __future__ import annotations

import os
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl


class CrashingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        os._exit(7)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("ends-its-process", committer=CrashingCommitter)
