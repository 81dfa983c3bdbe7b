"""Every row of the decision table, through watermarks that the format stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from laketier.spi import (
    Fenced,
    Gap,
    Refused,
    SourceRange,
    Stale,
    TokenMismatch,
    Watermark,
    WatermarkLost,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.lake import Table, ids_of, span, token


@dataclass(frozen=True)
class Row:
    """``before``: the tokens published first. ``then``: the token asked for. ``expected``: an outcome or a refusal."""

    name: str
    before: tuple[dict[str, Any], ...]
    then: dict[str, Any]
    expected: RoundOutcome | type[Refused]
    tags: tuple[str, ...] = field(default=())


def at(epoch: int, **fields: Any) -> dict[str, Any]:
    return {"epoch": epoch, **fields}


ROWS = [
    Row("none-first-epoch", (), at(0), RoundOutcome.PUBLISHED),
    Row("none-later-epoch", (), at(3), WatermarkLost),
    Row("lower-fence", (at(0, fence=2),), at(1, fence=1), Fenced),
    Row("lower-fence-same-epoch", (at(0, fence=2),), at(0, fence=1), Fenced),
    Row("same-fence", (at(0, fence=2),), at(1, fence=2), RoundOutcome.PUBLISHED),
    Row("higher-fence", (at(0, fence=2),), at(1, fence=3), RoundOutcome.PUBLISHED),
    Row("fence-raised-by-a-later-epoch", (at(0, fence=2), at(1, fence=3)), at(2, fence=2), Fenced),
    Row("other-run", (at(0),), at(1, run="other"), TokenMismatch),
    Row("other-run-first-epoch", (at(0),), at(0, run="other"), TokenMismatch),
    Row("same-epoch-same-content", (at(0, content="x"),), at(0, content="x"), RoundOutcome.ALREADY_THERE),
    Row("same-epoch-no-content", (at(0),), at(0), RoundOutcome.ALREADY_THERE),
    Row("same-epoch-other-content", (at(0, content="x"),), at(0, content="y"), TokenMismatch),
    Row("same-epoch-other-range", (at(0, source=span(0, 5)),), at(0, source=span(0, 6)), TokenMismatch),
    Row("earlier-epoch", (at(0), at(1)), at(0), Stale),
    Row("next-epoch", (at(0),), at(1), RoundOutcome.PUBLISHED),
    Row("next-epoch-range-continues", (at(0, source=span(0, 5)),), at(1, source=span(5, 7)), RoundOutcome.PUBLISHED),
    Row("next-epoch-range-jumps", (at(0, source=span(0, 5)),), at(1, source=span(6, 7)), Gap),
    Row("epoch-skipped", (at(0),), at(2), Gap),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(table: Table, row: Row) -> None:
    for fields in row.before:
        table.append(**fields)
    before = table.ids
    mark = table.watermark()
    if isinstance(row.expected, RoundOutcome):
        result = table.append(**row.then)
        expect(result.outcome, row.expected, f"the outcome of epoch {row.then} after {row.before}")
        added = ids_of(row.then["epoch"]) if row.expected is RoundOutcome.PUBLISHED else []
        expect(table.ids, sorted(before + added), f"rows after epoch {row.then}, which came after {row.before}")
    else:
        with refused(row.expected, f"epoch {row.then} is run after {row.before}"):
            table.append(**row.then)
        expect(table.ids, before, "rows after a refused round")
        expect(table.watermark(), mark, "the watermark after a refused round")


@pytest.mark.parametrize(
    "fields",
    [
        {"pipeline": "p", "run": "r", "epoch": 0},
        {"pipeline": "with/slash and space", "run": "7f0c-…ünï", "epoch": 0, "fence": 2**40},
        {"pipeline": "P.1-x_y", "run": "r", "epoch": 0, "content": "sha256:" + "0" * 64},
        {"pipeline": "p", "run": "r", "epoch": 0, "source": span(0, 2**62), "content": 'quote " and \\'},
        {
            "pipeline": "p",
            "run": " Ru\u0308n/" + "Y" * 300 + " ",
            "epoch": 0,
            "content": " C\n" + "\u65e5" * 300 + "\t' ",
            "source": SourceRange(" a", "b\t"),
        },
        {
            "pipeline": "p",
            "run": "007",
            "epoch": 2**53 + 1,
            "fence": 2**63 - 1,
            "content": "1e3",
            "source": SourceRange("00", "01.0"),
        },
        {
            "pipeline": "p-1",
            "run": "r-1:2",
            "epoch": 0,
            "content": "a-b:c",
            "source": SourceRange("2026-11-21", "a..b:c;d,e|f/g_h=i"),
        },
        {
            "pipeline": "p",
            "run": "r",
            "epoch": 2**31,
            "content": "",
            "source": SourceRange("", '{"0": [1, 2]}' * 20_000),
        },
        {"pipeline": "p", "run": "r", "epoch": 0, "source": SourceRange("{}", '{"table":7}', "2026-11-29 a/b=c")},
        {
            "pipeline": "p",
            "run": "r",
            "epoch": 0,
            "source": SourceRange("", "", ""),
            "renamed_to": " Ne\u0308w/" + "Y" * 300 + " ",
        },
    ],
    ids=["plain", "unicode", "content", "range", "odd", "numbers", "separators", "long", "stamp", "closed"],
)
def test_a_watermark_is_stored_as_it_is(table: Table, fields: dict[str, Any]) -> None:
    """All of it, by the one who published it and by the others; and the snapshot that carried it."""
    commit = new_attempt_id()
    new_name = fields.get("renamed_to")
    mine = token(**{name: value for name, value in fields.items() if name != "renamed_to"})
    given = Watermark(
        mine,
        commit,
        rows=2**31 + 5,
        committed_at=1_234_567_890_123,
        forgotten=new_name is not None,
        renamed_to=new_name,
    )
    committer = table.committer(commit_id=commit)
    result = committer.publish(committer.open(), [table.staged(ids_of(0))], given)
    committer.close()
    length = len(given.to_json())
    with goes_well(
        f"a watermark of {length} characters is published, and the table is opened for it: it is stored whole"
    ):
        mark = table.watermark(fields["pipeline"])
    assert mark is not None, "a pipeline has a watermark after its first epoch"
    expect(mark.token, given.token, "the token in the stored watermark")
    expect(mark.snapshot_id, result.snapshot_id, "the snapshot that the watermark names: the one that carried it")
    expect(mark, given.carried_by(result.snapshot_id), "the stored watermark")


def test_pipelines_that_differ_by_case_only_are_two(table: Table) -> None:
    table.append(0, pipeline="Orders")
    table.append(0, ids_of(1), pipeline="orders")
    table.append(1, ids_of(2), pipeline="Orders")
    expect(table.ids, ids_of(0) + ids_of(1) + ids_of(2), "rows of pipelines whose names differ by case only")


def test_a_pipeline_that_never_wrote_has_no_watermark(table: Table) -> None:
    expect(table.watermark("nobody"), None, "the watermark of a pipeline that never wrote, in an empty table")
    table.append(0)
    expect(table.watermark("nobody"), None, "the watermark of a pipeline that never wrote, beside one that did")


def test_a_watermark_survives_many_commits_of_others(table: Table) -> None:
    """No history scan: a watermark is as easy to find after any number of foreign commits."""
    table.append(0)
    for epoch in range(12):
        table.append(epoch, [10**6 + epoch], pipeline="noisy")
    for other in range(12):
        table.append(0, [2 * 10**6 + other], pipeline=f"other-{other}")
    expect(
        table.append(0).outcome,
        RoundOutcome.ALREADY_THERE,
        "the outcome of an epoch that is run again after 24 commits of others",
    )
    expect(table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of the next epoch after 24 commits of others")
    expect(len(table.ids), 5 + 12 + 12 + 5, "the number of rows after 24 commits of others")


def test_adopt_rewind_and_forget(table: Table) -> None:
    """The ways out of a refusal are commits without files, through the same atomic step."""
    from laketier.tiering import pipelines

    table.append(0)
    table.append(1)
    expect(pipelines.adopt(table.factory, "p", run="new", epoch=7).token.epoch, 7, "the epoch of an adopted pipeline")
    expect(
        table.append(8, ids_of(8), run="new").outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the epoch after an adopted one",
    )
    pipelines.rewind(table.factory, "p", epoch=7)
    expect(
        table.append(8, ids_of(9), run="new").outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of an epoch that was rewound",
    )
    pipelines.forget(table.factory, "p")
    with refused(WatermarkLost, "an epoch is run whose pipeline was forgotten"):
        table.append(9, run="new")
    expect(
        table.append(0, ids_of(2), run="newest").outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the first epoch of a forgotten pipeline",
    )
    expect(
        table.ids,
        sorted(ids_of(0) + ids_of(1) + ids_of(8) + ids_of(9) + ids_of(2)),
        "rows after adopting, rewinding and forgetting",
    )


def test_a_pipeline_goes_on_under_another_name(table: Table) -> None:
    """Its old name is closed by a watermark that says who goes on, and the new one has its token."""
    from laketier.tiering.renaming import close_old_name, keep_new_name, open_new_name

    table.append(0)
    factory = table.factory
    with goes_well("the pipeline 'p' is renamed to 'q', in three commits without files"):
        keep_new_name(factory, "p", "q")
        with refused(TokenMismatch, "a first epoch is run by a name that is kept for another pipeline"):
            table.append(0, ids_of(1), pipeline="q", run="new")
        close_old_name(factory, "p", "q")
        open_new_name(factory, "p", "q")
    for run, epoch in (("new", 0), (token(0).run, 1)):
        with refused(TokenMismatch, f"epoch {epoch} is run of a pipeline that goes on under another name"):
            table.append(epoch, ids_of(2), run=run)
    replay = table.append(0, pipeline="q").outcome
    expect(replay, RoundOutcome.ALREADY_THERE, "the outcome of the last epoch of a pipeline, by its new name")
    after_it = table.append(1, pipeline="q").outcome
    expect(after_it, RoundOutcome.PUBLISHED, "the outcome of the next epoch of a pipeline, by its new name")
    expect(table.ids, ids_of(0) + ids_of(1), "rows of a pipeline that went on under another name")
