"""A drop between two steps of a publish: the table stays dropped, and nothing of the publish is in the next one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from laketier.kit import failpoints
from laketier.spi import Feature, LaketierError, TableNotFound, Watermark
from laketier_conformance.expect import expect, refused
from laketier_conformance.lake import Lake, ids_of, token


@pytest.mark.needs(Feature.DROP_TABLE)
@pytest.mark.parametrize("anew", [False, True], ids=["dropped", "recreated"])
def test_a_drop_at_each_step_of_a_publish(lake: Lake, anew: bool) -> None:
    """Whatever is raised. A publish that went well was before the drop, or after it in vain."""
    passed: list[str] = []
    _publish(lake, "db.steps", passed.append)
    for number, step in enumerate(passed):
        _drop_at(lake, f"db.t{number}", number, step, anew)


def _drop_at(lake: Lake, name: str, number: int, step: str, anew: bool) -> None:
    catalog, then = lake.storage.catalog(), f"a drop at {step!r} of a publish"
    left = [number]

    def drop(_: str) -> None:
        left[0] -= 1
        if left[0] == -1:
            catalog.drop_table(table)
            if anew:
                lake.create(name=name)

    table = lake.create(name=name).path
    with suppress(LaketierError, OSError):
        _publish(lake, name, drop)
    assert left[0] < 0, f"{then}: the second publish passed as many steps as the first"
    if not anew:
        with refused(TableNotFound, f"a table is loaded after {then}"):
            catalog.load_table(table)
        expect(
            [found for found in catalog.list_tables() if found == table], [], f"this table in the list, after {then}"
        )
    again = lake.create(name=name)
    expect(again.ids, [], f"rows of the next table of this name, after {then}")
    expect(again.watermark(), None, f"the watermark of the next table of this name, after {then}")
    expect(again.append(0).rows, 5, f"rows of the first round of the next table of this name, after {then}")
    expect(again.ids, ids_of(0), f"rows of the next table of this name after its first round, after {then}")


def _publish(lake: Lake, name: str, at: Callable[[str], None]) -> None:
    table = lake.create(name=name)
    table.append(0)
    committer = table.committer()
    state = committer.open()
    staged = table.staged(ids_of(1))
    with failpoints.observed(at):
        committer.publish(state, [staged], Watermark(token(1), "c"))
    committer.close()
