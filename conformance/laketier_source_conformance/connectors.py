"""Harnesses of laketier's own sources that need no client library: files in a landing zone, and lake tables."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from laketier.registry import installed_formats
from laketier.spi import AddColumn, PluginNotFound, TablePath
from laketier_conformance.expect import NotShown
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake
from laketier_source_conformance.backups import copied
from laketier_source_conformance.harness import Row, SourceHarness

SCHEMA = pa.schema(
    [("id", pa.int64()), ("text", pa.string()), ("score", pa.float64()), ("at", pa.timestamp("us", tz="UTC"))]
)
"""The columns of each table."""


def row_of(number: int) -> dict[str, Any]:
    """The row of a number."""
    at = datetime.fromtimestamp(1_700_000_000 + number, UTC)
    return {"id": number, "text": f"row {number}", "score": number / 4, "at": at}


class FilesHarness(SourceHarness):
    """A landing zone of JSON lines. Each append lands a file."""

    codec: ClassVar[str] = "json"
    odd_text: ClassVar[str] = "ü\u2028\u0000\n"
    cannot: ClassVar[Mapping[str, str]] = {
        "engine_modules": "it needs no client library",
        "append_several": "each row of a file is a record of its own",
        "append_open": "a file is there as a whole, or hidden",
        "append_bad_with_key": "a line of a file has no key",
        "endpoint": "a folder has no address",
        **dict.fromkeys(("add_bucket", "close_bucket"), "a landing zone has one bucket"),
        "compact": "a file is there as a whole, or gone",
        "leave_gap": "each file has one offset, which is never given again",
        "rename_column": "a landing zone keeps no former names",
        "add_column": "the user names the columns of the files",
        "update_rows": "a file that is written anew is another one, see `replace_input`",
        "secret_options": "a landing zone in a folder needs no password",
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.zone = folder / "zone"
        self.zone.mkdir()
        self._landed = 0

    @property
    def source_options(self) -> Mapping[str, Any]:
        return {"path": str(self.zone)}

    @property
    def table_options(self) -> Mapping[str, Any]:
        columns = {"id": "int64", "text": "string", "score": "float64", "at": "timestamp[us, UTC]"}
        return {"format": self.codec, **{f"columns.{name}": kind for name, kind in columns.items()}}

    def make_table(self, name: str) -> None:
        (self.zone / name).mkdir()

    def append(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        return self.land_rows(name, [row_of(number) for number in numbers])

    def append_equal(self, name: str) -> Sequence[Row]:
        return self.land_rows(name, [row_of(1_000_000)] * 2)

    def land_rows(self, name: str, rows: Sequence[Row]) -> Sequence[Row]:
        self.land(name, self.encode(rows))
        return rows

    def append_late(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        """Under a name, and of a time, before those of all others."""
        landed, self._landed = self._landed, -1
        rows = self.append(name, numbers)
        self._landed = landed
        return rows

    def expire_all(self, name: str) -> None:
        for path in self.files(name):
            path.unlink()

    def replace_input(self, name: str) -> None:
        """The first file, by one as long."""
        path = self.files(name)[0]
        old, new = path.stat(), self.encode([row_of(number) for number in (7, 8, 9)])
        if len(new) != old.st_size:
            raise RuntimeError(f"{len(new)} bytes would take the place of {old.st_size}")
        path.write_bytes(new)

    def land(self, name: str, data: bytes) -> Path:
        """Write a hidden file, and rename it once it is whole."""
        self._landed += 1
        hidden = self.zone / name / f".{self._landed:06}.{self.codec}"
        hidden.write_bytes(data)
        os.utime(hidden, ns=(self._landed * 10**9 + 1_700_000_000 * 10**9,) * 2)
        return hidden.rename(hidden.with_name(hidden.name[1:]))

    def encode(self, rows: Sequence[Row]) -> bytes:
        return "".join(json.dumps(row, ensure_ascii=False, default=datetime.isoformat) + "\n" for row in rows).encode()

    def append_bad(self, name: str) -> bytes | None:
        line = b'{"id": "no number", "text": 7}'
        self.land(name, line + b"\n")
        return line

    def append_bytes(self, name: str, values: Sequence[bytes]) -> Sequence[bytes]:
        """In one file: a line of blanks is no record, and a mark at its beginning is the file's own."""
        some = [value for value in values if value.strip()]
        self.land(name, b"\n".join([*some, b""]))
        return some

    def append_limits(self, name: str) -> Sequence[Row]:
        rows = [
            {**row_of(7), "id": 2**53 + 1, "score": 0.1 + 0.2},
            {"id": 2**63 - 1, "text": "", "score": 1.7976931348623157e308, "at": datetime(9999, 12, 31, tzinfo=UTC)},
            {"id": -(2**63), "text": self.odd_text * 5000, "score": 5e-324, "at": datetime(1, 1, 1, tzinfo=UTC)},
        ]
        return self.land_rows(name, rows)

    def append_begun(self, name: str, numbers: Sequence[int]) -> Callable[[], Sequence[Row]]:
        rows = [row_of(number) for number in numbers]
        data = self.encode(rows)
        hidden = self.zone / name / f".begun.{self.codec}"
        hidden.write_bytes(data[: len(data) // 2])

        def finish() -> Sequence[Row]:
            hidden.unlink()
            self.land(name, data)
            return rows

        return finish

    def append_texts(self, name: str, texts: Sequence[str]) -> Sequence[Row]:
        rows = [{**row_of(number), "text": text} for number, text in enumerate(texts, 2_000_000)]
        return self.land_rows(name, rows)

    def make_many(self, names: Sequence[str]) -> None:
        for name in names:
            self.make_table(name)

    def append_many(self, name: str, count: int) -> None:
        for first in range(0, count, 100_000):
            self.append(name, range(first, min(first + 100_000, count)))

    def expire(self, name: str) -> None:
        min((self.zone / name).glob("[!.]*")).unlink()

    def make_again(self, name: str) -> None:
        self.drop_table(name)
        shutil.rmtree(self.zone / "_laketier" / "ledger" / name)
        self.make_table(name)

    def drop_table(self, name: str) -> None:
        shutil.rmtree(self.zone / name)

    def put_back(self, name: str) -> Callable[[], None]:
        """With its ledger, which is in it."""
        return copied(self.zone, self.folder / f"kept {name}")

    def files(self, name: str) -> Sequence[Path]:
        return sorted((self.zone / name).glob("[!.]*"))

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        away = self.zone.with_name("away")
        self.zone.rename(away)
        try:
            yield
        finally:
            away.rename(self.zone)


class LakeHarness(SourceHarness):
    """A lake of one format, the first that is installed. Each append is a commit."""

    lake_format: ClassVar[str | None] = None
    cannot: ClassVar[Mapping[str, str]] = {
        "engine_modules": "it needs no client library",
        **dict.fromkeys(("append_open", "append_begun"), "a commit is there as a whole"),
        "append_limits": "the suite of formats asks for the values of each type",
        **dict.fromkeys(("append_bad", "append_bytes"), "a lake table holds rows alone"),
        **dict.fromkeys(("append_several", "append_bad_with_key"), "a lake table holds rows alone"),
        "append_late": "rows are in the order of their commits",
        **dict.fromkeys(("add_bucket", "close_bucket"), "the log of a lake table has one bucket"),
        "rename_column": "the source of lakes tells no former names",
        "replace_input": "a data file of a lake table is never written again",
        "endpoint": "a lake in a folder has no address",
        "compact": "the log of a lake table keeps what its commits appended",
        "update_rows": "the log of a lake table is of commits that append, or of changes",
        "make_many": "tables are listed by their format",
        "secret_options": "a lake in a folder needs no password",
    }

    @property
    def lake(self) -> Lake:
        """The lake that is read."""
        name = self.lake_format or min((each.name for each in installed_formats()), default=None)
        if name is None:
            raise PluginNotFound(
                "no format is installed whose tables could be read", fix="Install laketier[localfile]."
            )
        return Lake(name, str(self.folder / "lake"), {})

    @property
    def source_options(self) -> Mapping[str, Any]:
        return {"lake.format": self.lake.format, "lake.warehouse": self.lake.location}

    def listed(self, name: str) -> str:
        return f"db.{name}"

    def make_table(self, name: str) -> None:
        if not name.isidentifier() or not name.isascii() or not name.islower():
            raise ValueError("a lake's tables have names of small letters")
        self.lake.create(SCHEMA, self.listed(name))

    def append(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        rows = [row_of(number) for number in numbers]
        batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
        self.lake.table(self.listed(name)).publish_arrow([batch])
        return rows

    def append_equal(self, name: str) -> Sequence[Row]:
        rows = [row_of(1_000_000)] * 2
        self.lake.table(self.listed(name)).publish_arrow([pa.RecordBatch.from_pylist(rows, schema=SCHEMA)])
        return rows

    def append_texts(self, name: str, texts: Sequence[str]) -> Sequence[Row]:
        rows = [{**row_of(number), "text": text} for number, text in enumerate(texts, 2_000_000)]
        self.lake.table(self.listed(name)).publish_arrow([pa.RecordBatch.from_pylist(rows, schema=SCHEMA)])
        return rows

    def append_many(self, name: str, count: int) -> None:
        columns = [pa.array(range(count)), pa.nulls(count, pa.string()), pa.nulls(count, pa.float64())]
        batch = pa.record_batch([*columns, pa.nulls(count, SCHEMA.field("at").type)], schema=SCHEMA)
        self.lake.table(self.listed(name)).publish_arrow([batch])

    def add_column(self, name: str) -> Sequence[Row]:
        path, note = TablePath.parse(self.listed(name)), pa.field("note", pa.string())
        self.lake.storage.catalog().alter_table(path, [AddColumn(note)])
        batch = pa.RecordBatch.from_pylist([{**row_of(1_000_000), "note": "a note"}], schema=SCHEMA.append(note))
        self.lake.table(self.listed(name)).publish_arrow([batch])
        return self.lake.table(self.listed(name)).read().to_pylist()

    def leave_gap(self, name: str) -> None:
        """A commit without rows."""
        self.append(name, [])

    def expire(self, name: str) -> None:
        """All snapshots but the newest, as the format's own harness ends them. The newest has all rows."""
        found = Harness.of(self.lake.format).expire
        if found is None:
            raise NotShown("the expiry of snapshots", f"the harness of {self.lake.format} has no expire")
        found(self.lake.storage, self.lake.table(self.listed(name)).info)

    def expire_all(self, name: str) -> None:
        self.expire(name)

    def make_again(self, name: str) -> None:
        self.drop_table(name)
        self.make_table(name)

    def drop_table(self, name: str) -> None:
        self.lake.storage.catalog().drop_table(TablePath.parse(self.listed(name)))

    def put_back(self, name: str) -> Callable[[], None]:
        return copied(self.folder / "lake", self.folder / f"kept {name}")

    def files(self, name: str) -> Sequence[Path]:
        """Data files: metadata has other names, or a folder of its own."""
        found = [each for kind in ("parquet", "lance") for each in (self.folder / "lake").rglob(f"*.{kind}")]
        return sorted(each for each in found if each.is_file() and "_delta_log" not in each.parts)

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        lake = self.folder / "lake"
        away = lake.with_name("away")
        lake.rename(away)
        try:
            yield
        finally:
            if lake.exists():
                shutil.rmtree(lake)
            away.rename(lake)
