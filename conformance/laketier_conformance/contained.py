"""A process as it is in a container: its number is 1, as that of each other one on as many hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def contained() -> Iterator[None]:
    """What Python tells of this process, in the block. What it forks has a number of its own."""
    number = os.getpid
    here = number()
    with patch.object(os, "getpid", lambda: 1 if number() == here else number()):
        yield
