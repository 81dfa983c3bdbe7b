"""Each look at a file fails in turn, while a table is read, written, made or tidied up: what a disk or a mounted file
system could not tell is no answer. It does not mean that nothing is there, nor that another one came first.

Nobody has to name these looks: the kernel does. Where it can't, these tests are skipped, and the verdict says so.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import Feature, Watermark, new_attempt_id
from laketier_conformance.child import answer_of
from laketier_conformance.child_looks import READS
from laketier_conformance.children import Child
from laketier_conformance.expect import expect
from laketier_conformance.interposed.deciding import Run
from laketier_conformance.interposed.looks import Looks, firsts_and_lasts
from laketier_conformance.interposed.mounts import ReadOnly, paths_in
from laketier_conformance.interposed.runs import spread
from laketier_conformance.lake import Lake, Table, ids_of, token
from laketier_conformance.operations import APPENDS, BESIDE, EXPIRY, OPERATIONS, Asked, Operation, went_well
from laketier_conformance.outside import files_below, is_on_disk, local_folder, sibling
from laketier_conformance.seen import seen

ANSWERS = (
    "TableNotFound", "IncompatibleTable", "SnapshotNotFound", "Conflict", "Fenced", "Stale", "Gap", "TokenMismatch",
    "WatermarkLost", "RolledBack", "Overtaken", "Collected", "StagedFileLost", "TableChanged", "SchemaChanged",
    "UnsupportedType", "FeatureNotSupported",
)  # fmt: skip
"""Errors that say how a table is, and on which a caller acts: it makes the table anew, deletes what it staged, or tells
its user to restore a backup."""
DAMAGE = "CorruptTable"
"""The answer that what is there is damaged. SQLite says so of what a disk can't read (EIO), so only the other errors
show who looked."""
ERRORS = (errno.EIO, errno.EACCES, errno.ESTALE, errno.EMFILE)
"""What a look ends in. The second is one that listings, globs and libraries like to pass over; the third comes from
servers of files, whose users like to take it for an absence; the last from a process that has too many files open."""
NO_FILE = "no file of the table is in the folder that `setup` got"
TIMES = 3
"""So many times the steps of `--lake-steps` are tried: a look that fails costs less than a kill."""


@pytest.mark.parametrize(
    "what",
    [
        "driver",
        "rows",
        "tables",
        "version",
        pytest.param("history", marks=pytest.mark.needs(Feature.HISTORY)),
        pytest.param("past", marks=pytest.mark.needs(Feature.TIME_TRAVEL)),
        pytest.param("orphans", marks=pytest.mark.needs(Feature.ORPHAN_COLLECTION)),
    ],
)
def test_a_look_at_a_table_fails(
    what: str,
    table: Table,
    folder: Path,
    looks: Callable[[], AbstractContextManager[Looks]],
    unproven: Callable[[str, str], None],
    pytestconfig: pytest.Config,
) -> None:
    """Readers get all rows or an error, and so does whoever asks for the watermark and a commit, the history, the
    tables of the warehouse or its orphans. What was known of a table is not taken for what it is."""
    _ask(what, table, table.info.snapshot_id)  # a format without it refuses here
    if not files_below(folder):
        unproven("looks that fail", NO_FILE)
        return
    commit = new_attempt_id()
    _commit(table, commit)
    table.lake.create(name=BESIDE).append(0)
    snapshot, version = table.info.snapshot_id, table.lake.storage.catalog().table_version(table.path)
    table.append(1)
    table.staged(ids_of(7))
    _ask(what, table, snapshot)  # or here, where only rows make a snapshot
    asked: dict[str, Any] = {"table": "db.t", "what": what, "commit": commit, "version": version, "snapshot": snapshot}
    with looks() as looked:
        looked.ask("tell", **asked)  # what is done the first time only
        whole = looked.ask("tell", **asked)
        assert whole.answer is not None, f"nothing came upon a request to tell {what}, and the process died"
        assert "told" in whole.answer, f"nothing came upon a request to tell {what}: found {whole.answer}"
        for at, error in _failing(whole, pytestconfig):
            run = looked.ask("tell", at=at, error=error, **asked)
            told = f"{looked.told(run)}, and who asks for {what}"
            _is_no_answer(run.answer, looked.failed_with(run), told)
            if went_well(run.answer):
                _is_the_same(what, (run.answer or {})["told"], whole.answer["told"], told)


def _ask(what: str, table: Table, snapshot: int | None) -> None:
    if what == "history":
        table.history.snapshots(1)
    elif what == "past":
        table.read(columns=("id",), snapshot_id=snapshot)
    elif what == "orphans":
        table.lake.storage.maintenance(table.info)


def _commit(table: Table, commit: str) -> None:
    committer = table.committer(commit_id=commit)
    committer.publish(committer.open(), [table.staged(ids_of(0))], Watermark(token(0), commit))
    committer.close()


def _some(whole: Run, config: pytest.Config) -> list[int]:
    """The numbers of the looks that fail."""
    each = firsts_and_lasts(whole.steps)
    chosen = spread(len(each), TIMES * config.getoption("lake_steps"), config.getoption("lake_seed"))
    return [each[at] for at in chosen]


def _failing(whole: Run, config: pytest.Config) -> list[tuple[int, int]]:
    """These numbers, and what each look ends in: with ``--lake-steps=0`` each error in turn, else one by the seed."""
    some = _some(whole, config)
    if not config.getoption("lake_steps"):
        return list(itertools.product(some, ERRORS))
    return [(at, ERRORS[(at + config.getoption("lake_seed")) % len(ERRORS)]) for at in some]


def _is_no_answer(answer: Mapping[str, Any] | None, error: int, told: str) -> None:
    assert answer is not None, f"{told}: the process died"
    assert answer.get("refused") not in (ANSWERS if error == errno.EIO else (*ANSWERS, DAMAGE)), (
        f"{told}, is told how the table is, though nobody could see it: expected the right answer, or an error of the "
        f"storage, found {answer['refused']}({answer['message'].splitlines()[0]})"
    )


def _is_the_same(what: str, found: Any, expected: Any, told: str) -> None:
    if what == "orphans":  # what can't be seen is left alone
        more = sorted(set(found) - set(expected))
        assert not more, f"{told}, is told of files that are none: expected no others than {expected}, found {more}"
    else:
        expect(found, expected, f"{told}, gets no error")


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.needs(*each.needs)] if each.needs else [])
        for each in (*APPENDS, *OPERATIONS, EXPIRY)
        if not each.hook
    ],
)
def test_a_look_of_an_operation_fails(
    operation: Operation,
    lake: Lake,
    folder: Path,
    looks: Callable[[], AbstractContextManager[Looks]],
    unproven: Callable[[str, str], None],
    pytestconfig: pytest.Config,
) -> None:
    """It is done, or it failed; it is there as a whole or not at all, and can be done again."""
    lake.create(name=BESIDE).append(0)
    beside = seen(lake, BESIDE)
    first = Asked.of(operation, lake, 0)
    if not files_below(folder):
        unproven("looks that fail", NO_FILE)
        return
    with looks() as looked:
        whole = looked.ask(**first.request)
        assert went_well(whole.answer), f"a request to {operation.name} goes well: found {whole.answer}"
        first.judge(f"a request to {operation.name}", True, first.seen)
        for number, (at, error) in enumerate(_failing(whole, pytestconfig), start=1):
            asked = Asked.of(operation, lake, number)
            run = looked.ask(at=at, error=error, **asked.request)
            _is_done_or_not(asked, run, looked.failed_with(run), f"{operation.name}, {looked.told(run)}")
    expect(seen(lake, BESIDE), beside, f"what a reader finds in the table beside the one to {operation.name}")


def test_a_look_at_what_lies_in_a_tables_place_fails(
    table: Table,
    looks: Callable[[], AbstractContextManager[Looks]],
    unproven: Callable[[str, str], None],
    pytestconfig: pytest.Config,
) -> None:
    """Somebody's file lies in the folder of a table to be. Where that refuses the table, a look that fails makes none
    of it either: its file would be one of the table's."""
    folder = local_folder(table.info.location)
    theirs = None if folder is None else sibling(folder, table.path.table, "notes")
    if theirs is None:
        unproven("looks that fail where something else lies", "the table is in no local folder of its name")
        return
    listed = table.lake.storage.catalog().list_tables()
    (theirs / "theirs").mkdir(parents=True)
    with looks() as looked:
        looked.ask("make", table="db.notes")  # what is done the first time only
        whole = looked.ask("make", table="db.notes")
        if went_well(whole.answer):
            unproven("looks that fail where something else lies", "the table is made beside it")
            return
        for at in _some(whole, pytestconfig):
            run = looked.ask("make", at=at, table="db.notes")
            told = f"{looked.told(run)}, as a table is made where something of somebody else's lies"
            assert run.answer is not None, f"{told}: the process died"
            assert not went_well(run.answer), f"{told}: expected a refusal as without it, and the table was made"
            assert run.answer.get("refused") not in ("Conflict", "UnknownOutcome"), (
                f"{told}: expected a refusal as without it, or an error of the storage, found {run.answer}"
            )
    found = table.lake.storage.catalog().list_tables()
    expect(found, listed, "the tables, after looks failed where something of somebody else's lies")


def _is_done_or_not(asked: Asked, run: Run, error: int, told: str) -> None:
    _is_no_answer(run.answer, error, f"{told}, and who asked for it")
    asked.judge_all(told, run.answer)


@pytest.mark.usefixtures("runs")  # skips it where nothing can be interposed
def test_a_mount_that_can_only_be_read(
    table: Table, folder: Path, children: Callable[[int], list[Child]], unproven: Callable[[str, str], None]
) -> None:
    """Who only looks makes no lock file, no folder and no mark, in a warehouse that is there and in one that is not. A
    database that opens its file to be written is told in the report: it may have to."""
    if not files_below(folder):
        unproven("mounts that can only be read", NO_FILE)
        return
    _commit(table, new_attempt_id())
    written = paths_in(folder)
    snapshot, version = table.info.snapshot_id, table.lake.storage.catalog().table_version(table.path)
    asked: dict[str, Any] = {"do": "tell", "table": "db.t", "version": version, "snapshot": snapshot}
    requests = [
        ("a table", table.lake, {**asked, "what": what}, answer_of(table.lake, {**asked, "what": what}))
        for what, needs in READS.items()
        if table.lake.declares(*needs)
    ]
    if is_on_disk(table.lake.location):
        nowhere, like_it = (replace(table.lake, location=str(folder / name)) for name in ("nowhere", "like-it"))
        requests += [
            (
                "a warehouse that is not there",
                nowhere,
                {**asked, "what": what},
                answer_of(like_it, {**asked, "what": what}),
            )
            for what in ("tables", "rows")
        ]
    opens: dict[str, None] = {}
    with ReadOnly.of(children(1)[0], table.lake, folder, written) as mount:
        for where, lake, request, wanted in requests:
            answer = mount.ask(lake, **request)
            if answer == wanted or "told" not in wanted:
                continue
            if mount.refused is not None and not mount.refused[1]:
                opens[mount.told()] = None
                continue
            told = (
                f"{where} is on a mount that can only be read, and who asks for {request['what']} meets {mount.told()}"
            )
            expect(answer, wanted, f"{told}. Whoever only reads makes nothing")
    if opens:
        unproven(
            "mounts that can only be read",
            f"a reader opens a file to be written, as a database does: {next(iter(opens))}",
        )
