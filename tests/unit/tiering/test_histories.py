"""Random histories of failing drivers: whatever happens, visible rows = rows of the epochs in the table, once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from laketier.spi import LaketierError, Token, Watermark
from laketier.tiering.publish import publish
from laketier.tiering.retries import RetryPolicy
from memory_lake import MemoryTable

FAST = RetryPolicy(conflicts=3, unknowns=2, first_wait_seconds=0.0, longest_wait_seconds=0.0)

FAULTS = st.lists(st.sampled_from([None, TimeoutError("t")]), max_size=3)
STEP = st.tuples(
    st.integers(0, 3),  # the epoch that a driver tries
    FAULTS,
    FAULTS,
    st.lists(st.sampled_from(["nobody", "other pipeline", "same epoch", "late landing"]), max_size=3),
)


def timed_out(table: MemoryTable) -> bool:
    """Whether a request of this round hangs somewhere: only such a one can land late."""
    return bool(table.calls.count("timeout"))


@settings(max_examples=300, deadline=None)
@given(st.lists(STEP, max_size=8))
def test_no_history_loses_or_doubles_rows(steps: list[tuple[int, list[object], list[object], list[str]]]) -> None:
    table = MemoryTable()
    acknowledged: set[int] = set()
    others = 0
    for number, (epoch, before, after, rivals) in enumerate(steps):
        token = Token("p", "r", epoch)
        commit_id = f"c{number}"
        rows = [epoch * 10, epoch * 10 + 1]
        staged = table.stage(*rows, attempt=f"a{number}")
        table.calls.clear()
        table.before, table.after = list(before), list(after)  # type: ignore[arg-type]

        def act(who: str, token: Token = token, number: int = number, staged: object = staged) -> None:
            nonlocal others
            last = table.watermarks.get("p")
            follows = token.epoch == (0 if last is None else last.token.epoch + 1)
            if who == "other pipeline":
                others += 1
                mark = Watermark(Token("q", "r", others), f"q{others}")
                table.committer(mark.commit_id).land([table.stage(-1, attempt="q")], mark)
            elif who == "same epoch" and follows:
                mark = Watermark(token, f"rival{number}")
                same = table.stage(token.epoch * 10, token.epoch * 10 + 1, attempt=f"rival{number}")
                table.committer(mark.commit_id).land([same], mark)
            elif who == "late landing" and follows and timed_out(table):
                mark = Watermark(token, f"c{number}")
                table.committer(mark.commit_id).land([staged], mark)  # type: ignore[list-item]

        table.rivals = [lambda who=who: act(who) for who in rivals]  # type: ignore[misc]
        try:
            publish(table.committer(commit_id), [staged], token=token, commit_id=commit_id, policy=FAST)
            acknowledged.add(epoch)
        except LaketierError:
            pass
        table.before, table.after, table.rivals = [], [], []
        last = table.watermarks.get("p")
        reached = -1 if last is None else last.token.epoch
        expected = sorted([row for e in range(reached + 1) for row in (e * 10, e * 10 + 1)] + [-1] * others)
        assert table.rows == expected
        assert acknowledged <= set(range(reached + 1))
        assert not set(table.discarded) & set(table.files)
