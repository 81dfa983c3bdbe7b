"""Lines of Python that open a table without laketier, run: ``python others_read.py``, with a list of them as JSON
on standard input. For each, the ids that it finds, the module that is not installed, what could not be reached, or what
it raised. What lines and libraries print goes to standard error.

A file of its own that imports nothing of laketier's: nobody who follows such a line has that.
"""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import sys
from typing import Any

_UNREACHABLE = re.compile(
    r"""(install|download|load)\w*\b.{0,80}\bextension | \bextension\b.{0,80}(install|download|not\ found)
    | \b(re)?connect(ion|ing)?\b | resolve\ host | name\ resolution | \bnetwork\b | \btimed?[ -]?out\b | \bproxy\b""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""What libraries say without a network: they have no error of their own for it."""
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
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) or error.name is None:
            return {"missing": error.name or str(error)}
        return {"error": _text(error)}
    except Exception as error:  # noqa: BLE001 - of whichever library
        kind = "unreachable" if _is_of_the_network(error) else "error"
        return {kind: _text(error)}


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _is_of_the_network(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, (ConnectionError, TimeoutError, socket.gaierror)) or _UNREACHABLE.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        json.dump([told(line) for line in json.load(sys.stdin)], answers)
    # Some libraries end their threads in no order, and now and then the process with them: that is no answer.
    sys.stderr.flush()
    os._exit(0)
