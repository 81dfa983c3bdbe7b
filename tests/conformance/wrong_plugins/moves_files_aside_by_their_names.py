"""Files that an overwrite replaces are moved aside by their own names, for the snapshots that need them. No writer
gives a name twice. Files that lay there before the table may have one name in several folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from local import reading, tiering

from laketier import kit, spi
from laketier.registry import hookimpl
from laketier_localfile import settle, source
from laketier_localfile.layout import superseded_path
from laketier_localfile.source import LocalFileSource
from laketier_localfile.storage import LocalFileTieringFactory

CAUGHT_BY = "test_adoption.py::test_an_overwrite_takes_their_rows_away"
SAYS = "the snapshot before an overwrite is read, whose files have one name in two folders: expected no error"
NAME = "moves-files-aside-by-their-names"


def _by_name(path: str) -> str:
    return superseded_path(PurePath(path).name)


@contextmanager
def _moving() -> Iterator[None]:
    with patch.object(settle, "superseded_path", _by_name), patch.object(source, "superseded_path", _by_name):
        yield


class Committer(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        with _moving():
            return super().publish(state, results, watermark)


class Factory(LocalFileTieringFactory):
    def create_committer(self, context: spi.CommitterInitContext) -> spi.LakeCommitter[spi.WriteResult]:
        right: Any = super().create_committer(context)
        return Committer(right.table, context)


class Source(LocalFileSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with _moving():
            yield from [*super().read(split, schema)]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    moving, other = tiering(NAME, Factory), reading(NAME, Source)
    right = moving.create_storage

    def create_storage(config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = right(config)
        object.__setattr__(storage, "source", other.create_storage(config).source)
        return storage  # type: ignore[no-any-return]

    object.__setattr__(moving, "create_storage", create_storage)
    return moving
