"""The client of a catalog is asynchronous, so each commit runs an event loop. In a notebook there is one that runs."""

from __future__ import annotations

import asyncio

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_applications.py::test_an_application_uses_a_table[cell]"
SAYS = "because of RuntimeError(asyncio.run() cannot be called from a running event loop)"


async def _told() -> None:
    await asyncio.sleep(0)


def act() -> None:
    told = _told()
    try:
        asyncio.run(told)
    finally:
        told.close()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("publishes-in-a-loop-of-its-own", committer=when_publishing(act))
