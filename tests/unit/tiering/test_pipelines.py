"""The ways out of a refusal, each followed by the round that it lets through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from laketier.spi import (
    COLLECTOR,
    CommitterInitContext,
    ConfigError,
    Conflict,
    CorruptTable,
    Gap,
    LakeCommitResult,
    LakeCommitter,
    NotBegun,
    PluginBroken,
    RolledBack,
    SourceRange,
    StorageError,
    Token,
    TokenMismatch,
    UnknownOutcome,
    Watermark,
    WatermarkLost,
    WriteResult,
    host_time,
)
from laketier.tiering import RetryPolicy, RoundOutcome, TieringRound, pipelines
from laketier.tiering.renaming import Renaming, close_old_name, keep_new_name, open_new_name, renaming
from memory_lake import MemoryCommitter, MemoryFactory, MemoryTable


@pytest.fixture
def table() -> MemoryTable:
    return MemoryTable()


def publish(table: MemoryTable, epoch: int, *rows: int, run: str = "run-1") -> RoundOutcome:
    token = Token("p", run, epoch)
    return (
        TieringRound(MemoryFactory(table), token=token).commit([table.stage(*rows, attempt=f"{run}-{epoch}")]).outcome
    )


def test_show_tells_unknown_from_known(table: MemoryTable) -> None:
    assert pipelines.show(table.state, "p") is None
    publish(table, 0, 1, 2)
    watermark = pipelines.show(table.state, "p")
    assert watermark is not None
    assert (watermark.token.epoch, watermark.rows) == (0, 2)


def test_known_lists_the_pipelines_by_name(table: MemoryTable) -> None:
    for pipeline in ("z", "a", COLLECTOR, "m"):
        table.watermarks[pipeline] = Watermark(Token(pipeline, "r", 0, content="5"), "c")
    found = pipelines.known(table.state)
    assert found is not None
    assert [(each.pipeline, each.lost) for each in found] == [("a", None), ("m", None), ("z", None)]
    assert [each.watermark for each in found] == [table.watermarks[name] for name in ("a", "m", "z")]


def test_known_tells_what_a_rollback_took_and_leaves_out_what_has_no_watermark(table: MemoryTable) -> None:
    for pipeline in ("a", "b", "c"):
        table.watermarks[pipeline] = Watermark(Token(pipeline, "r", 0), "c")
    state, lost = table.state, RolledBack("restored")
    state.watermarks["b"] = None  # type: ignore[assignment]
    table.looks = [lost]
    found = pipelines.known(state)
    assert found is not None
    assert [(each.pipeline, each.watermark is None, each.lost) for each in found] == [
        ("a", True, lost),
        ("c", False, None),
    ]


def test_known_is_none_where_pipelines_can_not_be_listed(table: MemoryTable) -> None:
    publish(table, 0, 1)
    table.lists = False
    assert pipelines.known(table.state) is None


@pytest.mark.parametrize(("error", "told"), [(OSError("expired"), StorageError), (CorruptTable("no"), CorruptTable)])
def test_a_watermark_that_can_not_be_read_is_not_taken_for_none(
    table: MemoryTable, error: Exception, told: type[Exception]
) -> None:
    publish(table, 0, 1)
    state = table.state
    asked = (
        lambda: pipelines.show(state, "p"),
        lambda: pipelines.known(state),
        lambda: pipelines.adopt(MemoryFactory(table), "p", run="r", epoch=1),
    )
    for each in asked:
        table.looks = [error]
        with pytest.raises(told):
            each()
    assert table.version == 1


def test_a_table_that_can_not_be_opened_is_no_unknown_outcome(table: MemoryTable) -> None:
    table.opens = [OSError("disk gone")]
    with pytest.raises(StorageError, match="disk gone"):
        pipelines.adopt(MemoryFactory(table), "p", run="r", epoch=1)
    assert table.calls == ["open", "close"]


def test_adopt_needs_no_watermark(table: MemoryTable) -> None:
    before = host_time()
    watermark = pipelines.adopt(MemoryFactory(table), "p", run="r", epoch=3)
    assert watermark.token == Token("p", "r", 3, fence=0)
    assert before <= watermark.committed_at <= host_time()
    table.looks = [RolledBack("restored")]
    assert pipelines.adopt(MemoryFactory(table), "p", run="r", epoch=9).token == Token("p", "r", 9, fence=0)
    assert table.calls.count("close") == 2


def test_adopt_lets_a_new_checkpoint_continue(table: MemoryTable) -> None:
    publish(table, 0, 1)
    with pytest.raises(TokenMismatch):
        publish(table, 1, 2, run="run-2")
    pipelines.adopt(MemoryFactory(table), "p", run="run-2", epoch=0)
    assert publish(table, 1, 2, run="run-2") is RoundOutcome.PUBLISHED
    assert table.rows == [1, 2]


def test_adopt_accepts_a_gap(table: MemoryTable) -> None:
    publish(table, 0, 1)
    with pytest.raises(Gap):
        publish(table, 5, 6)
    pipelines.adopt(MemoryFactory(table), "p", run="run-1", epoch=4)
    assert publish(table, 5, 6) is RoundOutcome.PUBLISHED


def test_adopt_keeps_the_fence(table: MemoryTable) -> None:
    fenced = Token("p", "run-1", 0, fence=7)
    TieringRound(MemoryFactory(table), token=fenced).commit([])
    watermark = pipelines.adopt(MemoryFactory(table), "p", run="run-2", epoch=3)
    assert watermark.token.fence == 7


def test_rewind_lets_later_epochs_be_written_again(table: MemoryTable) -> None:
    for epoch in range(3):
        publish(table, epoch, epoch)
    pipelines.rewind(MemoryFactory(table), "p", epoch=0)
    assert publish(table, 1, 10) is RoundOutcome.PUBLISHED


def test_rewind_forgets_which_input_the_epoch_had(table: MemoryTable) -> None:
    """The epochs after it are written again, maybe from other offsets."""
    token = Token("p", "run-1", 4, fence=2, content="x", source=SourceRange("0", "5"))
    table.watermarks["p"] = Watermark(token, "c")
    assert pipelines.rewind(MemoryFactory(table), "p", epoch=1).token == Token("p", "run-1", 1, fence=2)


@pytest.mark.parametrize("epoch", [2, 3])
def test_rewind_goes_back_only(table: MemoryTable, epoch: int) -> None:
    for number in range(3):
        publish(table, number, number)
    with pytest.raises(ConfigError, match="can't go back"):
        pipelines.rewind(MemoryFactory(table), "p", epoch=epoch)


def test_forget_makes_the_pipeline_new(table: MemoryTable) -> None:
    publish(table, 0, 1)
    publish(table, 1, 2)
    pipelines.forget(MemoryFactory(table), "p")
    with pytest.raises(WatermarkLost):
        publish(table, 2, 3)
    assert publish(table, 0, 4, run="run-9") is RoundOutcome.PUBLISHED


def test_forget_after_a_rollback_is_of_the_same_pipeline(table: MemoryTable) -> None:
    """What was lost says nothing of its run, its fence or its epochs, and the others stay as they are."""
    table.watermarks["q"] = other = Watermark(Token("q", "r", 7), "c")
    table.looks = [RolledBack("restored")]
    pipelines.forget(MemoryFactory(table), "p")
    assert table.watermarks.keys() == {"p", "q"}
    assert table.watermarks["q"] == other
    forgotten = table.watermarks["p"]
    assert (forgotten.token.pipeline, forgotten.token.epoch, forgotten.token.fence) == ("p", 0, 0)
    assert forgotten.forgotten
    with pytest.raises(WatermarkLost):
        publish(table, 1, 2)
    assert publish(table, 0, 1, run="any") is RoundOutcome.PUBLISHED


@pytest.mark.parametrize("change", ["rewind", "forget"])
def test_what_is_not_known_can_not_be_changed(table: MemoryTable, change: str) -> None:
    factory = MemoryFactory(table)
    with pytest.raises(WatermarkLost, match="does not know pipeline"):
        pipelines.rewind(factory, "p", epoch=0) if change == "rewind" else pipelines.forget(factory, "p")
    publish(table, 0, 1)
    publish(table, 1, 2)
    pipelines.forget(factory, "p")
    version = table.version
    with pytest.raises(WatermarkLost, match="does not know pipeline"):
        pipelines.rewind(factory, "p", epoch=0) if change == "rewind" else pipelines.forget(factory, "p")
    assert table.version == version


def test_a_lost_answer_is_found_and_set_once(table: MemoryTable) -> None:
    publish(table, 0, 1)
    table.after.append(TimeoutError("answer lost"))
    pipelines.adopt(MemoryFactory(table), "p", run="run-2", epoch=5)
    assert table.watermarks["p"].token.epoch == 5
    assert len(table.commits) == 2


class _Then(list[BaseException | None]):
    """What an attempt raises after its effect, and what somebody does before the next one."""

    def __init__(self, error: BaseException, act: Callable[[], None]) -> None:
        super().__init__([error])
        self._act = act

    def pop(self, index: Any = -1) -> BaseException | None:
        error = super().pop(index)
        self._act()
        return error


CHANGES: dict[str, Callable[[MemoryFactory], Any]] = {
    "adopt": lambda factory: pipelines.adopt(factory, "p", run="run-1", epoch=0),
    "rewind": lambda factory: pipelines.rewind(factory, "p", epoch=0),
    "forget": lambda factory: pipelines.forget(factory, "p"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_lost", [True, False], ids=["answer", "attempt"])
def test_a_pipeline_that_goes_on_meanwhile_is_left_as_it_is(table: MemoryTable, change: str, is_lost: bool) -> None:
    """One was forgotten, by a commit whose answer was lost, and began anew. The loop forgot it once more, so that its
    next round read the same rows again."""
    publish(table, 0, 1)
    publish(table, 1, 2)

    def goes_on() -> None:
        known = table.watermarks["p"]
        token = Token("p", "run-1", 0 if known.forgotten else known.token.epoch + 1)
        TieringRound(MemoryFactory(table), token=token).commit([table.stage(3, attempt="meanwhile")])

    if is_lost:
        table.after = _Then(TimeoutError("answer lost"), goes_on)
    else:
        table.rivals.append(goes_on)
    with pytest.raises(UnknownOutcome if is_lost else Conflict, match="'p' went on while its watermark was changed"):
        CHANGES[change](MemoryFactory(table))
    last = table.watermarks["p"]
    assert (last.forgotten, last.rows, len(table.commits)) == (False, 1, 4 if is_lost else 3)


@pytest.mark.parametrize(("change", "is_known"), [*((change, True) for change in CHANGES), ("adopt", False)])
def test_other_pipelines_may_go_on_meanwhile(table: MemoryTable, change: str, is_known: bool) -> None:
    """Each of their commits is a conflict, and none is a reason to leave this pipeline as it is."""
    if is_known:
        publish(table, 0, 1)
        publish(table, 1, 2)

    def other() -> None:
        token = Token("other", "run-1", len([each for each in table.commits if each.startswith("other")]))
        table.watermarks["other"] = Watermark(token, f"other {token.epoch}")
        table.commits.append(f"other {token.epoch}")
        table.version += 1

    table.rivals.extend([other, other, None])
    CHANGES[change](MemoryFactory(table))
    assert table.watermarks["other"].token.epoch == 1
    last = table.watermarks["p"]
    assert (last.token.epoch, last.forgotten) == (1 if change == "forget" else 0, change == "forget")


def test_what_the_old_name_publishes_before_it_is_closed_is_taken_over(table: MemoryTable) -> None:
    publish(table, 0, 1)
    table.rivals.append(lambda: publish(table, 1, 2))
    close_old_name(MemoryFactory(table), "p", "q")
    with pytest.raises(TokenMismatch, match="'p' goes on as 'q' in this table"):
        publish(table, 2, 3)
    with pytest.raises(TokenMismatch, match="'p' goes on as 'q' in this table"):
        publish(table, 0, 4, run="begun anew")
    assert "q" not in table.watermarks
    open_new_name(MemoryFactory(table), "p", "q")
    assert (table.watermarks["q"].token.run, table.watermarks["q"].token.epoch) == ("run-1", 1)
    pipelines.forget(MemoryFactory(table), "p")
    assert publish(table, 0, 4, run="begun anew") is RoundOutcome.PUBLISHED, "who says so begins anew"


def test_no_round_of_a_name_that_is_kept_for_another_is_published(table: MemoryTable) -> None:
    """Not even the first one, in a lane or on a format where nobody lists the table's pipelines."""
    publish(table, 0, 1)
    keep_new_name(MemoryFactory(table), "p", "q")
    keep_new_name(MemoryFactory(table), "p", "q")
    publish(table, 1, 2)
    close_old_name(MemoryFactory(table), "p", "q")
    with pytest.raises(TokenMismatch, match="'q' goes on as 'p' in this table"):
        TieringRound(MemoryFactory(table), token=Token("q", "run-1", 0)).commit([table.stage(3, attempt="q")])
    open_new_name(MemoryFactory(table), "p", "q")
    keep_new_name(MemoryFactory(table), "p", "q")
    assert (table.watermarks["q"].token.epoch, table.watermarks["q"].forgotten) == (1, False)


def test_nothing_is_closed_where_the_format_keeps_a_part_of_a_watermark(table: MemoryTable) -> None:
    """A closed name would be a forgotten one there, and begin anew."""
    publish(table, 0, 1)

    class Partial(MemoryCommitter):
        def land(self, results: Sequence[WriteResult], watermark: Watermark | None) -> LakeCommitResult:
            assert watermark is not None
            return super().land(results, replace(watermark, renamed_to=None))

    class PartialFactory(MemoryFactory):
        def create_committer(self, context: CommitterInitContext) -> LakeCommitter[WriteResult]:
            return Partial(self.table, context)

    with pytest.raises(PluginBroken, match="without its `renamed_to`"):
        keep_new_name(PartialFactory(table), "p", "q")
    assert publish(table, 1, 2) is RoundOutcome.PUBLISHED


@pytest.mark.parametrize("step", [close_old_name, open_new_name])
def test_a_renaming_whose_answer_was_lost_is_found(table: MemoryTable, step: Callable[..., None]) -> None:
    publish(table, 0, 1)
    steps = [close_old_name, open_new_name]
    for each in steps[: steps.index(step)]:
        each(MemoryFactory(table), "p", "q")

    def goes_on() -> None:
        if step is open_new_name:
            TieringRound(MemoryFactory(table), token=Token("q", "run-1", 1)).commit([table.stage(2, attempt="q")])

    table.after = _Then(TimeoutError("answer lost"), goes_on)
    for each in steps[steps.index(step) :]:
        each(MemoryFactory(table), "p", "q")
    assert table.watermarks["q"].token.epoch == (1 if step is open_new_name else 0)
    assert renaming(table.state, "p", "q") is Renaming.DONE


def test_the_new_name_goes_on_under_the_lease_and_with_the_input_of_the_old(table: MemoryTable) -> None:
    table.watermarks["p"] = Watermark(Token("p", "r", 4, 7, "x", SourceRange("3", "5", "stamp")), "c")
    close_old_name(MemoryFactory(table), "p", "q")
    assert table.watermarks["p"].token.source == SourceRange("3", "5", "stamp")
    open_new_name(MemoryFactory(table), "p", "q")
    assert table.watermarks["q"].token == Token("q", "r", 4, 7, "x", SourceRange("3", "5", "stamp"))
    assert Watermark.from_json(table.watermarks["p"].to_json()) == table.watermarks["p"]


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (Watermark(Token("q", "r", 1), "c"), "knows the pipeline 'q' already, at epoch 1"),
        (
            Watermark(Token("q", "r", 1), "c", forgotten=True),
            "knows the pipeline 'q' already, as one that was forgotten",
        ),
        (Watermark(Token("q", "r", 1), "c", forgotten=True, renamed_to="z"), "as one that goes on as 'z'"),
        (Watermark(Token("q", "r", 9), "c", forgotten=True, renamed_to="p"), "as one that goes on as 'p'"),
    ],
)
def test_a_name_with_a_history_of_its_own_is_not_given(table: MemoryTable, there: Watermark, told: str) -> None:
    table.watermarks |= {"p": Watermark(Token("p", "r", 4), "c"), "q": there}
    with pytest.raises(TokenMismatch, match=told):
        close_old_name(MemoryFactory(table), "p", "q")
    assert table.watermarks["p"].renamed_to is None


@pytest.mark.parametrize(
    "there",
    [
        Watermark(Token("q", "other", 9), "c"),
        Watermark(Token("q", "r", 3), "c"),
        Watermark(Token("q", "r", 9), "c", forgotten=True),
        Watermark(Token("q", "r", 9), "c", forgotten=True, renamed_to="p"),
        Watermark(Token("q", "other", 3), "c", forgotten=True, renamed_to="p"),
        Watermark(Token("q", "r", 3), "c", forgotten=True, renamed_to="z"),
    ],
)
def test_a_renaming_is_not_done_again_over_what_came_since(table: MemoryTable, there: Watermark) -> None:
    table.watermarks |= {"p": Watermark(Token("p", "r", 4), "c", forgotten=True, renamed_to="q"), "q": there}
    with pytest.raises(TokenMismatch, match="was renamed to 'q' before, which has another history by now"):
        open_new_name(MemoryFactory(table), "p", "q")
    assert table.watermarks["q"] == there


STEPS = (keep_new_name, close_old_name, open_new_name)


def _renamed(table: MemoryTable, steps: int) -> MemoryTable:
    """How far a renaming of p to q has come: 3 is done."""
    publish(table, 0, 1)
    publish(table, 1, 2)
    for step in STEPS[:steps]:
        step(MemoryFactory(table), "p", "q")
    return table


def _writers(table: MemoryTable) -> str:
    """The names whose next round of the run would be published."""
    found = ""
    for name in "pqx":
        try:
            TieringRound(MemoryFactory(table), token=Token(name, "run-1", 2))
        except (TokenMismatch, WatermarkLost):
            continue
        last = table.watermarks.get(name)
        found += name if last is not None and not last.forgotten else ""
    return found


@pytest.mark.parametrize(("steps", "shut"), [(1, "q"), (2, "p"), (2, "q"), (3, "p")])
@pytest.mark.parametrize("change", ["adopt", "rewind"])
def test_a_name_that_goes_on_as_another_is_not_opened_beside_it(
    table: MemoryTable, steps: int, shut: str, change: str
) -> None:
    """Both went on where the pipeline was, and each row after it was there twice."""
    _renamed(table, steps)
    before, factory = dict(table.watermarks), MemoryFactory(table)
    changes = {
        "adopt": lambda: pipelines.adopt(factory, shut, run="run-1", epoch=1),
        "rewind": lambda: pipelines.rewind(factory, shut, epoch=0),
    }
    with pytest.raises(TokenMismatch, match=rf"'{shut}' goes on as .*rename -p . --to {shut}.*forget -p {shut}"):
        changes[change]()
    assert table.watermarks == before


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize(
    ("old", "new"), [("p", "q"), ("q", "p"), ("p", "x"), ("x", "p"), ("q", "x"), ("x", "q"), ("p", "p")]
)
def test_whatever_is_renamed_after_a_renaming_one_name_writes(
    table: MemoryTable, steps: int, old: str, new: str
) -> None:
    _renamed(table, steps)
    told = True
    try:
        for step in STEPS:
            step(MemoryFactory(table), old, new)
    except (ConfigError, TokenMismatch, WatermarkLost):
        told = False
    there = {name: table.watermarks[name] for name in _writers(table)}
    if told:
        assert there.keys() == {new}, "what is told to be done is"
    else:
        assert len(there) == (0 if steps == 2 else 1)
    assert all((each.token.run, each.token.epoch) == ("run-1", 1) for each in there.values())


def test_a_renaming_that_was_taken_back_opens_nothing_more(table: MemoryTable) -> None:
    """Both commands may be under way at once; the names were open both, in the same place."""
    _renamed(table, 2)
    for step in STEPS:
        step(MemoryFactory(table), "q", "p")
    with pytest.raises(TokenMismatch, match="'p' was opened again while it was renamed to 'q'"):
        open_new_name(MemoryFactory(table), "p", "q")
    assert (_writers(table), renaming(table.state, "q", "p")) == ("p", Renaming.DONE)


def test_other_pipelines_of_a_run_are_named(table: MemoryTable) -> None:
    _renamed(table, 3)
    table.watermarks["z"] = Watermark(Token("z", "another", 3), "c")
    assert pipelines.of_the_run(table.state, "p", "run-1") == ("q",)
    pipelines.forget(MemoryFactory(table), "q")
    assert pipelines.of_the_run(table.state, "p", "run-1") == ()


@pytest.mark.parametrize(("old", "new"), [("p", "p"), ("p", COLLECTOR), (COLLECTOR, "q")])
def test_names_that_no_pipeline_can_get(table: MemoryTable, old: str, new: str) -> None:
    table.watermarks |= {name: Watermark(Token(name, "r", 4), "c") for name in ("p", COLLECTOR)}
    with pytest.raises(ConfigError):
        close_old_name(MemoryFactory(table), old, new)


QUICK = RetryPolicy(conflicts=30, unknowns=3, first_wait_seconds=0.0, longest_wait_seconds=0.0)


def set_to(table: MemoryTable, epoch: int) -> Watermark:
    return pipelines.set_watermark(MemoryFactory(table), "p", lambda _: Token("p", "r", epoch), policy=QUICK)


def test_conflicts_are_tried_again_and_end(table: MemoryTable) -> None:
    table.before.extend([Conflict("lost")] * 29)
    assert set_to(table, 1).token.epoch == 1
    table.before.extend([Conflict("lost")] * 30)
    with pytest.raises(Conflict, match=r"was not set: of 30 attempts each lost.*because lost"):
        set_to(table, 2)
    assert table.watermarks["p"].token.epoch == 1


def test_what_is_unknown_to_the_end_is_told_so(table: MemoryTable) -> None:
    table.before.extend([Conflict("lost"), TimeoutError("no answer"), TimeoutError("no answer"), TimeoutError("no")])
    with pytest.raises(UnknownOutcome, match="could not be set in 4 attempts, because no"):
        set_to(table, 2)


def test_what_never_began_is_told_so(table: MemoryTable) -> None:
    table.before.extend([NotBegun("unreadable"), Conflict("lost"), NotBegun("unreadable"), NotBegun("unreadable")])
    with pytest.raises(NotBegun, match="was not set in 4 attempts, because unreadable"):
        set_to(table, 2)
    table.before.extend([NotBegun("unreadable"), TimeoutError("no answer"), NotBegun("unreadable")])
    with pytest.raises(UnknownOutcome, match="could not be set in 3 attempts"):
        set_to(table, 2)
    table.before.extend([NotBegun("unreadable"), NotBegun("unreadable")])
    assert set_to(table, 2).token.epoch == 2


def test_the_last_answer_may_be_the_one_that_got_lost(table: MemoryTable) -> None:
    table.before.extend([TimeoutError("no answer"), TimeoutError("no answer")])
    table.after.extend([TimeoutError("answer lost")])
    assert set_to(table, 2).token.epoch == 2
    assert len(table.commits) == 1
