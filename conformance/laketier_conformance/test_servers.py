"""What the server does to whom a table is behind one: it crashes, and it lets an account only read.

Neither can be played from outside of the server, so the author's harness does it. A table in a local folder meets the
same in `test_power.py` and in `test_looks.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Conflict,
    Feature,
    LakeStoragePlugin,
    LaketierError,
    NotBegun,
    Refused,
    StorageError,
    TableNotFound,
    TablePath,
    UnknownOutcome,
    WriteMode,
    support_of,
)
from laketier.tiering import RoundOutcome
from laketier_conformance.child import answer_of
from laketier_conformance.child_looks import READS
from laketier_conformance.delivery import ids_until, made_whole, round_of
from laketier_conformance.expect import HarnessFailed, expect, goes_well, told
from laketier_conformance.harness import Harness, Warehouse
from laketier_conformance.interposed.answers import Answers
from laketier_conformance.interposed.runs import spread
from laketier_conformance.interposed.wire import BEFORE, LOST
from laketier_conformance.lake import Lake, Table, batch, ids_of, token
from laketier_conformance.operations import went_well
from laketier_conformance.outside import is_behind_a_server
from laketier_conformance.suite import REFUSED
from laketier_conformance.verdict import FEATURES

Unproven = Callable[[str, str], None]
T = TypeVar("T")
EPOCHS = 3
KEPT = 10
"""So many connections a process may have kept."""
CRASHES = 3
"""Requests of a round, before and after each of which the server crashes once."""
LOOKS = 3
"""After a crash: a process may keep several connections, which it uses in turns."""
WHEN = {BEFORE: "before it had", LOST: "after it had answered"}


@pytest.fixture
def crash(lake: Lake, harness: Harness, unproven: Unproven) -> Callable[[], None] | None:
    """Ends the server and starts it again. None where the harness can't."""
    hook = harness.crash
    if hook is None:
        if is_behind_a_server(lake.location):
            unproven("what a server answered, once it crashed", "the format's harness has no crash")
        return None
    warehouse = Warehouse(lake.location, lake.options)
    return lambda: hook(warehouse)


def test_what_a_server_answered_survives_its_crash(lake: Lake, crash: Callable[[], None] | None) -> None:
    """A new table, each round, a new column and a drop: rows, watermark and commit are there, or gone, as answered."""
    if crash is None:
        return
    table = lake.create()
    for epoch in range(EPOCHS):
        crash()
        before = "a table was made" if epoch == 0 else f"epoch {epoch - 1} was published"
        _again(lambda: table.append(epoch), f"{before}, its server crashed, and the next round runs")  # noqa: B023 - at once
        crash()
        _is_there(table, epoch, f"epoch {epoch} was published, and the server crashed")
    if lake.declares(Feature.ADD_COLUMN):
        more = [AddColumn(pa.field("more", pa.int64()))]
        _again(lambda: lake.storage.catalog().alter_table(table.path, more), "a server crashed, and a column is added")
        crash()
        told = "a column was added, and the server crashed"
        names = _again(lambda: lake.storage.catalog().load_table(table.path).schema.names, told)
        assert "more" in names, f"{told}: the table has the columns {names}"
    if lake.declares(Feature.DROP_TABLE):
        _again(lambda: lake.storage.catalog().drop_table(table.path), "a server crashed, and a table is dropped")
        crash()
        told = "a table was dropped, and the server crashed"
        expect(_again(lambda: lake.storage.catalog().list_tables(), told), [], f"{told}: the tables")


def _is_there(table: Table, epoch: int, after: str) -> None:
    rows = ids_until(epoch + 1)
    expect(_again(lambda: table.ids, after), rows, f"{after}: a reader finds the ids")
    mark = _again(table.watermark, after)
    expect(mark and mark.token.epoch, epoch, f"{after}: the epoch of the watermark")
    outcome = _again(lambda: table.append(epoch), after).outcome
    expect(outcome, RoundOutcome.ALREADY_THERE, f"{after}: the epoch is replayed")
    expect(_again(lambda: table.ids, after), rows, f"{after}: after the replay a reader finds the ids")


def _again(call: Callable[[], T], after: str) -> T:
    """What the call gives. Connections that were kept are dead, and each may tell so once."""
    for _ in range(KEPT):
        try:
            return call()
        except (StorageError, NotBegun, UnknownOutcome):
            continue
    with goes_well(f"{after}: whoever asks for the {KEPT + 1}th time, as {KEPT} connections were dead"):
        return call()


def test_what_a_task_staged_is_published_whole_or_refused_after_a_crash(
    table: Table, crash: Callable[[], None] | None
) -> None:
    """A task is done, and the server crashes before the driver publishes. What the server lost is no empty file."""
    if crash is None:
        return
    table.append(0)
    staged = table.stage_arrow([batch(ids_of(1))])
    crash()
    rows, after = ids_of(0), "a task ended, and the server crashed before its round was published"
    _again(lambda: table.ids, after)  # dead connections are told here
    try:
        _again(lambda: table.commit([staged], token(1)), after)
    except Refused:
        expect(_again(lambda: table.ids, after), rows, f"{after}; it was refused, and a reader finds the ids")
    except LaketierError as error:
        pytest.fail(f"{after}: expected that it is published, or refused as lost; found {told(error)}")
    else:
        expect(
            _again(lambda: table.ids, after), rows + ids_of(1), f"{after}; it was told of a success, and it has the ids"
        )
    _again(lambda: table.append(1), f"{after}, and then staged again")
    expect(_again(lambda: table.ids, after), rows + ids_of(1), f"{after}; it is run again, and a reader finds the ids")


def test_a_round_in_which_a_server_crashes(
    lake: Lake,
    plugin: LakeStoragePlugin,
    crash: Callable[[], None] | None,
    request: pytest.FixtureRequest,
    unproven: Unproven,
) -> None:
    """Before or after one of its requests, and the server is there again before the process is told. The round is there
    as a whole, or not at all. That is to a server what a power cut is to a disk, so it shows the same feature."""
    shown = "rounds in which a server crashes"
    if is_behind_a_server(lake.location):
        shown, told_of = Feature.POWER_CUT.value, request.node.user_properties
        told_of.append((FEATURES, [Feature.POWER_CUT.value]))
        if Feature.POWER_CUT in plugin.features and not support_of(plugin.features, Feature.POWER_CUT).full:
            told_of.append((REFUSED, Feature.POWER_CUT.value))
            return
        if crash is None:
            unproven(shown, "the format's harness has no crash, and a server's disk can't be cut")
    if crash is None:
        return
    answers: Answers | None = request.getfixturevalue("answers")
    if answers is None:
        unproven(shown, "a round opens no connection during which a server could crash")
        return
    table, steps = lake.create(), request.config.getoption("lake_steps")
    whole = answers.run(**round_of(0))
    assert went_well(whole.answer), f"nothing came upon a round: found {whole.answer}"
    moments = spread(len(whole.requests), CRASHES if steps else 0, request.config.getoption("lake_seed"))
    crashes = 0
    for epoch, (at, how) in enumerate(((at, how) for at in moments for how in WHEN), start=1):
        asking = answers.run(at=at, how=how, meanwhile=crash, **round_of(epoch))
        crashes += asking.met
        met = f"a server crashed {WHEN[how]} request {at + 1} of a round, {whole.requests[at]}"
        after = met if asking.met else f"a round asked its server {len(asking.requests)} times, and nothing happened"
        assert asking.answer is not None, f"{after}: the process died"
        before, then = ids_until(epoch), ids_until(epoch + 1)
        looks = [_again(lambda: table.ids, after) for _ in range(LOOKS)]  # dead connections are told here
        _again(table.watermark, after)  # and here
        if went_well(asking.answer):
            expect(looks[-1], then, f"{after}: the round was acknowledged, and the rows")
        made_whole(table, epoch, before, then, lambda: _again(lambda: table.append(epoch), after).outcome, after)  # noqa: B023 - called at once
    if not crashes:
        unproven(shown, "no round came to the request at which its server was to crash")


def test_an_account_that_may_only_read(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """Whoever looks makes no table, no row and no lock: the server lets that account do none of it. What it denies to
    one who writes is told as an error of the storage, and is neither an absence nor a rival."""
    table = lake.create()
    table.append(0)
    given = harness.for_readers(Warehouse(lake.location, lake.options))
    if given is None:
        if is_behind_a_server(lake.location):
            unproven("an account that may only read", "the format's harness has no for_readers")
        return
    reader = replace(lake, options=given)
    snapshot, version = table.info.snapshot_id, lake.storage.catalog().table_version(table.path)
    asked: dict[str, Any] = {"do": "tell", "table": "db.t", "version": version, "snapshot": snapshot}
    for what, needs in READS.items():
        if lake.declares(*needs):
            wanted = answer_of(lake, {**asked, "what": what})
            found = answer_of(reader, {**asked, "what": what})
            expect(found, wanted, f"an account that may only read asks for {what}. Whoever only reads makes nothing")
    _is_denied(lambda: reader.create_amid_faults(name="db.new"), "makes a table")
    _is_denied(lambda: reader.table("db.t").append(1), "appends to a table")
    if lake.declares(Feature.OVERWRITE):
        _is_denied(lambda: reader.table("db.t").round(token(1), [[9]], WriteMode.OVERWRITE), "overwrites a table")
    if lake.declares(Feature.DROP_TABLE):
        _is_denied(lambda: reader.storage.catalog().drop_table(TablePath.parse("db.t")), "drops a table")
    expect(table.ids, ids_of(0), "after an account that may only read tried to write: the ids")


def _is_denied(write: Callable[[], object], told_as: str) -> None:
    try:
        write()
    except (TableNotFound, Conflict, Refused) as error:
        pytest.fail(
            f"an account that may only read {told_as}: expected an error of the storage, found {told(error)}, on which "
            "a caller acts as if the table were so"
        )
    except LaketierError:
        return
    raise HarnessFailed(f"the options of the harness's for_readers are of an account that may write: it {told_as}")
