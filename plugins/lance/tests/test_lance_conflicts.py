"""Commits of others that come between `open` and `publish`."""

from __future__ import annotations

import pytest

from laketier.spi import CommitterInitContext, Conflict, Outcome, Token, Watermark, WriteMode
from laketier.tiering import Ending

CHANGES = [
    "append",
    "delete",
    "compaction",
    "add",
    "drop",
    "rename",
    "cast",
    "overwrite",
    "restore",
    "metadata",
    "update",
    "merge insert",
    "other pipeline",
]


def committer(table, mode=WriteMode.APPEND):
    return table.factory.create_committer(CommitterInitContext(commit_id="c1", mode=mode, pipeline="p"))


def watermark(epoch):
    return Watermark(Token("p", "r", epoch), "c1")


@pytest.mark.parametrize("mode", [WriteMode.APPEND, WriteMode.OVERWRITE])
@pytest.mark.parametrize("change", CHANGES)
def test_a_publish_against_a_state_that_has_passed_is_a_conflict(table, change, mode):
    table.append(0, 1)
    table.append(1, 2)
    round_ = committer(table, mode=mode)
    state, staged = round_.open(), table.stage(table.rows(3))
    table.foreign(change)
    now = table.open().version
    with pytest.raises(Conflict):
        round_.publish(state, [staged], watermark(2))
    assert table.open().version == now
    assert 3 not in table.ids()


@pytest.mark.parametrize("change", ["append", "delete", "compaction", "metadata", "update", "other pipeline"])
def test_the_round_goes_through_after_such_a_conflict(table, change):
    table.append(0, 1)
    table.append(1, 2)
    round_ = table.round(2)
    staged = table.stage(table.rows(3))
    round_.begin()
    table.foreign(change)
    assert round_.commit([staged]).ending is Ending.PUBLISHED
    assert table.ids().count(3) == 1
    assert table.round(2).begin() is Outcome.DONE


@pytest.mark.parametrize("change", ["config", "index"])
def test_config_and_indexes_that_come_between_do_not_lose_anything(table, change):
    table.append(0, 1)
    round_ = committer(table)
    state, staged = round_.open(), table.stage(table.rows(2))
    table.foreign(change)
    assert round_.publish(state, [staged], watermark(1)).snapshot_id == table.open().version
    assert table.ids() == [1, 2]
    # The watermark names the version it was meant for, and carries the commit that tells it from a later one.
    assert table.round(2).begin() is Outcome.PROCEED
