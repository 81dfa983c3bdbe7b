"""Nothing is leaked, and nothing live is deleted."""

from __future__ import annotations

import pytest

from laketier.spi import Gap, WriterInitContext, new_attempt_id
from laketier.tiering import RoundOutcome
from laketier_conformance.lake import Table, batch, ids_of, token


def test_only_what_was_given_is_deleted(table: Table) -> None:
    table.append(0)
    mine, other = table.staged(ids_of(1)), table.staged(ids_of(2))
    committer = table.committer()
    committer.discard([mine])
    committer.close()
    assert table.ids == ids_of(0)
    table.commit([other], token(1))
    assert table.ids == ids_of(0) + ids_of(2)


def test_the_files_are_gone(table: Table) -> None:
    table.append(0)
    before = table.lake.files()
    staged = table.staged(ids_of(1))
    committer = table.committer()
    committer.discard([staged])
    assert table.lake.files() == before
    committer.discard([staged])
    committer.discard([])
    committer.close()
    assert table.lake.files() == before


def test_a_result_that_was_published_is_kept(table: Table) -> None:
    """Somebody hands it over again, though it is in the table: now, and behind another epoch."""
    staged = table.staged(ids_of(0))
    table.commit([staged], token(0))
    committer = table.committer()
    committer.discard([staged])
    table.append(1)
    committer.discard([staged])
    committer.close()
    assert table.ids == ids_of(0) + ids_of(1)


def test_attempts_of_the_same_task_never_clash(table: Table) -> None:
    """Speculation: two attempts of one split and epoch. One wins; deleting the other does not touch it."""
    factory = table.factory
    attempts = [factory.create_writer(WriterInitContext(attempt=new_attempt_id(), split_index=0)) for _ in range(2)]
    for writer in attempts:
        writer.write(batch(ids_of(0)))
    won, lost = [writer.complete() for writer in attempts]
    assert not {file.path for file in won.files} & {file.path for file in lost.files}
    table.commit([won], token(0))
    committer = table.committer()
    committer.discard([lost])
    committer.close()
    assert table.ids == ids_of(0)


def test_an_attempt_that_aborts_beside_one_that_goes_on(table: Table) -> None:
    factory = table.factory
    going, stopping = (
        factory.create_writer(WriterInitContext(attempt=new_attempt_id(), split_index=0)) for _ in range(2)
    )
    going.write(batch(ids_of(0)))
    stopping.write(batch(ids_of(0)))
    stopping.abort()
    table.commit([going.complete()], token(0))
    assert table.ids == ids_of(0)


def test_a_refused_round_leaves_no_files(table: Table) -> None:
    table.append(0)
    table.append(1)
    before = table.lake.files()
    staged = table.staged(ids_of(2))
    with pytest.raises(Gap):
        table.commit([staged], token(7))
    assert table.lake.files() == before
    assert table.append(2).outcome is RoundOutcome.PUBLISHED
