"""Readers see epoch N-1 or N, and nothing of what is staged."""

from __future__ import annotations

from pathlib import Path

import pytest

from laketier.spi import Feature, ScanRequest, WriteMode
from laketier.tiering import TieringRound
from laketier_conformance.children import Child
from laketier_conformance.expect import expect
from laketier_conformance.lake import Table, ids_of, read_pinned, read_plan, token


def test_what_is_staged_is_not_visible(table: Table) -> None:
    table.append(0)
    before = table.info
    staged = [table.staged(ids_of(1, 0)), table.staged(ids_of(1, 1))]
    expect(table.ids, ids_of(0), "rows while others are staged")
    expect(table.info.snapshot_id, before.snapshot_id, "the snapshot while rows are staged")
    table.commit(staged, token(1))
    expect(table.ids, ids_of(0) + ids_of(1, 0) + ids_of(1, 1), "rows after what was staged was published")


def test_what_is_staged_in_a_new_table_is_not_visible(table: Table) -> None:
    table.staged(ids_of(0))
    expect(table.ids, [], "rows of a new table while others are staged")
    expect(table.watermark(), None, "the watermark of a new table while rows are staged")


def test_an_aborted_round_leaves_nothing(table: Table) -> None:
    table.append(0)
    files = table.lake.files()
    tiering = TieringRound(table.factory, token=token(1))
    tiering.begin()
    staged = [table.staged(ids_of(1, 0)), table.staged(ids_of(1, 1))]
    tiering.abort(staged, commit_was_called=False)
    expect(table.ids, ids_of(0), "rows after a round was aborted")
    expect(table.lake.files(), files, "files after a round was aborted")


def test_a_reader_in_another_process_sees_whole_epochs(table: Table, interpreter: Child, tmp_path: Path) -> None:
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    stop = tmp_path / "stop"
    interpreter.begin(table.lake, "watch", table="db.t", until=str(stop))
    expect(interpreter.answer(), {"ready": True}, "the first answer of the reader in another process")
    for epoch in range(1, 8):
        table.append(epoch, ids_of(epoch, 0), ids_of(epoch, 1), ids_of(epoch, 2))
    stop.touch()
    answer = interpreter.answer()
    assert "states" in answer, f"a reader in another process reads to the end: found {answer}"
    states = answer["states"]
    whole = [ids_of(0, 0) + ids_of(0, 1)]
    for epoch in range(1, 8):
        whole.append(sorted([*whole[-1], *ids_of(epoch, 0), *ids_of(epoch, 1), *ids_of(epoch, 2)]))
    assert all(state in whole for state in states), (
        f"a reader sees whole epochs and nothing else: found {[len(state) for state in states]} rows"
    )
    expect(states, sorted(states, key=len), "what a reader saw, in its order: it never goes back")
    expect(states[-1], whole[-1], "rows that a reader saw last")


def test_a_plan_keeps_its_snapshot(table: Table) -> None:
    table.append(0)
    source = table.source
    plan = source.plan(ScanRequest())
    table.append(1)
    table.append(0, ids_of(2), pipeline="other")
    rows = read_pinned(source, plan, table.lake.plugin.features)
    if rows is not None:
        expect(sorted(rows["id"].to_pylist()), ids_of(0), "rows of a plan that was made before two commits")
    assert plan.snapshot_id != table.source.plan(ScanRequest()).snapshot_id, (
        "a plan that is made after two commits is of another snapshot"
    )


@pytest.mark.needs(Feature.OVERWRITE)
def test_a_plan_outlives_an_overwrite(table: Table) -> None:
    table.append(0)
    source = table.source
    plan = source.plan(ScanRequest())
    table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE)
    expect(
        sorted(read_plan(source, plan)["id"].to_pylist()), ids_of(0), "rows of a plan that was made before an overwrite"
    )
    expect(table.ids, ids_of(1), "rows after an overwrite")
