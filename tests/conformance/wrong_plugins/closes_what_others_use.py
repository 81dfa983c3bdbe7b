"""Committers of a process share a client, and each closes it when it is done."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import ManifestState
from laketier.registry import hookimpl

CAUGHT_BY = "test_state.py::test_a_committer_is_closed_beside_another"
SAYS = "the client is closed"
CLIENT = {"open": False}


class SharingCommitter(kit.ManifestCommitter):
    def open(self) -> ManifestState:
        CLIENT["open"] = True
        return super().open()

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if not CLIENT["open"]:
            raise RuntimeError("the client is closed")
        return super().publish(state, results, watermark)

    def close(self) -> None:
        CLIENT["open"] = False


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("closes-what-others-use", committer=SharingCommitter)
