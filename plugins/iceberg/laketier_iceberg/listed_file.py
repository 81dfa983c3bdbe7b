"""The payload of a split for its reader. Plain data: planned with pyiceberg, read without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ListedFile:
    """A data file that a snapshot lists. ``deletes``: its files of positional deletes.

    ``names``: field id → its names in the table's name mapping, where these are not just the field's own name now; None
    for a table without a mapping. ``partition`` and ``defaults``: one value per field id that the file may lack
    (`laketier_iceberg.projection.values_to_bytes`), empty for none.
    """

    path: str
    names: Mapping[str, tuple[str, ...]] | None = field(default=None, hash=False)
    partition: bytes = b""
    defaults: bytes = b""
    deletes: tuple[str, ...] = ()
