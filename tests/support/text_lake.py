"""Tables of numbers, one a line, on the toolbox for formats of manifests. Their files stay where they are staged."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from laketier import kit, spi
from laketier.kit.manifests.committer import next_manifest
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from laketier.tiering import TieringRound

SCHEMA = pa.schema([pa.field("id", pa.int64(), metadata={"origin": "elsewhere"})])
ALL = dict.fromkeys(spi.Feature, spi.FULL)
PATH = spi.TablePath("db", "t")


def attempt_of(path: str) -> str | None:
    match = re.fullmatch(r"([0-9a-f]{32})\.text", path)
    return match[1] if match else None


def details(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"lines": int(plain["lines"])}


class TextTable(kit.ManifestTable):
    """Numbers, one a line."""

    layout: ClassVar = kit.ManifestLayout(format="text", folder="_text", attempt_of=attempt_of, details=details)
    features: ClassVar = ALL

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        if any(field.type != pa.int64() for field in schema):
            raise spi.UnsupportedType("numbers only")


class OtherTable(TextTable):
    layout: ClassVar = replace(TextTable.layout, format="other")


class PoorTable(TextTable):
    features: ClassVar = {}


class TrustingTable(TextTable):
    features: ClassVar = {
        **ALL,
        spi.Feature.PARTITION_TRANSFORMS: spi.unsupported("files have their columns alone"),
    }

    @classmethod
    def check_descriptor(cls, descriptor: spi.TableDescriptor) -> None:
        pass


class TextSource(kit.ManifestSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        numbers = [int(line) for line in (self.table.location / split.payload.path).read_text().split()]
        yield pa.record_batch({"id": pa.array(numbers[: split.limit], pa.int64())}).select(schema.names)


class UncountedSource(TextSource):
    """The second file of a plan does not say how many rows it has."""

    def split(self, index: int, *about: Any) -> spi.LakeSplit:
        split = super().split(index, *about)
        return replace(split, rows=None) if index == 1 else split


class Lake:
    def __init__(self, warehouse: Path, table_type: type[TextTable] = TextTable) -> None:
        self.catalog = kit.ManifestCatalog(table_type, warehouse, manifests_per_rollup=2)
        self.info = self.catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))
        self.table = table_type(Path(self.info.location))
        self.source = TextSource(self.table)
        self.history = kit.ManifestHistory(self.table)
        self.changes = kit.ManifestChanges(self.source)
        self.maintenance = kit.ManifestMaintenance(self.table)

    def create_committer(self, context: spi.CommitterInitContext) -> kit.ManifestCommitter:
        return kit.ManifestCommitter(self.table, context)

    def stage(self, *numbers: int) -> spi.WriteResult:
        attempt = spi.new_attempt_id()
        path = self.table.location / f"{attempt}.text"
        path.write_text("\n".join(map(str, numbers)))
        file = spi.StagedFile(path.name, len(numbers), path.stat().st_size, payload={"lines": str(len(numbers))})
        return spi.WriteResult.of(self.info, attempt, (file,))

    def round(self, epoch: int, *numbers: int, mode: spi.WriteMode = spi.WriteMode.APPEND) -> spi.WriteResult:
        staged = self.stage(*numbers)
        TieringRound(self, token=spi.Token("p", "run", epoch), mode=mode).commit([staged])  # type: ignore[arg-type]
        return staged

    def read(self, **request: Any) -> list[int]:
        plan = self.source.plan(spi.ScanRequest(**request))
        return [n for split in plan.splits for b in self.source.read(split, plan.schema) for n in b["id"].to_pylist()]


def following(head: Manifest, layout: kit.ManifestLayout = TextTable.layout, **changes: Any) -> Manifest:
    """The manifest after another one, as it is read back."""
    made = next_manifest(head, commit_id=changes.pop("commit_id", spi.new_attempt_id()), kind="append", **changes)
    return Manifest.decode(made.encode(), Path("m"), layout)


def put(manifests: ManifestLog, manifest: Manifest) -> None:
    manifests.path(manifest.number).write_bytes(manifest.encode())


class Recorded:
    """What `os` was asked to make durable, and the names that it linked and replaced, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, ...]] = []
        sync, link, new = os.fsync, os.link, os.replace

        def fsync(descriptor: int) -> None:
            place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            size = "" if place.is_dir() else str(place.stat().st_size)
            self.seen.append(("sync", place.name if place.is_dir() else "file", *([size] if size else [])))
            sync(descriptor)

        def linked(old: Any, to: Any, **more: Any) -> None:
            self.seen.append(("link", Path(to).name))
            link(old, to, **more)

        def replaced(old: Any, to: Any) -> None:
            self.seen.append(("replace", Path(to).name))
            new(old, to)

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "link", linked)
        monkeypatch.setattr(os, "replace", replaced)
