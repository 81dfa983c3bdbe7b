"""The operating system refuses: each call of a round in turn, once or from there on, in each of several ways."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from depth import deep_where
from laketier.spi import LaketierError, TablePath, Token, WriteMode, WriterInitContext, new_attempt_id
from laketier.tiering import RetryPolicy, RoundOutcome, RoundResult, TieringRound, write_task

CALLS = ("open", "fsync", "link", "replace", "rename", "unlink", "mkdir")
ERRORS = ("EIO", "ENOSPC", "EACCES", "EXDEV")
EACH_WAY = list(product(ERRORS, (WriteMode.APPEND, WriteMode.OVERWRITE), (False, True)))
QUICK_WAYS = (
    ("EIO", WriteMode.APPEND, False),
    ("ENOSPC", WriteMode.APPEND, True),
    ("EACCES", WriteMode.OVERWRITE, False),
    ("EXDEV", WriteMode.OVERWRITE, False),
    ("EIO", WriteMode.OVERWRITE, True),
)
"""Each error, and each mode both ways: refused once, and from there on."""
QUICK = RetryPolicy(unknowns=2, first_wait_seconds=0.0, longest_wait_seconds=0.0)
IDS = {0: [0, 1], 1: [1000, 1001, 1002]}


@contextmanager
def refusing(warehouse: Path, at: int, code: int, *, always: bool) -> Iterator[list[str]]:
    """The call with the number ``at``, or each from there on, that concerns ``warehouse`` fails; yields all of them."""
    made: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, _counted(getattr(os, name), name, str(warehouse), made, at, code, always=always))
        yield made


def _counted(
    real: Callable[..., Any], name: str, warehouse: str, made: list[str], at: int, code: int, *, always: bool
) -> Callable[..., Any]:
    def call(target: Any, *arguments: Any, **more: Any) -> Any:
        path = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else os.fspath(target)
        folder = more.get("dir_fd", more.get("src_dir_fd"))
        if folder is not None:
            path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
        if str(path).startswith(warehouse):
            made.append(name)
            number = len(made) - 1
            if number == at or (always and number > at >= 0):
                raise OSError(code, os.strerror(code), str(path))
        return real(target, *arguments, **more)

    return call


def run(table: Any, epoch: int, mode: WriteMode) -> RoundResult:
    """A round as an engine runs it: two tasks."""
    factory = table.factory
    tiering = TieringRound(factory, token=Token("p", "run", epoch), mode=mode, policy=QUICK)
    tiering.begin()
    messages = []
    for index, ids in enumerate((IDS[epoch][:1], IDS[epoch][1:])):
        context = WriterInitContext(attempt=new_attempt_id(), split_index=index, mode=mode)
        rows = [{"id": key, "region": "r"} for key in ids]
        messages.append(write_task(factory, [pa.RecordBatch.from_pylist(rows, schema=table.schema)], context))
    return tiering.commit_messages(messages)


def ending_of(table: Any, epoch: int, mode: WriteMode) -> tuple[RoundOutcome | None, str]:
    """How the round ended, or what was said when it did not."""
    try:
        return run(table, epoch, mode).outcome, ""
    except LaketierError as refused:
        return None, str(refused)


@pytest.mark.parametrize(("error", "mode", "always"), deep_where(EACH_WAY, lambda *way: way not in QUICK_WAYS))
def test_whatever_call_is_refused(make_table: Any, error: str, mode: WriteMode, always: bool) -> None:
    """The round is published whole or not at all, says so in laketier's words, and can be run again."""
    expected = sorted(IDS[1] if mode is WriteMode.OVERWRITE else IDS[0] + IDS[1])
    outcomes: list[str] = []
    for number in count():
        table = make_table(path=TablePath("db", f"t{number}"))
        run(table, 0, WriteMode.APPEND)
        with refusing(table.location, number, getattr(errno, error), always=always) as made:
            outcome, told = ending_of(table, 1, mode)
        if number >= len(made):
            break
        assert outcome is not None or os.strerror(getattr(errno, error)).lower() in told.lower(), made[number]
        seen = table.read_ids()
        assert seen in (IDS[0], expected), f"{made[number]} refused: {seen}"
        assert outcome is None or seen == expected, f"{made[number]} refused, and {outcome} told"
        again = run(table, 1, mode).outcome
        assert again is (RoundOutcome.ALREADY_THERE if seen == expected else RoundOutcome.PUBLISHED), made[number]
        assert table.read_ids() == expected, made[number]
        _nothing_unexplained(table)
        outcomes.append("an error" if outcome is None else outcome.value)
    print(f"{error}, {mode.value}: {len(outcomes)} calls refused in turn: {dict(Counter(outcomes))}")
    assert outcome is RoundOutcome.PUBLISHED, "the last one was disturbed by nothing"
    assert len(outcomes) > 20
    assert "an error" in outcomes


def _nothing_unexplained(table: Any) -> None:
    found = {file.path for file in table.storage.maintenance(table.info).orphans(2**62)}
    left = {f"__in_progress/{path.name}" for path in table.staged_files()}
    assert left <= found, "what is left over is what orphan collection takes"


def test_a_name_that_is_taken_is_not_written_to(table: Any) -> None:
    """Names are unguessable, so this is an engine that gives an attempt twice: the first one's file stays as it is."""
    context = WriterInitContext(attempt=new_attempt_id())
    factory = table.factory
    first = factory.create_writer(context)
    first.write(pa.RecordBatch.from_pylist(table.ids(0), schema=table.schema))
    result = first.complete()
    second = factory.create_writer(context)
    second.write(pa.RecordBatch.from_pylist(table.ids(7), schema=table.schema))
    with pytest.raises(FileExistsError):
        second.complete()
    TieringRound(factory, token=Token("p", "run", 0)).commit([result])
    assert table.read_ids() == [0, 1, 2, 3]
