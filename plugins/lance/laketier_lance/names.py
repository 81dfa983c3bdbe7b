"""The names of data files, which tell who wrote them."""

from __future__ import annotations

import re

DATA = "data"
"""The folder of data files."""

_STAGED = re.compile(rf"{DATA}/(?P<attempt>[0-9a-f]{{32}})-\d{{5,}}\.lance")


def attempt_of(path: str) -> str | None:
    """The attempt that wrote a data file. None for files of other writers."""
    match = _STAGED.fullmatch(path)
    return match["attempt"] if match else None
