"""Lines of Python that open a table without laketier, run: ``python others_read.py``, with a list of pairs of a tool
and its line as JSON on standard input. For each, the ids that it finds, the module that is not installed, or what it
raised.

A file of its own that imports nothing of laketier's: nobody who follows such a line has that.
"""

from __future__ import annotations

import ast
import json
import sys
from typing import Any

_TO_ARROW = ("collect", "to_arrow_table", "to_arrow", "arrow", "to_table", "read_all")


def ids(line: str) -> list[int]:
    """Of the table that the last expression of ``line`` is."""
    import pyarrow as pa

    module = ast.parse(line)
    last = module.body.pop()
    if not isinstance(last, ast.Expr):
        raise TypeError(f"it ends with no expression: {line}")
    names: dict[str, Any] = {}
    exec(compile(module, "<line>", "exec"), names)  # noqa: S102 - a plugin's own line, which people are told to run
    value = eval(compile(ast.Expression(last.value), "<line>", "eval"), names)  # noqa: S307 - likewise
    for method in _TO_ARROW:
        if not isinstance(value, pa.Table) and hasattr(value, method):
            value = getattr(value, method)()
    table = value if isinstance(value, pa.Table) else pa.table(value)
    return sorted(table["id"].to_pylist())


def told(line: str) -> dict[str, Any]:
    """One answer."""
    try:
        return {"ids": ids(line)}
    except ModuleNotFoundError as error:
        return {"missing": error.name}
    except Exception as error:  # noqa: BLE001 - of whichever library
        return {"error": f"{type(error).__name__}: {error}"[:500]}


if __name__ == "__main__":
    json.dump([told(line) for _, line in json.load(sys.stdin)], sys.stdout)
