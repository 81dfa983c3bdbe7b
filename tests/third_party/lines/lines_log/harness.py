"""Fills folders of JSON lines, so that laketier's suite of sources can prove the plugin."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from laketier.kit.looks import names_in
from laketier_source_conformance.harness import Row, SourceHarness


class LinesHarness(SourceHarness):
    """Tables in a folder of the test's own."""

    cannot: ClassVar[Mapping[str, str]] = {
        "engine_modules": "it needs no client library",
        "append_several": "a line is one row",
        "append_late": "lines are in the order of their append",
        "append_bad_with_key": "a line has no key",
        "append_open": "a line is there once it has its end",
        "compact": "lines are kept until they expire",
        "leave_gap": "each line has the offset after the one before",
        "put_back": "lines have no history",
        "close_bucket": "each file may grow",
        "replace_input": "lines are only ever appended",
        "update_rows": "lines are only ever appended",
        "endpoint": "a folder has no address",
        "secret_options": "a folder needs no password",
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = folder / "logs"
        self.root.mkdir()

    @property
    def source_options(self) -> Mapping[str, Any]:
        return {"path": str(self.root)}

    def make_table(self, name: str) -> None:
        columns = {"id": "int64", "text": "string", "score": "float64"}
        (self.root / name).mkdir()
        (self.root / name / "0.jsonl").touch()
        self._describe(name, {"id": uuid.uuid4().hex, "columns": columns})

    def append(self, name: str, numbers: Sequence[int]) -> Sequence[Row]:
        rows = [{"id": number, "text": f"row {number}", "score": number / 4} for number in numbers]
        self._write(name, rows)
        return rows

    def append_equal(self, name: str) -> Sequence[Row]:
        rows = [{"id": 1_000_000, "text": "twice", "score": 0.5}] * 2
        self._write(name, rows)
        return rows

    def append_bad(self, name: str) -> bytes | None:
        line = b'{"id": 3.5}'  # of which pyarrow would make 3
        with min(self.files(name, empty=True)).open("ab") as file:
            file.write(line + b"\n")
        return line

    def append_bytes(self, name: str, values: Sequence[bytes]) -> Sequence[bytes]:
        with min(self.files(name, empty=True)).open("ab") as file:
            file.writelines(value + b"\n" for value in values)
        return values

    def append_limits(self, name: str) -> Sequence[Row]:
        rows = [
            {"id": 2**53 + 1, "text": " ", "score": 0.1 + 0.2},
            {"id": 2**63 - 1, "text": "", "score": 1.7976931348623157e308},
            {"id": -(2**63), "text": "ü\u2028\u0000\n" * 5000, "score": 5e-324},
            {"id": None, "text": None, "score": None},
        ]
        self._write(name, rows)
        return rows

    def append_begun(self, name: str, numbers: Sequence[int]) -> Callable[[], Sequence[Row]]:
        rows = [{"id": number, "text": f"row {number}", "score": number / 4} for number in numbers]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path = min(self.files(name, empty=True))

        def write(part: str) -> None:
            with path.open("a") as file:
                file.write(part)

        write(text[: len(text) // 3])

        def finish() -> Sequence[Row]:
            write(text[len(text) // 3 :])
            return rows

        return finish

    def append_texts(self, name: str, texts: Sequence[str]) -> Sequence[Row]:
        rows = [{"id": number, "text": text, "score": 0.5} for number, text in enumerate(texts, 2_000_000)]
        self._write(name, rows)
        return rows

    def make_many(self, names: Sequence[str]) -> None:
        for name in names:
            self.make_table(name)

    def append_many(self, name: str, count: int) -> None:
        with (self.root / name / "0.jsonl").open("a") as file:
            file.writelines(f'{{"id": {number}, "text": "row {number}", "score": 0.5}}\n' for number in range(count))

    def add_bucket(self, name: str) -> None:
        (self.root / name / f"{len(self.files(name, empty=True))}.jsonl").touch()

    def expire(self, name: str) -> None:
        described = json.loads((self.root / name / "table.json").read_text())
        self._describe(name, {**described, "expired": {"0": 2}})

    def expire_all(self, name: str) -> None:
        described = json.loads((self.root / name / "table.json").read_text())
        lines = {path.stem: path.read_bytes().count(b"\n") for path in self.files(name)}
        self._describe(name, {**described, "expired": lines})

    def make_again(self, name: str) -> None:
        self.drop_table(name)
        self.make_table(name)

    def drop_table(self, name: str) -> None:
        shutil.rmtree(self.root / name)

    def add_column(self, name: str) -> Sequence[Row]:
        described = json.loads((self.root / name / "table.json").read_text())
        self._describe(name, {**described, "columns": {**described["columns"], "note": "string"}})
        self._write(name, [{"id": 1_000_000, "text": "one more", "score": 0.5, "note": "a note"}])
        lines = [line for path in self.files(name) for line in path.read_text().splitlines()]
        return [{"note": None, **json.loads(line)} for line in lines]

    def rename_column(self, name: str) -> tuple[str, str]:
        described = json.loads((self.root / name / "table.json").read_text())
        columns = {"words" if column == "text" else column: kind for column, kind in described["columns"].items()}
        self._describe(name, {**described, "columns": columns, "former_names": {"words": ["text"]}})
        return "text", "words"

    def files(self, name: str, empty: bool = False) -> Sequence[Path]:
        folder = self.root / name
        found = sorted(folder / each for each in names_in(folder) if each.endswith(".jsonl"))
        return [path for path in found if empty or path.stat().st_size]

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        away = self.root.with_name("away")
        self.root.rename(away)
        try:
            yield
        finally:
            away.rename(self.root)

    def _write(self, name: str, rows: Sequence[Row]) -> None:
        """In turns to each bucket."""
        files = self.files(name, empty=True)
        for at, row in enumerate(rows):
            with files[at % len(files)].open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _describe(self, name: str, document: Mapping[str, Any]) -> None:
        (self.root / name / "table.json").write_text(json.dumps(document))
