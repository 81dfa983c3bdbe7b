"""What is made while somebody else drops it."""

from __future__ import annotations

from collections.abc import Callable

from laketier.spi.errors import TableError, TableNotFound
from laketier.spi.table import TableInfo

_ATTEMPTS = 10


def beside_drops(create: Callable[[], TableInfo], where: str) -> TableInfo:
    """What ``create`` gives. A drop of the same table may take its folder away between two steps, and then it begins
    anew: a create has to make a table, or to find one. Driver. ``where`` names the table in the error.

    Raises `TableError` when the folder is gone each time, and whatever else ``create`` raises."""
    left = _ATTEMPTS
    while True:
        left -= 1
        try:
            return create()
        except (FileNotFoundError, TableNotFound) as error:
            if not left:
                raise TableError(
                    "the table could not be created",
                    where=where,
                    why=f"it was gone each time that it was made: {error}",
                    fix="Let one process create and drop it, and check that lake.warehouse is a folder that stays.",
                ) from error
