"""A table has a document that says what its commits are called. Its checksum is right, so whoever reads it takes what
it holds, of whatever kind that is, and tells it on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests.document import decode, encode
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_value_is_another"
SAYS = "expected operation of SnapshotInfo to be str, found 7"


class NotingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        notes = Path(info.location, "notes.json")
        if not notes.exists():
            notes.write_bytes(encode({"version": 1, "commits": "rounds"}))
        return info


class NotedHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        notes = self.table.location / "notes.json"
        name = decode(notes.read_bytes(), notes, lambda body, _: body["commits"])
        return [replace(line, operation=name) for line in super().snapshots(limit)]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("tells-what-its-notes-hold", catalog=NotingCatalog, history=NotedHistory)
