"""A correct source, and its harness: logs in folders, with transactions, gaps, stamps and several buckets.

What alters it (`altered_notes`) is a wrong one; the variable ``NOTES_ALTERED`` says which."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPException
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, ClassVar
from urllib.request import urlopen

import pyarrow as pa

from laketier.registry import hookimpl
from laketier.spi import (
    BadRecord,
    BucketBounds,
    ConfigError,
    FindUnstorable,
    LogOffsets,
    LogRange,
    LogSource,
    LogSourceConfig,
    LogSourcePlugin,
    LogSplit,
    LogTable,
    OffsetsExpired,
    OnBadRecord,
    Secret,
    StorageError,
    TableLog,
    TableNotFound,
    fail_on_bad_record,
    option,
)
from laketier_source_conformance.harness import Row, SourceHarness

BATCH, SPLIT = 4, 6


@dataclass(frozen=True)
class NotesOptions:
    """Where the logs are."""

    path: str = option("", "The folder of the tables' folders.")
    password: Secret = option(Secret(""), "Of nobody.")
    url: str = option("", "Where the records are served from, if not from their folder.")


@dataclass(frozen=True)
class NotesLog(TableLog):
    """A folder. Each line of a bucket's file is an offset: a record, or a gap. ``folder`` and ``described`` travel."""

    folder: Path
    described: LogTable
    url: str = ""

    @property
    def table(self) -> LogTable:
        return self.described

    def meta(self) -> dict[str, Any]:
        return meta_of(self.folder)

    def bounds(self) -> Mapping[str, BucketBounds]:
        meta = self.meta()
        return {bucket: self.bounds_of(bucket, meta) for bucket in meta["buckets"]}

    def bounds_of(self, bucket: str, meta: Mapping[str, Any]) -> BucketBounds:
        latest, at = meta["expired"].get(bucket, 0), None
        for line in self.lines(bucket):
            if line.get("tx") is not None and line["tx"] not in meta["committed"]:
                break
            latest, at = line["o"] + 1, line["at"]
        return BucketBounds(meta["expired"].get(bucket, 0), latest, at)

    def lines(self, bucket: str) -> Iterator[dict[str, Any]]:
        """Each line of a bucket's file. Raises `StorageError` for one without an end."""
        try:
            with self.opened(bucket) as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        raise StorageError("a line has no end", where=str(self.folder))
                    yield json.loads(line)
        except (OSError, HTTPException) as error:
            raise StorageError("a log can't be read", where=str(self.folder), why=str(error)) from error

    def opened(self, bucket: str) -> IO[bytes]:
        """The lines of a bucket. Of an answer by HTTP all are read first: so one that is cut is told."""
        if not self.url:
            return (self.folder / f"{bucket}.log").open("rb")
        with self.answer(bucket) as answer:
            if answer.headers["Content-Length"] is None:  # the answer ended among its headers
                raise StorageError("an answer does not say how long it is", where=self.url)
            return io.BytesIO(answer.read())

    def answer(self, bucket: str) -> Any:
        return urlopen(f"{self.url}/{self.folder.name}/{bucket}.log", timeout=1)

    def stamp(self, position: LogOffsets) -> str | None:
        found = []
        for bucket, end in position.items():
            if end:
                marks = [line["u"] for line in self.lines(bucket) if line["o"] == end - 1]
                if not marks:
                    return None
                found += marks
        return "-".join(found) or None

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        splits: list[LogSplit] = []
        for bucket, end in wanted.end.items():
            start = wanted.start.get(bucket, 0)
            if start < end:
                self.refuse_expired(bucket, start)
                splits += LogSplit(bucket=bucket, start=start, end=end).cut(SPLIT)
        return splits

    def refuse_expired(self, bucket: str, start: int) -> None:
        expired = self.meta()["expired"].get(bucket, 0)
        if start < expired:
            gone = {each: [(0, end)] for each, end in self.meta()["expired"].items()}
            what = f"offsets {start} to {expired} of {bucket} expired"
            raise OffsetsExpired(what, where=str(self.folder), gone=self.told_gone(gone))

    def told_gone(self, gone: dict[str, list[tuple[int, int]]]) -> dict[str, list[tuple[int, int]]]:
        return gone

    def records(self, split: LogSplit) -> Iterator[BadRecord]:
        """The records of a split, each with its offset and bytes."""
        self.refuse_expired(split.bucket, split.start)
        expected = split.start
        for line in self.lines(split.bucket):
            if split.start <= line["o"] < split.end:
                if line["o"] != expected:
                    break
                expected += 1
                if not line.get("gap"):
                    value = bytes_of(line["v"])
                    key = line["k"].encode() if "k" in line else None
                    self.refuse_replaced(line)
                    yield BadRecord(
                        bucket=split.bucket, offset=line["o"], error="", value=value, key=key, at=line["at"]
                    )
        if expected < split.end:
            raise StorageError(f"the log ends at {expected}, before {split.end}", where=str(self.folder))

    def refuse_replaced(self, line: Mapping[str, Any]) -> None:
        """A record has a digest, as a file has one in the listing of a store."""
        if hashlib.sha256(bytes_of(line["v"])).hexdigest() != line["d"]:
            raise StorageError("a record is another one than was written", where=str(self.folder))

    def rows(self, records: Iterator[BadRecord], on_bad_record: OnBadRecord) -> Iterator[tuple[Row, BadRecord]]:
        for record in records:
            try:
                rows = [self.row(value) for value in values_of(record.value or b"")]
            except (ValueError, TypeError, KeyError, pa.ArrowException) as error:
                on_bad_record(replace(record, error=str(error) or "no row"))
                continue
            for row in rows:
                yield row, record

    def row(self, value: bytes) -> Row:
        row = json.loads(value)
        if not isinstance(row, dict):
            raise TypeError("no object")
        former = self.described.former_names
        found = {
            name: next((row[each] for each in (name, *former.get(name, ())) if each in row), None)
            for name in self.described.schema.names
        }
        pa.RecordBatch.from_pylist([found], schema=self.described.schema)
        return found

    def batches(
        self, records: Iterator[BadRecord], on_bad_record: OnBadRecord
    ) -> Iterator[tuple[pa.RecordBatch, list[BadRecord]]]:
        some: list[tuple[Row, BadRecord]] = []
        for each in self.rows(records, on_bad_record):
            if len(some) >= BATCH and each[1] is not some[-1][1]:
                yield self.batch(some)
                some = []
            some.append(each)
        if some:
            yield self.batch(some)

    def batch(self, some: list[tuple[Row, BadRecord]]) -> tuple[pa.RecordBatch, list[BadRecord]]:
        rows = pa.RecordBatch.from_pylist([dict(row) for row, _ in some], schema=self.described.schema)
        return rows, [record for _, record in some]

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for batch, _ in self.batches(self.records(split), on_bad_record):
            yield batch if columns is None else batch.select(list(columns))

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for batch, records in self.batches(self.records(split), on_bad_record):
            left = {id(records[at]): (records[at], why) for at, why in find_unstorable(batch).items()}
            for record, why in left.values():
                on_bad_record(replace(record, error=why))
            yield batch.filter(pa.array([id(record) not in left for record in records]))

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        for batch, _ in self.batches(iter(records), on_bad_record):
            yield batch


class NotesSource(LogSource):
    log_type: ClassVar[type[NotesLog]] = NotesLog

    def __init__(self, root: Path, password: Secret | None = None, url: str = "") -> None:
        self.root, self.password, self.url = root, password, url

    def list_tables(self) -> Sequence[str]:
        if not self.root.is_dir():
            raise StorageError("the logs are not there", where=str(self.root))
        return sorted(path.name for path in self.root.iterdir() if (path / "meta.json").is_file())

    def table_id(self, name: str, meta: Mapping[str, Any]) -> str:
        return str(meta["id"])

    def open(self, name: str, options: Any) -> TableLog:
        if name not in self.list_tables():
            raise TableNotFound(f"there is no table {name!r}", where=str(self.root))
        folder = self.root / name
        meta = meta_of(folder)
        schema = pa.schema([(column, pa.type_for_alias(kind)) for column, kind in meta["columns"].items()])
        former = {now: tuple(old) for now, old in meta["former"].items()}
        return self.log_type(folder, LogTable(name, self.table_id(name, meta), schema, former_names=former), self.url)


class NotesPlugin(LogSourcePlugin):
    identifier = "notes"
    spi_version = 2
    options_type = NotesOptions
    source_type: ClassVar[type[NotesSource]] = NotesSource

    def create_source(self, config: LogSourceConfig) -> LogSource:
        if not config.options.path:
            raise ConfigError("options.path is missing", where=config.name, fix="Set it.")
        return self.source_type(Path(config.options.path), config.options.password, config.options.url)


def values_of(value: bytes) -> list[bytes]:
    """A record may have several rows, in a list."""
    if not value.startswith(b"["):
        return [value]
    return [json.dumps(each).encode() for each in json.loads(value)]


def bytes_of(value: str) -> bytes:
    """Also those that are no text."""
    return value.encode(errors="surrogateescape")


def meta_of(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / "meta.json").read_bytes())
    except (OSError, ValueError) as error:
        raise StorageError("a table can't be read", where=str(folder), why=str(error)) from error
    return found


@hookimpl
def laketier_source() -> LogSourcePlugin:
    altered = os.environ.get("NOTES_ALTERED")
    if not altered:
        return NotesPlugin()
    plugin: LogSourcePlugin = importlib.import_module("altered_changes").plugin_of(altered)
    return plugin


def _put(path: Path, text: str) -> None:
    """In the place of a file. Who is reading goes on with the old one."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        return


class NotesHarness(SourceHarness):
    """All that a harness may have."""

    engine_modules = ("sqlite3",)
    cannot: ClassVar[Mapping[str, str]] = {"append_many": "each split goes through the whole file"}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = folder / "notes"
        self.server: ThreadingHTTPServer | None = None
        self.root.mkdir()

    @property
    def source_options(self) -> Mapping[str, Any]:
        return {"path": str(self.root), **({"url": "http://{}:{}".format(*self.answers_at)} if self.answers_at else {})}

    def endpoint(self) -> tuple[str, int]:
        """Serves the files."""
        if self.server is None:
            self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(self.root)))
            threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return "127.0.0.1", self.server.server_port

    def close(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()

    def secret_options(self) -> Mapping[str, Any]:
        return {"path": str(self.root), "password": "{secret}"}

    def make_table(self, name: str) -> None:
        (self.root / name).mkdir()
        (self.root / name / "0.log").touch()
        columns = {"id": "int64", "text": "string", "score": "float64"}
        empty: dict[str, Any] = {"former": {}, "expired": {}, "committed": [], "closed": []}
        self.describe(name, id=uuid.uuid4().hex, columns=columns, buckets=["0"], next={"0": 0}, **empty)

    def describe(self, name: str, **changes: Any) -> dict[str, Any]:
        path = self.root / name / "meta.json"
        meta = (json.loads(path.read_bytes()) if path.exists() else {}) | changes
        path.write_text(json.dumps(meta))
        return meta

    def write(self, name: str, values: Sequence[str | None], tx: str | None = None, **more: Any) -> None:
        """To each bucket that is open, in turn. None is a gap."""
        meta = self.describe(name)
        some = [bucket for bucket in meta["buckets"] if bucket not in meta["closed"]]
        for at, value in enumerate(values):
            bucket = some[at % len(some)]
            line = {"o": meta["next"][bucket], "u": uuid.uuid4().hex, "at": int(time.time() * 1000), "tx": tx, **more}
            digest = hashlib.sha256(bytes_of(value or "")).hexdigest()
            line |= {"gap": True} if value is None else {"v": value, "d": digest}
            meta["next"][bucket] += 1
            with (self.root / name / f"{bucket}.log").open("a") as file:
                file.write(json.dumps(line) + "\n")
        self.describe(name, next=meta["next"])

    def rows(self, numbers: Sequence[int]) -> list[Row]:
        return [{"id": number, "text": f"row {number}", "score": number / 4} for number in numbers]

    def append(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        rows = self.rows(numbers)
        self.write(name, [json.dumps(row) for row in rows])
        renamed = {old[0]: now for now, old in self.describe(name)["former"].items()}
        return [{renamed.get(column, column): value for column, value in row.items()} for row in rows]

    def append_several(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        rows = self.rows(numbers)
        self.write(name, [json.dumps(rows)])
        return rows

    def append_partly_bad(self, name: str, numbers: Sequence[int]) -> bytes | None:
        value = json.dumps([*self.rows(numbers), {"id": "none"}])
        self.write(name, [value])
        return value.encode()

    def append_equal(self, name: str) -> Sequence[Row]:
        rows = self.rows([1_000_000]) * 2
        self.write(name, [json.dumps(row) for row in rows])
        return rows

    def append_late(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        """A late record says so, and a reader does not care."""
        rows = self.rows(numbers)
        self.write(name, [json.dumps(row) for row in rows], late=True)
        return rows

    def append_bad_with_key(self, name: str) -> tuple[bytes, bytes | None]:
        self.write(name, ['{"id": "none"}'], k="its key")
        return b"its key", b'{"id": "none"}'

    def append_bad(self, name: str) -> bytes | None:
        self.write(name, ['{"id": "none"}'])
        return b'{"id": "none"}'

    def append_bytes(self, name: str, values: Sequence[bytes]) -> Sequence[bytes]:
        self.write(name, [value.decode(errors="surrogateescape") for value in values])
        return values

    def append_limits(self, name: str) -> Sequence[Row]:
        rows = [
            {"id": 2**53 + 1, "text": " ", "score": -0.0},
            {"id": 0, "text": "digits", "score": 0.1 + 0.2},
            {"id": 2**63 - 1, "text": "", "score": 1.7976931348623157e308},
            {"id": -(2**63), "text": "ü\u2028\u0000\n" * 500, "score": 5e-324},
            {"id": None, "text": None, "score": None},
        ]
        self.write(name, [json.dumps(row) for row in rows])
        return rows

    def append_texts(self, name: str, texts: Sequence[str]) -> Sequence[Row]:
        rows = [{"id": number, "text": text, "score": 0.5} for number, text in enumerate(texts, 2_000_000)]
        self.write(name, [json.dumps(row) for row in rows])
        return rows

    def make_many(self, names: Sequence[str]) -> None:
        for name in names:
            self.make_table(name)

    def update_rows(self, name: str) -> None:
        """The score of each record of the first bucket, with its digest."""
        path, found = self.root / name / "0.log", []
        for line in map(json.loads, path.read_text().splitlines()):
            value = line.get("v") and json.dumps({**json.loads(line["v"]), "score": -1.0})
            digest = {} if value is None else {"v": value, "d": hashlib.sha256(value.encode()).hexdigest()}
            found.append(json.dumps({**line, **digest}) + "\n")
        path.write_text("".join(found))

    def append_begun(self, name: str, numbers: Sequence[int]) -> Callable[[], Sequence[Row]]:
        """All but the end of the last line."""
        rows, path = self.rows(numbers), self.root / name / "0.log"
        self.write(name, [json.dumps(row) for row in rows])
        whole = path.read_bytes()
        path.write_bytes(whole[:-30])

        def finish() -> Sequence[Row]:
            path.write_bytes(whole)
            return rows

        return finish

    def append_open(self, name: str, numbers: Sequence[int]) -> Callable[[], Sequence[Row]]:
        tx, rows = uuid.uuid4().hex, self.rows(numbers)
        self.write(name, [json.dumps(row) for row in rows], tx)

        def commit() -> Sequence[Row]:
            self.describe(name, committed=[*self.describe(name)["committed"], tx])
            return rows

        return commit

    def add_bucket(self, name: str) -> None:
        meta = self.describe(name)
        bucket = str(len(meta["buckets"]))
        (self.root / name / f"{bucket}.log").touch()
        self.describe(name, buckets=[*meta["buckets"], bucket], next={**meta["next"], bucket: 0})

    def close_bucket(self, name: str) -> None:
        """Another one comes in its place."""
        self.add_bucket(name)
        meta = self.describe(name)
        self.describe(name, closed=[*meta["closed"], meta["buckets"][0]])

    def leave_gap(self, name: str) -> None:
        self.write(name, [None, None])

    def compact(self, name: str) -> Sequence[Row]:
        path = self.root / name / "0.log"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [{**line, "gap": line["o"] in (2, 3, 5)} for line in lines]
        _put(path, "".join(json.dumps(line) + "\n" for line in kept))
        return [json.loads(line["v"]) for line in kept if not line["gap"]]

    def expire(self, name: str) -> None:
        path = self.root / name / "0.log"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[3:]))
        self.describe(name, expired={"0": json.loads(lines[3])["o"]})

    def expire_all(self, name: str) -> None:
        meta = self.describe(name)
        for bucket in meta["buckets"]:
            _put(self.root / name / f"{bucket}.log", "")
        self.describe(name, expired=dict(meta["next"]))

    def replace_input(self, name: str) -> None:
        path = self.root / name / "0.log"
        path.write_text(path.read_text().replace("row 2", "row 7"))

    def make_again(self, name: str) -> None:
        self.drop_table(name)
        self.make_table(name)

    def drop_table(self, name: str) -> None:
        shutil.rmtree(self.root / name)

    def add_column(self, name: str) -> Sequence[Row]:
        self.describe(name, columns={**self.describe(name)["columns"], "note": "string"})
        self.write(name, [json.dumps({**row, "note": "a note"}) for row in self.rows([1_000_000])])
        lines = [json.loads(line) for line in (self.root / name / "0.log").read_text().splitlines()]
        return [{"note": None, **json.loads(line["v"])} for line in lines]

    def rename_column(self, name: str) -> tuple[str, str]:
        columns = self.describe(name)["columns"]
        renamed = {"words" if column == "text" else column: kind for column, kind in columns.items()}
        self.describe(name, columns=renamed, former={"words": ["text"]})
        return "text", "words"

    def put_back(self, name: str) -> Callable[[], None]:
        kept = self.folder / f"kept {name}"
        shutil.copytree(self.root / name, kept)

        def back() -> None:
            shutil.rmtree(self.root / name)
            shutil.copytree(kept, self.root / name)

        return back

    def files(self, name: str) -> Sequence[Path]:
        return [path for path in sorted((self.root / name).glob("*.log")) if path.stat().st_size]

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        away = self.root.with_name("away")
        self.root.rename(away)
        try:
            yield
        finally:
            away.rename(self.root)
