"""Fills a database for the suite of sources: what `polled.py` needs to be proven."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from laketier_source_conformance.harness import KeptByReader, Row, SourceHarness


class PolledHarness(SourceHarness):
    """A database for each test."""

    cannot: ClassVar[Mapping[str, str]] = {
        "engine_modules": "SQLite comes with Python",
        "append_several": "a row is a record of its own",
        "append_open": "SQLite has one writer: nobody appends while a transaction is open",
        "append_begun": "a row is there as a whole",
        "append_late": "ids are given in the order of commits",
        "append_bad_with_key": "a row that is bad has no bytes, and no key",
        "append_equal": "each row has an id of its own",
        "add_bucket": "a table has one bucket",
        "close_bucket": "a table has one bucket",
        "make_again": "SQLite gives a table no identity: the stamp tells one that was made again",
        "rename_column": "SQLite keeps no former names",
        "replace_input": "a row that was read is not read again, whatever becomes of it",
        "files": "the rows are in a database",
        "endpoint": "a file has no address",
        "secret_options": "a file needs no password",
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.file = folder / "app.sqlite"

    @property
    def source_options(self) -> Mapping[str, Any]:
        return {"path": str(self.file)}

    @property
    def table_options(self) -> Mapping[str, Any]:
        return {"stamp-by": "text"}

    def make_table(self, name: str) -> None:
        if name == "Orders":
            raise ValueError("SQLite takes two names that differ in case for one")
        self.run(f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT, score REAL)')

    def append(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        rows = [(f"row {number}", number / 4) for number in numbers]
        return self._insert(name, rows)

    def append_bad(self, name: str) -> bytes | None:
        self.run(f'INSERT INTO "{name}" (text, score) VALUES (?, ?)', ("x", "no number"))
        return None

    def append_bytes(self, name: str, values: Sequence[bytes]) -> Sequence[bytes | None]:
        """As text, of which SQLite takes any bytes."""
        bad = [value for value in values if "\ufffd" in value.decode(errors="replace")]
        for value in bad:
            self.run(f'INSERT INTO "{name}" (text) VALUES (CAST(? AS TEXT))', (value,))
        return [None] * len(bad)

    def append_limits(self, name: str) -> Sequence[Row]:
        return self._insert(
            name, [("", 1.7976931348623157e308), ("digits", 0.1 + 0.2), ("ü\u2028\n" * 5000, 5e-324), (None, None)]
        )

    def append_texts(self, name: str, texts: Sequence[str]) -> Sequence[Row]:
        return self._insert(name, [(text, 0.5) for text in texts])

    def make_many(self, names: Sequence[str]) -> None:
        with closing(sqlite3.connect(self.file)) as db, db:
            for name in names:
                db.execute(f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY AUTOINCREMENT)')

    def update_rows(self, name: str) -> None:
        self.run(f'UPDATE "{name}" SET score = -1')

    def add_column(self, name: str) -> Sequence[Row]:
        self.run(f'ALTER TABLE "{name}" ADD COLUMN note TEXT')
        self.run(f'INSERT INTO "{name}" (text, note) VALUES (?, ?)', ("one more", "a note"))
        with closing(sqlite3.connect(self.file)) as db:
            found = db.execute(f'SELECT id, text, score, note FROM "{name}" ORDER BY id').fetchall()
        return [{**_row(*each), "note": note} for *each, note in found]

    def drop_table(self, name: str) -> None:
        self.run(f'DROP TABLE "{name}"')

    def append_many(self, name: str, count: int) -> None:
        with closing(sqlite3.connect(self.file)) as db, db:
            db.executemany(f'INSERT INTO "{name}" (score) VALUES (?)', ((each,) for each in range(count)))

    def leave_gap(self, name: str) -> None:
        for _ in range(2):
            self.run(f'INSERT INTO "{name}" (text) VALUES (?)', ("gap",))
        self.run(f'DELETE FROM "{name}" WHERE text = ?', ("gap",))

    def compact(self, name: str) -> Sequence[Row]:
        self._delete(name, " WHERE id IN (3, 5)")
        with closing(sqlite3.connect(self.file)) as db:
            return [_row(*each) for each in db.execute(f'SELECT * FROM "{name}" ORDER BY id')]

    def expire(self, name: str) -> None:
        self.run(f'DELETE FROM "{name}" WHERE id <= ?', (3,))

    def expire_all(self, name: str) -> None:
        self._delete(name)

    def _delete(self, name: str, which: str = "") -> None:
        try:
            with closing(sqlite3.connect(self.file, timeout=0)) as db, db:
                db.execute(f'DELETE FROM "{name}"{which}')
        except sqlite3.OperationalError as error:
            raise KeptByReader(f"a reader's transaction keeps writers out: {error}") from error

    def put_back(self, name: str) -> Callable[[], None]:
        kept = self.folder / f"kept {name}"
        shutil.copy(self.file, kept)
        return lambda: self.file.write_bytes(kept.read_bytes())

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        away = self.file.rename(self.folder / "away")
        try:
            yield
        finally:
            away.rename(self.file)

    def run(self, statement: str, values: Sequence[Any] = ()) -> int | None:
        with closing(sqlite3.connect(self.file)) as db, db:
            return db.execute(statement, values).lastrowid

    def _insert(self, name: str, rows: Sequence[tuple[Any, ...]]) -> Sequence[Row]:
        found = []
        with closing(sqlite3.connect(self.file)) as db, db:
            for row in rows:
                given = db.execute(f'INSERT INTO "{name}" (text, score) VALUES (?, ?)', row).lastrowid
                found.append(_row(given, *row))
        return found


def _row(id: int | None, text: str | None, score: float | None) -> Row:
    return {"id": id, "text": text, "score": score}
