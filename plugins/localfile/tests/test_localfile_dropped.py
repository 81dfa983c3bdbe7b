"""A look at a table that is dropped meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from laketier.kit.beside_drops import beside_drops
from laketier.spi import TableError, TableInfo, TableNotFound


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "recreated"])
def test_manifests_that_a_drop_took_are_not_lost(table: Any, again: bool, caplog: pytest.LogCaptureFixture) -> None:
    table.round(0)
    log = table.log
    table.storage.catalog().drop_table(table.path)
    if again:
        table.create()
    for look in (log.head, log.current, lambda: log.read(1)):
        with pytest.raises(TableNotFound, match="the table was dropped meanwhile"):
            look()
    assert caplog.messages == []  # no advice to restore a backup


def test_a_create_that_a_drop_disturbs_begins_anew(table: Any) -> None:
    disturbed = [FileNotFoundError("gone"), TableNotFound("gone")]

    def create() -> TableInfo:
        if disturbed:
            raise disturbed.pop()
        return table.info

    assert beside_drops(create, "db.t") == table.info


def test_a_create_that_is_always_disturbed_ends() -> None:
    def create() -> TableInfo:
        raise FileNotFoundError(2, "no such folder", "/lake/db")

    with pytest.raises(TableError, match=r"db\.t: the table could not be created, because it was gone each time"):
        beside_drops(create, "db.t")
