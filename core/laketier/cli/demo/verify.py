"""Counting with readers that are not ours: the lines that a plugin gives for opening its tables elsewhere.

Run as a process without laketier: ``python verify.py``; orders as JSON on standard input, the answer on standard
output.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Count:
    """The rows that one reader found, beside the expected ones: multisets of whole rows."""

    tool: str
    expected: int
    found: int
    lost: int
    doubled: int

    @property
    def exact(self) -> bool:
        """Every expected row is there once, and no other."""
        return self.found == self.expected and self.lost == 0 and self.doubled == 0


def count_with(lines: Mapping[str, str], inputs: Sequence[str]) -> list[Count]:
    """Read the table with each of ``lines`` (tool → Python, see `LakeStoragePlugin.open_with`) in one process of its
    own, and compare with the Parquet files ``inputs`` . Lines that need a Spark session are left out."""
    usable = {tool: line for tool, line in lines.items() if not line.startswith("spark.")}
    orders = json.dumps({"lines": usable, "inputs": list(inputs)})
    answer = subprocess.run([sys.executable, __file__], input=orders, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"a reader failed:\n{answer.stderr.strip()[-2000:]}")
    return [Count(**count) for count in json.loads(answer.stdout)]


def evaluate(line: str) -> Any:
    """Run ``import x; expression`` and return the expression's value as an Arrow table."""
    import pyarrow as pa

    module = ast.parse(line)
    last = module.body.pop()
    assert isinstance(last, ast.Expr), f"not an expression at the end: {line}"
    names: dict[str, Any] = {}
    exec(compile(module, "<line>", "exec"), names)  # noqa: S102 - a plugin's own line, which people are told to run
    value = eval(compile(ast.Expression(last.value), "<line>", "eval"), names)  # noqa: S307 - likewise
    for method in ("collect", "to_arrow_table", "to_arrow", "arrow", "to_table", "read_all"):
        if not isinstance(value, pa.Table) and hasattr(value, method):
            value = getattr(value, method)()
    return value if isinstance(value, pa.Table) else pa.table(value)


def main() -> None:
    """Compare in DuckDB: ``except all`` is the difference of multisets."""
    import duckdb
    import pyarrow.dataset as ds

    orders = json.loads(sys.stdin.read())
    paths = sorted(orders["inputs"])
    expected = ds.dataset(paths).to_table()
    counts = []
    for tool, line in orders["lines"].items():
        found = evaluate(line).select(expected.column_names).cast(expected.schema)
        connection = duckdb.connect()
        connection.register("expected", expected)
        connection.register("found", found)
        counts.append(
            {
                "tool": tool,
                "expected": expected.num_rows,
                "found": found.num_rows,
                "lost": _size(connection, "from expected except all from found"),
                "doubled": _size(connection, "from found except all from expected"),
            }
        )
    sys.stdout.write(json.dumps(counts))


def _size(connection: Any, query: str) -> int:
    row = connection.execute(f"select count(*) from ({query})").fetchone()
    return int(row[0])


if __name__ == "__main__":
    main()
