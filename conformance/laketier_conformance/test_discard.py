"""Nothing is leaked, and nothing live is deleted."""

from __future__ import annotations

import random

import pytest

from laketier.spi import (
    CommitError,
    Feature,
    Gap,
    LaketierError,
    Watermark,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.lake import Table, batch, ids_of, token


def test_only_what_was_given_is_deleted(table: Table) -> None:
    table.append(0)
    older, mine, other = (table.staged(ids_of(epoch)) for epoch in (3, 1, 2))
    committer = table.committer()
    committer.discard([mine])
    committer.discard([])
    committer.close()
    expect(table.ids, ids_of(0), "rows after another attempt was discarded")
    with goes_well(
        "one attempt is discarded, and others are published: a discard deletes the files it was given alone"
    ):
        table.commit([older, other], token(1))
    expect(table.ids, ids_of(0) + ids_of(2) + ids_of(3), "rows of a round whose files lay beside a discarded attempt")


def test_the_files_are_gone(table: Table) -> None:
    table.append(0)
    before = table.lake.files()
    staged = table.staged(ids_of(1))
    committer = table.committer()
    committer.discard([staged])
    expect(table.lake.files(), before, "files after a staged result was discarded")
    committer.discard([staged])
    committer.discard([])
    others = [table.staged(ids_of(epoch)) for epoch in (2, 3)]
    committer.discard([others[0], staged, others[1]])
    committer.close()
    expect(table.lake.files(), before, "files after staged results were discarded, the second of which was gone before")


def test_a_result_that_was_published_is_kept(table: Table) -> None:
    """Somebody hands it over again, though it is in the table: now, and behind another epoch."""
    staged = table.staged(ids_of(0))
    table.commit([staged], token(0))
    committer = table.committer()
    committer.discard([staged])
    table.append(1)
    committer.discard([staged])
    committer.close()
    expect(table.ids, ids_of(0) + ids_of(1), "rows after results were discarded that had been published")


def test_each_discard_looks_at_what_was_published_since(table: Table) -> None:
    """One committer is asked twice, and the second result was published by another driver in between: what the first
    look told of published files is old."""
    first, second = table.staged(ids_of(1)), table.staged(ids_of(0))
    committer = table.committer()
    committer.discard([first])
    table.commit([second], token(0))
    committer.discard([second])
    committer.close()
    expect(table.ids, ids_of(0), "rows of a result that was published after another one was discarded, and discarded")


@pytest.mark.needs(Feature.OVERWRITE, Feature.TIME_TRAVEL)
def test_a_result_that_an_older_snapshot_needs_is_kept(table: Table) -> None:
    """It was published, and replaced since: the newest snapshot does not name its files any more."""
    staged = table.staged(ids_of(0))
    then = table.commit([staged], token(0)).snapshot_id
    table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE)
    committer = table.committer()
    committer.discard([staged])
    committer.close()
    with goes_well(
        "a result is discarded that was published and replaced since, and the snapshot that needs it is read"
    ):
        old = table.read(snapshot_id=then)["id"].to_pylist()
    expect(sorted(old), ids_of(0), "rows of a snapshot before an overwrite, after its result was discarded")


@pytest.mark.parametrize("deleted", ["aborted", "discarded"])
def test_rows_that_were_deleted_are_not_published(table: Table, deleted: str) -> None:
    """The message of a task may come after the task was given up. A commit without its rows would end their epoch."""
    writer = table.factory.create_writer(WriterInitContext(attempt=new_attempt_id()))
    writer.write(batch(ids_of(0)))
    result = writer.complete()
    committer = table.committer()
    if deleted == "aborted":
        writer.abort()
    else:
        committer.discard([result])
    with refused((LaketierError, CommitError), f"a result is published of which all was {deleted}"):
        committer.publish(committer.open(), [result], Watermark(token(0), "c"))
    committer.close()
    expect(table.watermark(), None, f"the watermark after a result was published of which all was {deleted}")
    expect(table.append(0).outcome, RoundOutcome.PUBLISHED, "the outcome of the epoch, run again")
    expect(table.ids, ids_of(0), "rows of the epoch, run again")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_table_that_is_gone(table: Table) -> None:
    """A round that lost its table cleans up, and what it raises is why it ended, and no error of the discard."""
    table.append(0)
    staged = table.staged(ids_of(1))
    committer = table.committer()
    table.lake.storage.catalog().drop_table(table.path)
    with goes_well("a round discards what it staged, and its table was dropped: a discard logs what it can't do"):
        committer.discard([staged])
    committer.close()
    again = table.lake.create()
    again.append(0)
    expect(again.ids, ids_of(0), "rows of the next table of this name, after a discard for the dropped one")


def test_attempts_of_the_same_task_never_clash(table: Table) -> None:
    """Speculation: two attempts of one split and epoch. One wins; deleting the other does not touch it."""
    factory = table.factory
    attempts = [factory.create_writer(WriterInitContext(attempt=new_attempt_id(), split_index=0)) for _ in range(2)]
    for writer in attempts:
        writer.write(batch(ids_of(0)))
    won, lost = [writer.complete() for writer in attempts]
    assert not {file.path for file in won.files} & {file.path for file in lost.files}, (
        f"two attempts of one task share no file: found {[file.path for file in won.files + lost.files]}"
    )
    table.commit([won], token(0))
    committer = table.committer()
    committer.discard([lost])
    committer.close()
    expect(table.ids, ids_of(0), "rows of the attempt that won, after the one that lost was discarded")


def test_an_attempt_that_aborts_beside_one_that_goes_on(table: Table) -> None:
    """A process runs several attempts at once: of one task, as one of them is taken for slow, and of tasks of the same
    number, of two streams. Forked ones have the same random numbers. Each has its own rows."""
    factory, kept = table.factory, random.getstate()
    writers = []
    for _ in range(3):
        random.seed(7)
        writers.append(factory.create_writer(WriterInitContext(attempt=new_attempt_id(), split_index=0)))
    random.setstate(kept)
    going, stopping, other = writers
    for ids in (ids_of(0, 0), ids_of(0, 1)):
        for writer, of in ((going, 0), (stopping, 0), (other, 1)):
            writer.write(batch([i + 10_000 * of for i in ids]))
    with goes_well("three attempts write side by side in one process, and one of them aborts"):
        results = [other.complete()]
        stopping.abort()
        results.append(going.complete())
        table.commit(results, token(0))
    wanted = sorted(i + 10_000 * of for of in (0, 1) for split in (0, 1) for i in ids_of(0, split))
    expect(table.ids, wanted, "rows of an attempt beside which another one aborted, and of one of another stream")


def test_a_refused_round_leaves_no_files(table: Table) -> None:
    table.append(0)
    table.append(1)
    before = table.lake.files()
    staged = table.staged(ids_of(2))
    with refused(Gap, "an epoch that skips others is committed"):
        table.commit([staged], token(7))
    expect(table.lake.files(), before, "files after a round was refused")
    expect(table.append(2).outcome, RoundOutcome.PUBLISHED, "the outcome of the next round after one was refused")
