"""A service with tables of all kinds: what lands in its sources, and what its lake tables must hold."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.cli.demo.verify import evaluate
from laketier.registry import Lake, configure, open_lake
from laketier_verification.lakes import read_all

ROWS = 20
"""That land in a table at a time."""
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "parted": {"sink": {"lake.partition-by": "grp"}},
    "bucketed": {"sink": {"lake.bucket-by": "bucket(4, id)"}},
    "keyed": {"primary-key": ["id"]},
    "bad": {"on-bad-record": "dead-letter"},
}
LANCE = ("plain", "keyed", "bad")
COLUMNS = {"id": "int64", "grp": "string", "what": "string"}
SCHEMA = pa.schema([("id", pa.int64()), ("grp", pa.string()), ("what", pa.string())])


@dataclass
class Shop:
    """In ``folder``. ``state`` is the URL of the state database."""

    folder: Path
    formats: tuple[str, ...]
    state: str
    landed: int = 0

    @property
    def tables(self) -> list[str]:
        shapes = {name: LANCE if name == "lance" else tuple(SHAPES) for name in self.formats}
        return [f"{name}_{shape}" for name, those in shapes.items() for shape in those]

    def file(self, state: str = "") -> str:
        """The service file, written anew."""
        tables = []
        for table in self.tables:
            lake, shape = table.split("_")
            settings = dict(SHAPES[shape])
            if shape == "bucketed" and lake == "iceberg":
                settings["sink"] = {"lake.bucket-by": "iceberg:bucket(4, id)"}
            sink = {"lake.format": lake, "lake.warehouse": f"lake_{lake}"} | settings.pop("sink", {})
            tables.append({"source": "drop", "include": [table], "sink": sink, **settings})
        document = {
            "name": "shop",
            "state": state or self.state,
            "sources": {"drop": {"type": "files", "options": {"path": "drop"}}},
            "defaults": {
                "read": {"format": "json", "columns": COLUMNS},
                "target": "shop.{table}",
                "freshness": "2 s",
            },
            "tables": tables,
            "discover-every": "2 s",
            "lease": "5 s",
        }
        path = self.folder / "service.yaml"
        path.write_text(json.dumps(document), encoding="utf-8")  # YAML, too
        return path.name

    def land(self) -> None:
        """One more file for each table."""
        for table in self.tables:
            folder = self.folder / "drop" / table
            folder.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps(row) for row in self._landing(table, self.landed)]
            if table.endswith("_bad"):
                lines.insert(3, f"no row {self.landed}")
            hidden = folder / f".{self.landed}"
            hidden.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            hidden.rename(folder / f"{self.landed:04d}.json")
        self.landed += 1

    def _landing(self, table: str, number: int) -> list[dict[str, Any]]:
        first = number * ROWS // 2 if table.endswith("_keyed") else number * ROWS  # keys come twice
        return [{"id": i, "grp": f"g{i % 3}", "what": f"of {number}"} for i in range(first, first + ROWS)]

    def expected(self, table: str) -> pa.Table:
        rows: list[dict[str, Any]] = [row for number in range(self.landed) for row in self._landing(table, number)]
        if table.endswith("_keyed"):
            rows = list({row["id"]: row for row in rows}.values())
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def lake(self, table: str) -> Lake:
        name = table.split("_")[0]
        keys = {"lake.format": name, "lake.warehouse": str(self.folder / f"lake_{name}")}
        return open_lake(configure(keys | {"lake.table": f"shop.{table}"}, environment={}))

    def wrong(self) -> list[str]:
        """What readers, ours and others, find lost or twice in the lake tables."""
        found = []
        for table in self.tables:
            lake, expected = self.lake(table), self.expected(table)
            info = lake.storage.catalog().load_table(lake.config.table)
            lines = {tool: line for tool, line in lake.plugin.open_with(info).items() if not line.startswith("spark.")}
            assert lines
            read = {tool: evaluate(line) for tool, line in lines.items()} | {"laketier": read_all(lake)}
            for tool, rows in read.items():
                if _counted(rows) != _counted(expected):
                    found.append(f"{table}: {rows.num_rows} rows by {tool}, other ones than the {expected.num_rows}")
            if table.endswith("_bad"):
                dead = read_all(self.lake(f"{table}__dead_letters")).num_rows
                if dead != self.landed:
                    found.append(f"{table}: {dead} dead letters of {self.landed}")
        return found


def _counted(rows: pa.Table) -> Counter[str]:
    return Counter(map(str, rows.select(SCHEMA.names).cast(SCHEMA).to_pylist()))
