"""Features that are declared as a whole: there, or refused as declared."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    ConfigError,
    Feature,
    FeatureNotSupported,
    LakeSplit,
    LakeStorage,
    LakeStoragePlugin,
    LaketierError,
    OffsetsExpired,
    RolledBack,
    RowsChanged,
    ScanRequest,
    SnapshotNotFound,
    TableFinding,
    WatermarkLost,
    WriteMode,
    WriteResult,
    WriterInitContext,
    new_attempt_id,
    support_of,
)
from laketier.spi.redaction import holds_secret, is_secret, redacted
from laketier.tiering import RoundOutcome, pipelines
from laketier_conformance import foreign, others_read
from laketier_conformance.expect import expect, goes_well, refused, the_one
from laketier_conformance.harness import Harness
from laketier_conformance.lake import SCHEMA, Lake, Table, batch, ids_of, read_plan, tick, token
from laketier_conformance.outside import opened_in_a_bucket

LINES_SECONDS = 120
"""A tool that waits for a network that is not there may wait for ever."""


@pytest.mark.needs(Feature.OVERWRITE)
def test_overwrite_is_offered_on_both_sides(table: Table) -> None:
    before = table.lake.files()
    table.factory.create_writer(WriterInitContext(attempt=new_attempt_id(), mode=WriteMode.OVERWRITE)).abort()
    table.committer(mode=WriteMode.OVERWRITE).close()
    expect(table.lake.files(), before, "files after a writer or committer was offered: offering it writes nothing yet")


@pytest.mark.needs(Feature.UPSERT)
def test_a_writer_of_merged_rows(table: Table) -> None:
    context = WriterInitContext(attempt=new_attempt_id(), mode=WriteMode.UPSERT)
    before = table.lake.files()
    table.factory.create_writer(context).abort()
    expect(table.lake.files(), before, "files after a writer or committer was offered: offering it writes nothing yet")


@pytest.mark.needs(Feature.UPSERT)
def test_a_committer_of_merged_rows(table: Table) -> None:
    before = table.lake.files()
    table.committer(mode=WriteMode.UPSERT).close()
    expect(table.lake.files(), before, "files after a writer or committer was offered: offering it writes nothing yet")


@pytest.mark.needs(Feature.UPSERT)
def test_a_table_with_a_primary_key(lake: Lake) -> None:
    table = lake.create(name="db.keyed", primary_key=("id",))
    expect(table.info.descriptor.primary_key, ("id",), "the primary key of a table that has one")


@pytest.mark.needs(Feature.UPSERT)
def test_files_are_replaced(lake: Lake) -> None:
    """An epoch that takes a row out, changes one and adds one: the file with those two is replaced. And its replay."""
    from laketier.tiering import RoundOutcome, TieringRound

    table = lake.create(name="db.keyed", primary_key=("id",))

    def epoch(number: int, *results: WriteResult) -> RoundOutcome:
        tiering = TieringRound(table.factory, token=token(number), mode=WriteMode.UPSERT)
        tiering.begin()
        return tiering.commit(results).outcome

    def rows(names: dict[int, str]) -> WriteResult:
        batch = pa.record_batch(
            {
                "id": pa.array(names.keys(), pa.int64()),
                "name": pa.array(names.values(), pa.string()),
                "value": pa.nulls(len(names), pa.float64()),
            }
        )
        return table.stage_arrow([batch], mode=WriteMode.UPSERT)

    expect(
        epoch(0, rows({1: "a", 2: "b"}), rows({3: "c"})),
        RoundOutcome.PUBLISHED,
        "the outcome of the first epoch of a table with a primary key",
    )
    snapshot = table.source.plan(ScanRequest())

    def ids_in(split: LakeSplit) -> list[int]:
        ids: list[int] = read_plan(table.source, replace(snapshot, splits=(split,)))["id"].to_pylist()
        return ids

    replaced = the_one(
        (split.files for split in snapshot.splits if 1 in ids_in(split)),
        "splits of a table with a primary key that have the row 1",
    )
    assert replaced, "a split of a table with a primary key says which files it reads"
    for outcome in (RoundOutcome.PUBLISHED, RoundOutcome.ALREADY_THERE):
        changed = replace(rows({1: "A", 4: "d"}), replaced=replaced)
        expect(epoch(1, changed), outcome, "the outcome of an epoch that replaces a file, and of its replay")
        read = table.read(columns=("id", "name")).sort_by("id")
        expect(read.to_pydict(), {"id": [1, 3, 4], "name": ["A", "c", "d"]}, "rows after a file was replaced")
    if lake.declares(Feature.TIME_TRAVEL):
        expect(
            table.read(snapshot_id=snapshot.snapshot_id).num_rows,
            3,
            "the number of rows of the snapshot before a file was replaced",
        )


@pytest.mark.needs(Feature.OBJECT_STORES)
def test_object_stores(lake: Lake) -> None:
    """Opening touches storage as little as it can, so no store is needed to see whether such a warehouse is taken."""
    try:
        opened, advice = opened_in_a_bucket(lake), None
    except ConfigError as error:  # it may ask for a catalog or a key
        opened, advice = None, error.fix
    assert isinstance(opened, LakeStorage) or advice, "what is missing needs advice"


@pytest.mark.needs(Feature.PARTITIONING, Feature.NESTED_TYPES)
def test_a_table_of_everything(lake: Lake) -> None:
    from laketier.spi import PartitionField

    schema = pa.schema([*SCHEMA, ("tags", pa.list_(pa.string())), ("day", pa.date32())])
    rows = pa.record_batch(
        [
            *batch(ids_of(0)).columns,
            pa.array([["a"], [], None, ["b", None], ["c"]]),
            pa.array([1, 2, 1, None, 2], pa.date32()),
        ],
        schema=schema,
    )
    table = lake.create(schema, "db.everything", partition_by=(PartitionField("day"),))
    table.publish_arrow([rows], token(0))
    expect(table.read().sort_by("id"), pa.Table.from_batches([rows]), "rows of a table of everything")


@pytest.mark.shows(Feature.ROLLBACK_DETECTION)
def test_a_foreign_rollback_is_noticed(
    plugin: LakeStoragePlugin, harness: Harness, table: Table, unproven: Callable[[str, str], None]
) -> None:
    """Never a replay: after somebody took the table back, the next round is refused."""
    if not support_of(plugin.features, Feature.ROLLBACK_DETECTION).full:
        return
    if harness.roll_back is None:
        unproven(Feature.ROLLBACK_DETECTION.value, "the format's harness has no roll_back")
        return
    first = table.append(0).snapshot_id
    before = table.lake.storage.state(table.info)
    table.append(1)
    foreign.roll_back(table, harness, first, ids_of(0))
    if table.lake.declares(Feature.TIME_TRAVEL_BY_TIMESTAMP):
        now = tick()
        expect(
            sorted(table.read(as_of=now)["id"].to_pylist()), ids_of(0), "rows of a moment after a table was taken back"
        )
    for epoch in (1, 2):
        with refused((RolledBack, WatermarkLost), f"epoch {epoch} is published after somebody took the table back"):
            table.append(epoch)
    assert set(table.ids) <= set(ids_of(0)), "rows after somebody took the table back"
    told = "the watermark of a state from before a rollback, which is asked for it after that"
    with goes_well(told):
        mark = before.watermark("p")
    expect(None if mark is None else mark.token, token(0), told)


@pytest.mark.shows(Feature.ROLLBACK_DETECTION)
def test_a_foreign_rollback_is_noticed_after_rounds_of_others(
    plugin: LakeStoragePlugin, harness: Harness, table: Table, unproven: Callable[[str, str], None]
) -> None:
    """What tells of it may be behind commits of other pipelines by the time that those whose rows are gone look: they
    stay refused, each of them, and one that is adopted since says nothing of another. Whether others may write by then
    is the format's to say."""
    if not support_of(plugin.features, Feature.ROLLBACK_DETECTION).full:
        return
    if harness.roll_back is None:
        unproven("rollbacks behind rounds of others", "the format's harness has no roll_back")
        return
    both, kept = ("p", "beside"), [*ids_of(0), *ids_of(20)]
    table.append(0)
    first = table.append(0, ids_of(20), pipeline="beside").snapshot_id
    table.append(1)
    table.append(1, ids_of(21), pipeline="beside")
    follows = table.lake.declares(Feature.INCREMENTAL_READ)
    read = table.latest if follows else 0
    foreign.roll_back(table, harness, first, kept)
    came: list[int] = []
    for number in range(3):
        with suppress(RolledBack, WatermarkLost):
            table.append(0, ids_of(number + 2), pipeline=f"another-{number}")
            came += ids_of(number + 2)
        for pipeline, epoch in itertools.product(both, (1, 2)):
            doing = f"epoch {epoch} of {pipeline} is published after somebody took the table back, and others came then"
            with refused((RolledBack, WatermarkLost), doing):
                table.append(epoch, pipeline=pipeline)
    expect(table.ids, sorted([*kept, *came]), "rows after somebody took the table back, and others wrote")
    if not came:
        return
    if follows:
        _is_told_to_a_follower(table, read, came)
    told = "the pipeline whose rows were taken back is adopted at the epoch that is left, and goes on"
    with goes_well(told):
        pipelines.adopt(table.factory, "p", run=token(0).run, epoch=0)
        outcomes = [table.append(1, ids_of(8)).outcome, table.append(2, ids_of(9)).outcome]
    expect(outcomes, [RoundOutcome.PUBLISHED] * 2, f"the outcomes of two epochs, after {told}")
    with refused((RolledBack, WatermarkLost), f"epoch 1 of another one that lost rows is published after {told}"):
        table.append(1, pipeline="beside")
    expect(table.ids, sorted([*kept, *came, *ids_of(8), *ids_of(9)]), f"rows after {told}")
    foreign.roll_back(table, harness, first, kept)
    for epoch in (1, 2):
        doing = f"epoch {epoch} is published after a table was taken back, others came, and it was taken back again"
        with refused((RolledBack, WatermarkLost), doing):
            table.append(epoch)


def _is_told_to_a_follower(table: Table, read: int, came: list[int]) -> None:
    """Who has read the table as a log up to ``read``, and so has rows that were taken back after that: the next range
    has a commit that changed rows, as it were. Passed over, it has what ``came`` since, and nothing else."""
    told = "what came since is read as a log, by who has read rows that were taken back"
    with refused((RowsChanged, OffsetsExpired, SnapshotNotFound), told):
        table.changes.plan(read, table.latest)
    told = f"{told}, and passes over what changed rows"
    try:
        with goes_well(told, but=(OffsetsExpired, SnapshotNotFound)):
            plan = table.changes.plan(read, table.latest, skip_changes=True)
    except (OffsetsExpired, SnapshotNotFound):
        return
    expect(sorted(read_plan(table.source, plan)["id"].to_pylist()), sorted(came), f"rows where {told}")


def test_lines_for_people_read_the_table(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    """What a plugin says of how to open a table elsewhere is run as it stands, where that tool is installed: of two
    tables each line gives the rows of its own. Each tool has a process of its own."""
    lines: dict[str, list[tuple[str, str, list[int]]]] = {}
    for number, name in enumerate(("db.t", "db.other")):
        table = lake.create(name=name)
        table.append(0, ids_of(number), ids_of(number, 1))
        for tool, line in lake.plugin.open_with(table.info).items():
            if "spark" not in tool.lower():  # which takes a session
                lines.setdefault(tool, []).append((name, line, ids_of(number) + ids_of(number, 1)))
    for tool, some in lines.items():
        answers = _answers([line for _, line, _ in some])
        for (name, line, expected), answer in zip(some, answers, strict=True):
            what = f"the line for {tool} of {name}"
            reason = _why_nothing_is_shown(lake, answer)
            if reason is not None:
                unproven("lines for other readers", f"{tool}: {reason}")
                continue
            assert "ids" in answer, (
                f"{what} is run as it stands: expected its rows, found {answer['error']} from {line}"
            )
            expect(answer["ids"], expected, f"rows that {what} gives")


def _answers(lines: list[str]) -> list[dict[str, Any]]:
    try:
        # Without a terminal, at which a tool could ask for a password.
        ran = subprocess.run(
            [sys.executable, others_read.__file__],
            input=json.dumps(lines),
            capture_output=True,
            text=True,
            check=False,
            timeout=LINES_SECONDS,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return [{"unreachable": f"it did not end within {LINES_SECONDS} seconds"}] * len(lines)
    assert not ran.returncode, f"lines that open tables end their process: found {ran.stderr[-500:]} from {lines}"
    answers: list[dict[str, Any]] = json.loads(ran.stdout)
    return answers


def _why_nothing_is_shown(lake: Lake, answer: Mapping[str, Any]) -> str | None:
    """A tool that is not here or can't reach what it needs, and a line that fails where it lacks what only the user
    knows: it holds no secret."""
    if "missing" in answer:
        return f"{answer['missing']} is not installed"
    if "unreachable" in answer:
        return str(answer["unreachable"])
    secret = any(is_secret(name) or holds_secret(value) for name, value in lake.options.items())
    far = urlsplit(lake.location).scheme not in ("", "file")
    if "error" in answer and (secret or far):
        return f"the warehouse may ask for a key or a password, and a line holds none: {redacted(answer['error'])}"
    return None


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_a_sound_table_has_no_findings(table: Table) -> None:
    """Whoever looks for defects of a table that laketier alone wrote finds none, and a repair leaves it as it is. So it
    is before the first row, too."""
    with goes_well("a table that has no rows yet is looked through for defects"):
        expect(_left(table), [], "the findings of a table that has no rows yet")
    table.append(0)
    if table.lake.declares(Feature.ADD_COLUMN):
        table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
    table.append(1)
    expect(_left(table), [], "the findings of a table that laketier alone wrote")
    expect(table.ids, ids_of(0) + ids_of(1), "rows after a look for findings")
    expect(table.append(1).outcome, RoundOutcome.ALREADY_THERE, "a replay after a look for findings")


def _left(table: Table) -> list[TableFinding]:
    """What is found, and what is left after a repair."""
    storage, info = table.lake.storage, table.info
    found = list(storage.maintenance(info).findings())
    with suppress(FeatureNotSupported):
        found += storage.maintenance(info).repair()
    return found


def test_errors_help(lake: Lake) -> None:
    """Every refusal of a catalog is a `LaketierError` with the table's name in it, not a traceback from below."""
    with refused(LaketierError, "a table that is not there is loaded") as caught:
        _ = lake.table("db.missing").info
    assert "missing" in str(caught.value), "the refusal names the table db.missing"
    table = lake.create()
    with refused(LaketierError, "a column that is not there is read") as caught:
        table.source.plan(ScanRequest(columns=("nothing",)))
    assert "nothing" in str(caught.value), "the refusal names the column"
