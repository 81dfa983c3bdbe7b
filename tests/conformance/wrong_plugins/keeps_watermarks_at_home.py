"""The newest watermarks of a table are kept in the user's home as well, where they are quickly found. Another host has
another home."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_a_driver_goes_on_on_another_host"
SAYS = "of a driver that is now on host 'one'"


def _kept(uuid: str) -> Path:
    return Path(os.path.expanduser("~"), f".kept-{uuid}")


class HomelyState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        kept = _kept(self.table_uuid)
        if not kept.exists():
            return super().watermark(pipeline)
        text = json.loads(kept.read_text(encoding="utf-8")).get(pipeline)
        return None if text is None else spi.Watermark.from_json(text)


class HomelyCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        marks = {} if watermark is None else {watermark.token.pipeline: watermark.to_json()}
        _kept(state.table_uuid).write_text(json.dumps(marks), encoding="utf-8")
        return done


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("keeps-watermarks-at-home", committer=HomelyCommitter, **told(HomelyState))
