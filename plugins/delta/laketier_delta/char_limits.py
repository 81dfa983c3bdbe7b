"""CHAR and VARCHAR: strings in the log, and how long they may be only in the metadata of the column, which Spark keeps.

As delta-spark does it: a value with more characters than the limit is refused, blanks at its end count, and nothing is
padded when it is written (Spark pads when it reads).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from laketier.spi import UnstorableRows

if TYPE_CHECKING:
    from deltalake import DeltaTable

DECLARED_AS = "__CHAR_VARCHAR_TYPE_STRING"
"""Key in a column's metadata: its type as it was declared, with all that is nested in it."""
_LIMITED = re.compile(r"(?P<kind>char|varchar)\((?P<limit>\d+)\)\Z", re.IGNORECASE)


def is_plain(declared: str) -> bool:
    """Whether the column itself is a CHAR or VARCHAR, and not something in it."""
    return _LIMITED.match(declared) is not None


def is_padded(declared: str) -> bool:
    """Whether it is a CHAR, of which Spark pads the values that it reads."""
    match = _LIMITED.match(declared)
    return match is not None and match["kind"].lower() == "char"


def limits_of(handle: DeltaTable) -> dict[str, str]:
    """Columns of a table and how they were declared: ``char(3)``, ``varchar(20)``."""
    fields = json.loads(handle.schema().to_json())["fields"]
    declared = {field["name"]: str(field.get("metadata", {}).get(DECLARED_AS, "")) for field in fields}
    return {name: text for name, text in declared.items() if is_plain(text)}


def check_lengths(batch: pa.RecordBatch, limits: Mapping[str, str]) -> None:
    """Raise `UnstorableRows` for a value that is longer than its column was declared."""
    for name, declared in limits.items():
        match = _LIMITED.match(declared)
        assert match is not None, "limits_of gives no others"
        longest = pc.max(pc.utf8_length(batch.column(name))).as_py()
        if longest is not None and longest > int(match["limit"]):
            raise UnstorableRows(
                f"column {name!r} has a value of {longest} characters, and it is {declared}",
                fix="Cut it in the query (substring), or widen the column with Spark (ALTER COLUMN … TYPE varchar(n)).",
            )
