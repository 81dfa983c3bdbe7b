"""The names of the tables of all sources, asked for at one time: none waits for another that is silent."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from laketier.registry import OpenSource
from laketier.spi import LaketierError

_THREADS = 32

Listed = Mapping[str, list[str] | LaketierError]
"""By the source's name: its tables, or why they could not be listed."""


def list_all(sources: Mapping[str, OpenSource]) -> Listed:
    """Takes as long as the slowest of them. Raises nothing that a source did."""
    if not sources:
        return {}
    with ThreadPoolExecutor(min(len(sources), _THREADS)) as pool:
        return dict(zip(sources, pool.map(_list, sources.values()), strict=True))


def _list(source: OpenSource) -> list[str] | LaketierError:
    try:
        return source.list_tables()
    except LaketierError as error:
        return error
