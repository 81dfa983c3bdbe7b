"""Staged files get a name by their content in the commit, as a content-addressed store gives it, and tasks with the
same rows share one. A commit that lost deletes those that it made. Another one found them there, and has landed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source, Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_driver_of_the_same_epoch_before_each_effect"
SAYS = "and the two ended with"
DIGEST = "digest"


class DigestingWriter(Writer):
    def details(self, path: Path) -> Mapping[str, str]:
        return {DIGEST: self.names.name(hashlib.sha256(path.read_bytes()).hexdigest()[:32])}


class SharingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        made = []
        folder = Path(self.table.location)
        for file in (file for result in results for file in result.files):
            named = folder / file.payload[DIGEST]
            try:
                os.link(folder / file.path, named)
            except FileExistsError:
                continue
            made.append(named)
        try:
            return super().publish(state, results, watermark)
        except spi.Conflict:
            for each in made:
                each.unlink(missing_ok=True)
            raise


class ObjectSource(Source):
    def split(
        self, index: int, entry: kit.FileEntry, snapshot: kit.ManifestSnapshot, wanted: pa.Schema
    ) -> spi.LakeSplit:
        return super().split(index, replace(entry, path=entry.details[DIGEST]), snapshot, wanted)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin(
        "takes-a-shared-object-away", writer=DigestingWriter, committer=SharingCommitter, source=ObjectSource
    )
