"""The publish loop against a format in memory: conflicts, unknown outcomes, refusals, and what is deleted when."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from laketier.spi import (
    Collected,
    Conflict,
    Fenced,
    Gap,
    NotBegun,
    OutsideTable,
    Overtaken,
    RolledBack,
    StagedFileLost,
    Stale,
    StorageError,
    TableChanged,
    TableNotFound,
    Token,
    TokenMismatch,
    UnknownOutcome,
    Watermark,
    WatermarkLost,
    WriteMode,
    WriteResult,
    host_time,
)
from laketier.tiering import TieringRound
from laketier.tiering.checks import BaseSnapshot
from laketier.tiering.horizon import raise_horizon
from laketier.tiering.publish import RoundOutcome, RoundResult, publish
from laketier.tiering.retries import RetryPolicy
from memory_lake import MemoryFactory, MemoryTable, written_against

FAST = RetryPolicy(conflicts=5, unknowns=3, first_wait_seconds=0.0, longest_wait_seconds=0.0)
TIMEOUT = TimeoutError("no answer")


def run(table: MemoryTable, token: Token | None, *results: WriteResult, commit_id: str = "c1") -> RoundResult:
    return publish(table.committer(commit_id), results, token=token, commit_id=commit_id, policy=FAST)


def token(epoch: int = 0, **fields: object) -> Token:
    return Token(**{"pipeline": "p", "run": "r", "epoch": epoch, **fields})  # type: ignore[arg-type]


def count(table: MemoryTable, call: str) -> int:
    return table.calls.count(call)


def rival(table: MemoryTable, epoch: int, *rows: int, pipeline: str = "p", **fields: object) -> Callable[[], None]:
    """Another driver that publishes between our open and our publish."""

    def land() -> None:
        mark = Watermark(token(epoch, pipeline=pipeline, **fields), f"rival-{pipeline}-{epoch}", rows=len(rows))
        table.committer(mark.commit_id).land([table.stage(*rows, attempt="rival")], mark)

    return land


def test_a_round_is_published_with_its_watermark() -> None:
    table = MemoryTable()
    result = run(table, token(content="x"), table.stage(1, 2), table.stage(3))
    assert (result.outcome, result.rows, result.files, result.bytes) == (RoundOutcome.PUBLISHED, 3, 2, 24)
    assert result.snapshot_id == 1
    assert result.commit is not None
    assert table.rows == [1, 2, 3]
    mark = table.watermarks["p"]
    assert (mark.token, mark.commit_id, mark.rows, mark.snapshot_id) == (token(content="x"), "c1", 3, 1)
    assert mark.committed_at > 1_700_000_000_000
    assert table.calls == ["open", "publish"]


def test_a_replay_writes_nothing_and_deletes_what_it_staged() -> None:
    table = MemoryTable()
    run(table, token(), table.stage(1))
    again = table.stage(1, attempt="again")
    result = run(table, token(), again, commit_id="c2")
    assert (result.outcome, result.rows, result.files, result.snapshot_id) == (RoundOutcome.ALREADY_THERE, 1, 0, 1)
    assert result.bytes == 0
    assert table.rows == [1]
    assert table.discarded == [again.files[0].path]
    assert count(table, "publish") == 1


def test_an_empty_epoch_moves_the_watermark() -> None:
    table = MemoryTable()
    run(table, token(0), table.stage(1))
    result = run(table, token(1), commit_id="c2")
    assert (result.outcome, result.rows, table.version) == (RoundOutcome.PUBLISHED, 0, 2)
    assert table.watermarks["p"].token.epoch == 1


def test_conflicts_with_other_pipelines_only_cause_another_loop() -> None:
    table = MemoryTable()
    table.rivals = [rival(table, n, 10 + n, pipeline="other") for n in range(4)]
    result = run(table, token(), table.stage(1))
    assert (result.outcome, result.conflicts) == (RoundOutcome.PUBLISHED, 4)
    assert table.rows == [1, 10, 11, 12, 13]
    assert count(table, "open") == 5, "each attempt looks at the table afresh"
    assert not table.discarded


def test_endless_conflicts_end_in_conflict_and_leak_nothing(caplog: pytest.LogCaptureFixture) -> None:
    table = MemoryTable()
    table.rivals = [rival(table, n, 10 + n, pipeline="other") for n in range(5)]
    staged = table.stage(1)
    with pytest.raises(Conflict):
        run(table, token(), staged)
    assert count(table, "publish") == 5
    assert table.discarded == [staged.files[0].path]
    assert "although it ended in a conflict" not in caplog.text


def test_a_rival_that_publishes_the_same_epoch_wins() -> None:
    table = MemoryTable()
    table.rivals = [rival(table, 0, 1)]
    staged = table.stage(1)
    result = run(table, token(), staged)
    assert (result.outcome, result.conflicts) == (RoundOutcome.ALREADY_THERE, 1)
    assert table.rows == [1]
    assert table.discarded == [staged.files[0].path]


@pytest.mark.parametrize(
    ("rival_epochs", "asked", "refusal"),
    [
        ([(0, {"content": "x"})], token(0, content="y"), TokenMismatch),
        ([(0, {}), (1, {})], token(0), Stale),
        ([(0, {"fence": 2})], token(0, fence=1), Fenced),
        ([(0, {"run": "other"})], token(0), TokenMismatch),
    ],
)
def test_a_rival_may_refuse_us_between_open_and_publish(
    rival_epochs: list[tuple[int, dict[str, object]]], asked: Token, refusal: type[Exception]
) -> None:
    table = MemoryTable()
    rivals = [rival(table, epoch, 7 + epoch, **fields) for epoch, fields in rival_epochs]
    table.rivals = [lambda: [land() for land in rivals] and None]
    staged = table.stage(1)
    with pytest.raises(refusal):
        run(table, asked, staged)
    assert 1 not in table.rows
    assert table.discarded == [staged.files[0].path], "nothing of it can land any more"


@pytest.mark.parametrize(("asked", "refusal"), [(token(3), WatermarkLost), (token(0), Stale), (token(9), Gap)])
def test_a_refused_round_is_discarded(asked: Token, refusal: type[Exception]) -> None:
    table = MemoryTable()
    if refusal is not WatermarkLost:
        run(table, token(0))
        run(table, token(1), commit_id="c2")
    staged = table.stage(1)
    with pytest.raises(refusal):
        run(table, asked, staged, commit_id="c3")
    assert table.rows == []
    assert table.discarded == [staged.files[0].path]


def test_an_error_before_the_effect_is_tried_again() -> None:
    table = MemoryTable(before=[TIMEOUT, TIMEOUT])
    result = run(table, token(), table.stage(1))
    assert result.outcome is RoundOutcome.PUBLISHED
    assert table.rows == [1]
    assert not table.discarded


def test_an_error_after_the_effect_is_recovered() -> None:
    table = MemoryTable(after=[TIMEOUT])
    result = run(table, token(), table.stage(1, 2))
    assert (result.outcome, result.rows, result.files, result.snapshot_id) == (RoundOutcome.RECOVERED, 2, 1, 1)
    assert result.commit is None
    assert table.rows == [1, 2]
    assert count(table, "publish") == 1
    assert count(table, "discard") == 0


def test_the_last_allowed_attempt_may_also_have_landed() -> None:
    table = MemoryTable(before=[TIMEOUT, TIMEOUT], after=[TIMEOUT])
    result = run(table, token(), table.stage(1))
    assert result.outcome is RoundOutcome.RECOVERED
    assert table.rows == [1]


def test_an_outcome_that_stays_unknown_deletes_nothing() -> None:
    table = MemoryTable(before=[TIMEOUT] * 3)
    with pytest.raises(UnknownOutcome) as caught:
        run(table, token(), table.stage(1))
    assert caught.value.__cause__ is TIMEOUT
    assert "no answer" in str(caught.value)
    assert count(table, "discard") == 0


EARLY = NotBegun("the table could not be read")


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_a_step_before_the_effect_that_fails_to_the_end_is_certain(known: bool) -> None:
    table = MemoryTable(before=[EARLY] * 3)
    staged = table.stage(1)
    with pytest.raises(NotBegun) as caught:
        run(table, token() if known else None, staged)
    assert caught.value is EARLY
    assert count(table, "publish") == FAST.unknowns
    assert table.discarded == [staged.files[0].path]
    assert table.rows == []


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_a_step_before_the_effect_that_fails_once_is_tried_again(known: bool) -> None:
    table = MemoryTable(before=[EARLY])
    assert run(table, token() if known else None, table.stage(1)).outcome is RoundOutcome.PUBLISHED
    assert (table.rows, table.discarded) == ([1], [])


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
@pytest.mark.parametrize("errors", [[TIMEOUT, EARLY, EARLY], [EARLY, EARLY, TIMEOUT]])
def test_a_step_before_the_effect_does_not_make_an_unknown_attempt_certain(
    errors: list[Exception], known: bool
) -> None:
    table = MemoryTable(before=list(errors))
    with pytest.raises(UnknownOutcome, match="publishing failed 3 times") as caught:
        run(table, token() if known else None, table.stage(1))
    assert caught.value.__cause__ is errors[-1]
    assert (count(table, "publish"), count(table, "discard")) == (3, 0)


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_a_format_that_calls_its_effect_not_begun_doubles_nothing(known: bool) -> None:
    """Also when it was the last attempt."""
    table = MemoryTable(before=[EARLY, EARLY], after=[EARLY])
    result = run(table, token() if known else None, table.stage(1))
    assert result.outcome is RoundOutcome.RECOVERED
    assert (table.rows, table.discarded) == ([1], [])


@pytest.mark.parametrize("lands_late", [True, False])
def test_an_attempt_that_lands_after_the_second_look(lands_late: bool) -> None:
    """The first request hangs in a proxy. It lands after the table was read again, or never: compare-and-set
    settles which of the two attempts wins, and the rows are there once."""
    table = MemoryTable(before=[TIMEOUT])
    staged = table.stage(1)

    def late() -> None:
        table.committer().land([staged], Watermark(token(), "c1"))

    table.rivals = [late if lands_late else None]
    result = run(table, token(), staged)
    assert result.outcome is (RoundOutcome.RECOVERED if lands_late else RoundOutcome.PUBLISHED)
    assert table.rows == [1]
    assert not table.discarded


def test_a_table_that_can_not_be_read_after_an_unknown_outcome() -> None:
    table = MemoryTable(after=[TIMEOUT], opens=[None, OSError("disk gone")])
    with pytest.raises(UnknownOutcome, match="disk gone") as caught:
        run(table, token(), table.stage(1))
    assert isinstance(caught.value.__cause__, StorageError)
    assert count(table, "discard") == 0


def test_a_watermark_that_can_not_be_read_after_an_unknown_outcome() -> None:
    """The handle is there, but a format may read the watermark only when it is asked."""
    table = MemoryTable(after=[TIMEOUT], looks=[None, None, OSError("expired token")])
    with pytest.raises(UnknownOutcome, match="expired token"):
        run(table, token(), table.stage(1))
    assert count(table, "discard") == 0


def test_a_watermark_that_can_not_be_read_at_first() -> None:
    table = MemoryTable(looks=[OSError("expired token")])
    with pytest.raises(StorageError, match="expired token"):
        run(table, token(), table.stage(1))
    table.looks.append(OSError("expired token"))
    with pytest.raises(StorageError, match="expired token"):
        TieringRound(MemoryFactory(table), token=token()).begin()


def test_a_table_that_can_not_be_opened_at_first() -> None:
    table = MemoryTable(opens=[TableNotFound("no table")])
    with pytest.raises(TableNotFound):
        run(table, token(), table.stage(1))


def test_a_refusal_after_an_unknown_outcome_deletes_nothing() -> None:
    """Ours landed, the answer was lost, and another driver went on to the next epoch."""
    table = MemoryTable(after=[TIMEOUT])
    committer = table.committer()
    original = committer.land

    def land_and_be_overtaken(results: object, watermark: object) -> object:
        commit = original(results, watermark)  # type: ignore[arg-type]
        rival(table, 1, 2)()
        return commit

    committer.land = land_and_be_overtaken  # type: ignore[method-assign, assignment]
    with pytest.raises(Stale):
        publish(committer, [table.stage(1)], token=token(), commit_id="c1", policy=FAST)
    assert table.rows == [1, 2]
    assert count(table, "discard") == 0


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
@pytest.mark.parametrize("within", [True, False], ids=["by the format", "by a look"])
def test_a_refusal_is_none_while_a_put_may_land_late(known: bool, within: bool) -> None:
    """Whoever wrote the rows anew because they were refused would have them twice."""
    gone = StagedFileLost("a staged file is gone")
    table = MemoryTable(before=[TIMEOUT, gone]) if within else MemoryTable(before=[TIMEOUT], opens=[None, gone])
    with pytest.raises(UnknownOutcome, match="may still land, because StagedFileLost: a staged") as told:
        run(table, token() if known else None, table.stage(1))
    assert told.value.__cause__ is gone
    assert count(table, "discard") == 0


def test_a_store_that_gives_no_answer_again_leaves_a_refusal_unknown() -> None:
    """Its own error would tell nobody that a commit is under way."""
    refusal = RolledBack("the snapshot is gone")
    looks = [None, None, refusal, TIMEOUT]  # the pipeline and the horizon, and then the pipeline twice
    table = MemoryTable(before=[TIMEOUT], looks=looks)
    with pytest.raises(UnknownOutcome, match="may still land, because RolledBack") as told:
        run(table, token(), table.stage(1))
    assert told.value.__cause__ is refusal
    assert count(table, "discard") == 0


def test_a_refusal_is_one_once_the_pipeline_went_on() -> None:
    """Each publish is a compare-and-set, so a put that is late finds the table changed."""
    table = MemoryTable(before=[TIMEOUT])
    rivals = [rival(table, 0, 7), rival(table, 1, 8)]
    table.rivals = [lambda: [land() for land in rivals] and None]
    with pytest.raises(Stale):
        run(table, token(), table.stage(1))
    assert count(table, "discard") == 0


def test_a_rival_after_an_unknown_outcome_deletes_nothing() -> None:
    """Ours landed, the answer was lost, somebody restored the table to before it, and a rival published the epoch: the
    snapshot that was restored away still has our files."""
    table = MemoryTable(after=[TIMEOUT])
    committer = table.committer()
    original = committer.land

    def land_and_be_restored_away(results: object, watermark: object) -> object:
        commit = original(results, watermark)  # type: ignore[arg-type]
        table.files.clear()
        table.watermarks.clear()
        rival(table, 0, 1)()
        return commit

    committer.land = land_and_be_restored_away  # type: ignore[method-assign, assignment]
    result = publish(committer, [table.stage(1)], token=token(), commit_id="c1", policy=FAST)
    assert result.outcome is RoundOutcome.ALREADY_THERE
    assert table.rows == [1]
    assert count(table, "discard") == 0


def test_a_conflict_after_an_unknown_outcome_deletes_nothing() -> None:
    table = MemoryTable(before=[TIMEOUT])
    table.rivals = [rival(table, n, 10 + n, pipeline="other") for n in range(5)]
    with pytest.raises(Conflict):
        run(table, token(), table.stage(1))
    assert count(table, "discard") == 0


WRONG = Conflict("somebody was first: us, by a request that was sent twice")


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
@pytest.mark.parametrize("conflicts", [1, FAST.conflicts])
def test_a_conflict_after_the_effect_doubles_nothing(
    known: bool, conflicts: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Also when it was the last attempt: what landed is no loss, and its files are live."""
    table = MemoryTable(after=[WRONG])
    table.rivals = [rival(table, n, 10 + n, pipeline="other") for n in range(conflicts - 1)]
    result = run(table, token() if known else None, table.stage(1))
    assert (result.outcome, result.conflicts) == (RoundOutcome.RECOVERED, conflicts)
    assert table.rows.count(1) == 1
    assert not table.discarded
    assert ("although it was said not to" in caplog.text) == (not known), "who asks the history tells it"


@pytest.mark.parametrize(("rival_epochs", "refusal"), [([(1, {})], Stale), ([(1, {"fence": 2})], Fenced)])
def test_a_refusal_after_a_conflict_that_landed_deletes_nothing(
    rival_epochs: list[tuple[int, dict[str, object]]], refusal: type[Exception]
) -> None:
    """Another driver went on from our epoch before we looked: our files are live."""
    table = MemoryTable()
    committer = table.committer()
    original = committer.land

    def land_and_be_followed(results: object, watermark: object) -> object:
        original(results, watermark)  # type: ignore[arg-type]
        for epoch, fields in rival_epochs:
            rival(table, epoch, 7, **fields)()
        raise WRONG

    committer.land = land_and_be_followed  # type: ignore[method-assign, assignment]
    with pytest.raises(refusal):
        publish(committer, [table.stage(1)], token=token(), commit_id="c1", policy=FAST)
    assert table.rows == [1, 7]
    assert count(table, "discard") == 0


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_a_format_that_refuses_after_the_effect_doubles_nothing(known: bool) -> None:
    """Whoever ran a batch again because it was refused would have its rows twice."""
    table = MemoryTable(after=[OutsideTable("a folder is a link")])
    result = run(table, token() if known else None, table.stage(1))
    assert (result.outcome, table.rows) == (RoundOutcome.RECOVERED, [1])
    assert not table.discarded


def test_a_format_that_refuses_before_the_effect_is_believed() -> None:
    table = MemoryTable(before=[OutsideTable("a folder is a link")])
    with pytest.raises(OutsideTable):
        run(table, None, table.stage(1))
    assert (table.rows, table.discarded) == ([], [])


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_a_table_that_is_dropped_before_it_is_published_is_told_as_such(known: bool) -> None:
    """Its staged files went with it, so the format refuses, and there is no table of which anything were unknown."""
    gone = StagedFileLost("a staged file is gone")
    table = MemoryTable(before=[gone], opens=[None, TableNotFound("no table")])
    with pytest.raises(TableNotFound):
        run(table, token() if known else None, table.stage(1))
    late = MemoryTable(before=[TIMEOUT, gone], opens=[None, None, TableNotFound("no table")])
    with pytest.raises(UnknownOutcome, match="no table"):
        run(late, token() if known else None, late.stage(1))
    assert (count(table, "discard"), count(late, "discard")) == (0, 0)


def test_a_history_that_is_too_short_does_not_turn_a_conflict_into_an_unknown_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The format said that nothing landed. Only the deletion waits for somebody who knows."""

    def too_short(state: object, commit_id: str) -> bool:
        raise UnknownOutcome("older snapshots have expired")

    monkeypatch.setattr("memory_lake.MemoryState.landed", too_short)
    table = MemoryTable()
    table.rivals = [rival(table, 0, 10, pipeline="other")]
    assert run(table, None, table.stage(1)).outcome is RoundOutcome.PUBLISHED
    table.rivals = [rival(table, n, 10 + n, pipeline="other") for n in range(1, 6)]
    with pytest.raises(Conflict):
        run(table, None, table.stage(2, attempt="second"), commit_id="c2")
    assert count(table, "discard") == 0


def test_a_history_that_can_not_be_read_after_a_conflict_is_no_word_that_nothing_landed() -> None:
    table = MemoryTable(after=[WRONG], histories=[OSError("expired token")])
    with pytest.raises(StorageError, match="expired token"):
        run(table, None, table.stage(1))
    assert (table.rows, table.discarded) == ([1], [])


def test_a_history_that_is_too_short_leaves_a_batch_unknown() -> None:
    """As the format tells it: nobody else knows more."""
    short = UnknownOutcome("older snapshots have expired")
    table = MemoryTable(after=[TIMEOUT], histories=[short])
    with pytest.raises(UnknownOutcome) as caught:
        run(table, None, table.stage(1))
    assert caught.value is short
    assert count(table, "discard") == 0


def test_a_first_look_asks_for_no_history() -> None:
    """Reading it costs as many requests as there are commits, and nothing of this round can be in it."""
    table = MemoryTable(histories=[OSError("not to be asked")])
    assert run(table, None, table.stage(1)).outcome is RoundOutcome.PUBLISHED
    staged = table.stage(2)
    with pytest.raises(TableChanged):
        run(table, token(), written_against(staged, table_uuid="uuid-0"), commit_id="c2")
    assert table.discarded == [staged.files[0].path]
    assert len(table.histories) == 1


@pytest.mark.parametrize("history", [OSError("expired token"), UnknownOutcome("older snapshots have expired")])
def test_a_refusal_after_a_conflict_deletes_nothing_where_the_history_can_not_be_read(history: Exception) -> None:
    table = MemoryTable(histories=[history])
    rivals = [rival(table, 0, 7), rival(table, 1, 8)]
    table.rivals = [lambda: [land() for land in rivals] and None]
    with pytest.raises(Stale):
        run(table, token(), table.stage(1))
    assert count(table, "discard") == 0


@pytest.mark.parametrize("conflict", [True, False])
def test_a_table_that_is_refused_when_it_is_opened(conflict: bool) -> None:
    """Without an attempt before, nothing can have landed."""
    table = MemoryTable(opens=[*([None] if conflict else []), TableChanged("made anew")])
    table.rivals = [rival(table, 0, 7, pipeline="other")]
    with pytest.raises(TableChanged):
        run(table, token(), table.stage(1))
    assert count(table, "discard") == (0 if conflict else 1)


@pytest.mark.parametrize("known", [True, False], ids=["pipeline", "batch"])
def test_what_landed_is_recovered_whatever_became_of_the_table_since(known: bool) -> None:
    """The checks are for what is still to be published."""
    table = MemoryTable(after=[TIMEOUT])
    committer = table.committer()
    original = committer.land

    def land_and_be_altered(results: object, watermark: object) -> object:
        commit = original(results, watermark)  # type: ignore[arg-type]
        table.spec_id += 1
        return commit

    committer.land = land_and_be_altered  # type: ignore[method-assign, assignment]
    result = publish(committer, [table.stage(1)], token=token() if known else None, commit_id="c1", policy=FAST)
    assert (result.outcome, table.rows) == (RoundOutcome.RECOVERED, [1])


def test_of_several_reasons_to_refuse_the_one_that_asks_for_most_is_told() -> None:
    """A round with a base that is gone merges again. In a table that was made anew there is nothing to merge with."""
    table = MemoryTable()
    raise_horizon(MemoryFactory(table), table.uuid, host_time())
    staged, base = table.stage(1, attempt="0" * 32), BaseSnapshot(None)
    elsewhere = written_against(staged, table_uuid="uuid-0")
    for results, refusal in (([elsewhere], TableChanged), ([staged], Overtaken)):
        with pytest.raises(refusal):
            publish(table.committer(), results, token=token(), commit_id="c1", policy=FAST, base=base)
    with pytest.raises(Collected):
        publish(
            table.committer(), [staged], token=token(), commit_id="c1", policy=FAST, base=BaseSnapshot(table.version)
        )


def test_a_path_that_leads_out_of_the_table_is_refused_before_anything_is_published() -> None:
    table = MemoryTable()
    staged = table.stage(1)
    outside = written_against(staged, files=(replace(staged.files[0], path="../other/file"),))
    with pytest.raises(OutsideTable, match="result of attempt a"):
        run(table, token(), outside)
    assert count(table, "publish") == 0


def test_nothing_is_deleted_where_nothing_was_staged() -> None:
    table = MemoryTable()
    run(table, token())
    run(table, token(), type(table.stage(1)).of(table.info, "a", ()), commit_id="c2")
    assert count(table, "discard") == 0


def test_waits_are_as_long_as_the_policy_says() -> None:
    waits: list[float] = []
    failures = iter([TIMEOUT] * 200)

    def fail_often() -> str:
        for failure in failures:
            raise failure
        return "done"

    policy = RetryPolicy(first_wait_seconds=0.001, longest_wait_seconds=0.004)
    assert policy.retrying(TimeoutError).copy(sleep=waits.append)(fail_often) == "done"
    assert len(waits) == 200
    assert max(waits[2:]) > 0.002
    assert max(waits) <= 0.004
    for _ in range(50):
        failures, waits = iter([TIMEOUT]), []
        policy.retrying(TimeoutError).copy(sleep=waits.append)(fail_often)
        assert waits[0] <= 0.001, "the first wait is the shortest"


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(1)])
def test_an_interrupt_is_passed_on_and_deletes_nothing(stop: BaseException) -> None:
    table = MemoryTable(after=[stop])
    with pytest.raises(type(stop)):
        run(table, token(), table.stage(1))
    assert count(table, "discard") == 0
    assert table.rows == [1]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"table_uuid": "uuid-0"}, "recreated"),
        ({"schema_fingerprint": "0" * 16}, "schema changed"),
        ({"spec_id": 3}, "partitioning changed"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_files_for_another_table_are_refused(other: dict[str, object], says: str, known: bool) -> None:
    table = MemoryTable()
    staged = written_against(table.stage(1), **other)
    with pytest.raises(TableChanged, match=says):
        run(table, token() if known else None, table.stage(2), staged)
    assert count(table, "publish") == 0
    assert len(table.discarded) == 2


def test_the_table_is_checked_again_after_each_reload() -> None:
    table = MemoryTable()

    def recreate() -> None:
        table.uuid, table.version = "uuid-2", table.version + 1

    table.rivals = [recreate]
    with pytest.raises(TableChanged):
        run(table, token(), table.stage(1))
    assert table.rows == []


def test_a_batch_without_a_pipeline_leaves_no_watermark() -> None:
    table = MemoryTable()
    assert run(table, None, table.stage(1)).outcome is RoundOutcome.PUBLISHED
    assert run(table, None, table.stage(1), commit_id="c2").outcome is RoundOutcome.PUBLISHED
    assert table.rows == [1, 1]
    assert not table.watermarks


def test_a_batch_is_recovered_by_its_commit_id() -> None:
    table = MemoryTable(after=[TIMEOUT])
    assert run(table, None, table.stage(1)).outcome is RoundOutcome.RECOVERED
    assert table.rows == [1]
    assert count(table, "publish") == 1


def test_a_batch_that_did_not_land_is_tried_again() -> None:
    table = MemoryTable(before=[TIMEOUT])
    assert run(table, None, table.stage(1)).outcome is RoundOutcome.PUBLISHED
    assert table.rows == [1]


def test_an_overwrite_keeps_the_watermarks_of_others() -> None:
    table = MemoryTable()
    run(table, token(pipeline="other"), table.stage(1, 2))
    publish(table.committer("c2", WriteMode.OVERWRITE), [table.stage(9)], token=token(), commit_id="c2", policy=FAST)
    assert table.rows == [9]
    assert set(table.watermarks) == {"p", "other"}


def test_a_forgotten_pipeline_starts_again() -> None:
    table = MemoryTable()
    run(table, token(0), table.stage(1))
    table.watermarks["p"] = replace(table.watermarks["p"], forgotten=True)
    assert run(table, token(0, run="new"), table.stage(2), commit_id="c2").outcome is RoundOutcome.PUBLISHED


def test_a_failing_discard_is_logged_and_not_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = MemoryTable()
    run(table, token(), table.stage(1))
    committer = table.committer("c2")
    monkeypatch.setattr(committer, "discard", lambda results: 1 / 0)
    with caplog.at_level(logging.WARNING):
        result = publish(committer, [table.stage(1)], token=token(), commit_id="c2", policy=FAST)
    assert result.outcome is RoundOutcome.ALREADY_THERE
    assert "orphan collection" in caplog.text
