"""Writing: tasks stage Parquet files, and one transaction of DuckLake names them with the watermark."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from ducklake_lake.features import FEATURES
from ducklake_lake.library import OWN, Lake, Overtaken, Session, quoted
from ducklake_lake.table import Version, found, load_newest
from laketier import kit, spi
from laketier.kit.staged import check_staged, discard_staged, refuse_published, remove

NAMES = kit.AttemptNames(".parquet")


@dataclass(frozen=True)
class Factory(spi.LakeTieringFactory[spi.WriteResult]):
    """The table's description is all that a writer needs."""

    table: spi.TableInfo
    lake: Lake

    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        spi.require_mode("ducklake", FEATURES, context.mode)
        return Writer(self.table, context.attempt)

    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        spi.require_mode("ducklake", FEATURES, context.mode)
        return Committer(self.table, self.lake, context)


class Writer(kit.OneFileWriter):
    """One file for one task attempt, named after it. Executor."""

    names: ClassVar = NAMES

    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        return pq.ParquetWriter(str(path), schema, compression="zstd")


@dataclass(frozen=True)
class State(spi.TableState):
    """A table at one snapshot of the lake."""

    path: spi.TablePath
    lake: Lake
    version: Version

    @property
    def table_uuid(self) -> str:
        return self.version.identity

    @property
    def schema_fingerprint(self) -> str:
        return spi.schema_fingerprint(self.version.schema)

    @property
    def spec_id(self) -> int:
        return 0

    @property
    def snapshot_id(self) -> int | None:
        return self.version.number

    def watermark(self, pipeline: str) -> spi.Watermark | None:
        text = self.version.watermarks.get(pipeline)
        return None if text is None else spi.Watermark.from_json(text)

    def pipelines(self) -> list[str]:
        return sorted(self.version.watermarks)

    def landed(self, commit_id: str) -> bool:
        with found(self.lake, self.path), self.lake.transaction() as session:
            return bool(session.run(f"FROM {session.lake}.{OWN}.commits WHERE commit_id = ?", (commit_id,)))


@dataclass(frozen=True)
class Committer(spi.LakeCommitter[spi.WriteResult]):
    """One attempt. Driver."""

    table: spi.TableInfo
    lake: Lake
    context: spi.CommitterInitContext

    def open(self) -> State:
        return State(self.table.path, self.lake, load_newest(self.lake, self.table.path))

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, State)
        files = [file for result in results for file in result.files]
        try:
            # The COMMIT is not under `before_effect`: the stack ends last. What a transaction did before is nobody's.
            with ExitStack() as stack, kit.before_effect(self.table.location):
                check_staged(self._folder, results, attempt_of=NAMES.attempt_of, where=self.table.location)
                if files:  # the library lists a file any number of times
                    paths = [file.path for file in files]
                    refuse_published(paths, self._published(paths), where=self.table.location)
                self._change(stack.enter_context(self.lake.transaction()), state.version, files, watermark)
        except Overtaken as error:
            # Certain: the library did nothing. All other errors pass, and mean that the outcome is unknown.
            raise spi.Conflict("another commit came first", where=self.table.location, why=str(error)) from error
        base = state.version
        return spi.LakeCommitResult(
            snapshot_id=base.number + 1,
            rows=sum(file.rows for file in files),
            files=len(files),
            bytes=sum(file.bytes for file in files),
        )

    def _change(
        self, session: Session, base: Version, files: Sequence[spi.StagedFile], watermark: spi.Watermark | None
    ) -> None:
        """What the commit will make so."""
        path = self.table.path
        if (number := session.snapshot()) != base.number:
            why = f"the lake is at snapshot {number}, not at {base.number}"
            raise spi.Conflict("another commit came first", where=self.table.location, why=why)
        if self.context.mode is spi.WriteMode.OVERWRITE:
            session.run(f"DELETE FROM {session.lake}.{quoted(path.database, path.table)}")
        for file in files:
            # The path is a pattern for the library.
            place = glob.escape(f"{self.table.location}/{file.path}")
            session.run(
                "CALL ducklake_add_data_files(?, ?, ?, schema => ?)", (session.lake, path.table, place, path.database)
            )
        # The library makes no snapshot without a change: this is one, also without files and watermark.
        session.run(f"INSERT INTO {session.lake}.{OWN}.commits VALUES (?, ?)", (base.identity, self.context.commit_id))
        if watermark is not None:
            marks, pipeline = f"{session.lake}.{OWN}.watermarks", watermark.token.pipeline
            text = watermark.carried_by(base.number + 1).to_json()
            if pipeline in base.watermarks:
                session.run(f"DELETE FROM {marks} WHERE table_uuid = ? AND pipeline = ?", (base.identity, pipeline))
            session.run(f"INSERT INTO {marks} VALUES (?, ?, ?)", (base.identity, pipeline, text))

    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        discard_staged(
            results,
            attempt_of=NAMES.attempt_of,
            where=self.table.location,
            published=self._published,
            delete=partial(remove, self._folder),
        )

    @property
    def _folder(self) -> kit.TableFolder:
        return kit.TableFolder.at(self.table.location)

    def _published(self, paths: Sequence[str]) -> set[str]:
        """Those of these files that some snapshot has, as each can be read; and those that one had, until its merge or
        its expiry. Such a file is the library's to delete, and is gone when the second list has it no more."""
        name = "parse_filename(path, false, 'forward_slash')"
        with found(self.lake, self.table.path), self.lake.transaction() as session:
            lists = (session.catalog(each) for each in ("ducklake_data_file", "ducklake_files_scheduled_for_deletion"))
            query = " UNION ALL ".join(f"SELECT {name} FROM {files} WHERE list_contains($1, {name})" for files in lists)
            rows = session.run(query, (list(paths),))
        return {path for (path,) in rows}


def read_state(table: spi.TableInfo, lake: Lake) -> State:
    """For readers: the version that was loaded with the table, or the newest."""
    loaded = isinstance(table.handle, Version)
    return State(table.path, lake, table.handle if loaded else load_newest(lake, table.path))
