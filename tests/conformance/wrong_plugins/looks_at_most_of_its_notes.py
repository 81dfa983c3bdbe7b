"""A table has a document with the numbers and the names that belong to its commits. Its checksum is right, and each
value is looked at but one, which is told on as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests.document import decode, encode, whole
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_value_is_another"
SAYS = "expected operation of SnapshotInfo to be str, found 7"
_LIMITS = [f"limit_{number}" for number in range(60)]


class NotingCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        notes = Path(info.location, "notes.json")
        if not notes.exists():
            notes.write_bytes(encode({"version": 1, "rounds": "round", **dict.fromkeys(_LIMITS, 9)}))
        return info


def _name(body: dict[str, Any], _: str) -> str:
    for limit in _LIMITS:
        whole(body[limit])
    name: str = body["rounds"]
    return name


class NotedHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        notes = self.table.location / "notes.json"
        name = decode(notes.read_bytes(), notes, _name)
        return [replace(line, operation=name) for line in super().snapshots(limit)]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("looks-at-most-of-its-notes", catalog=NotingCatalog, history=NotedHistory)
