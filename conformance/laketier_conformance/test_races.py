"""Several processes at once, and several threads of one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

import pyarrow as pa
import pytest

from laketier.spi import AddColumn, Feature, ScanRequest
from laketier.tiering import RoundOutcome
from laketier_conformance.children import Child, Patience
from laketier_conformance.delivery import ids_until, made_whole, replay, round_of
from laketier_conformance.expect import expect
from laketier_conformance.interposed.deciding import NOWHERE
from laketier_conformance.interposed.disk import SYNCS, WRITES
from laketier_conformance.interposed.runs import Interposed, spread
from laketier_conformance.lake import SCHEMA, Lake, Table, ids_of, overtaken, read_split

Take = Callable[[int], list[Child]]
PROCESSES = 3
STREAMS, EPOCHS = 3, 2


def test_drivers_of_the_same_epoch(table: Table, children: Take) -> None:
    """All staged before any commits. One publishes; the others find the epoch there, and delete what is theirs."""
    table.append(0)
    drivers = children(PROCESSES)
    for driver in drivers:
        driver.begin(table.lake, "round", table="db.t", pipeline="p", epoch=1, tasks=[ids_of(1)], wait=True)
    assert all(driver.answer() == {"ready": True} for driver in drivers), "each driver has staged its rows"
    for driver in drivers:
        driver.go()
    outcomes = Counter(answer.get("outcome", str(answer)) for answer in [driver.answer() for driver in drivers])
    expect(
        outcomes,
        {RoundOutcome.PUBLISHED.name: 1, RoundOutcome.ALREADY_THERE.name: PROCESSES - 1},
        "the outcomes of drivers of the same epoch",
    )
    expect(table.ids, ids_of(0) + ids_of(1), "rows after drivers raced for an epoch")
    expect(table.append(2).outcome, RoundOutcome.PUBLISHED, "the outcome of the epoch after a race")


def test_pipelines_side_by_side(table: Table, children: Take) -> None:
    """Each process runs epochs of its own pipeline as fast as it can. Nothing is lost, and nothing is doubled."""
    drivers = children(PROCESSES)
    for number, driver in enumerate(drivers):
        epochs = [ids_of(epoch, number) for epoch in range(3)]
        driver.begin(table.lake, "rounds", table="db.t", pipeline=f"p{number}", epochs=epochs)
    assert all(driver.answer() == {"ready": True} for driver in drivers), "each driver is ready to run its epochs"
    for driver in drivers:
        driver.go()
    for driver in drivers:
        expect(
            driver.answer(), {"outcomes": [RoundOutcome.PUBLISHED.name] * 3}, "the outcomes of a pipeline beside others"
        )
    expect(
        table.ids,
        sorted(i for epoch in range(3) for number in range(PROCESSES) for i in ids_of(epoch, number)),
        "rows of pipelines side by side",
    )
    for number in range(PROCESSES):
        mark = table.watermark(f"p{number}")
        assert mark is not None, f"the pipeline p{number} has a watermark"
        expect(mark.token.epoch, 2, f"the epoch of the watermark of p{number}")


def test_streams_of_one_process(lake: Lake) -> None:
    """A driver runs each stream in a thread of its own. What a format keeps for the process serves all of them: of
    another thread's transaction nothing is read, committed or rolled back. Some write to one table: a lock that belongs
    to the process keeps no thread out, and a temporary file has no name that the process has once."""
    tables = [lake.create(name=f"db.t{number}") for number in range(STREAMS)]
    shared = lake.create(name="db.shared")
    together = threading.Barrier(STREAMS)

    def alone(number: int) -> None:
        for epoch in range(EPOCHS):
            tables[number].append(epoch)
            tables[number].read()

    def beside(number: int) -> None:
        for epoch in range(EPOCHS):
            shared.append(epoch, ids_of(epoch, number), pipeline=f"p{number}")

    def stream(work: Callable[[int], None], number: int) -> str:
        together.wait()
        try:
            work(number)
        except Exception as error:  # noqa: BLE001 - whatever it is, a thread is told of it by its name
            return f"{type(error).__name__}: {error}"
        return "no error"

    wanted = [i for epoch in range(EPOCHS) for i in ids_of(epoch)]
    of_all = sorted(i for epoch in range(EPOCHS) for number in range(STREAMS) for i in ids_of(epoch, number))
    with ThreadPoolExecutor(STREAMS) as pool:
        for work, to in ((alone, "tables of their own"), (beside, "one table")):
            told = list(pool.map(partial(stream, work), range(STREAMS)))
            expect(told, ["no error"] * STREAMS, f"what streams ended with that ran in threads of one process, to {to}")
    expect([table.ids for table in tables], [wanted] * STREAMS, "rows of streams that ran in threads of one process")
    expect(shared.ids, of_all, "rows of one table that streams in threads of one process wrote to")
    marks = [shared.watermark(f"p{number}") for number in range(STREAMS)]
    found = [None if mark is None else mark.token.epoch for mark in marks]
    expect(found, [EPOCHS - 1] * STREAMS, "epochs of streams to one table that ran in threads of one process")


def test_a_round_while_its_process_reads(table: Table) -> None:
    """A reader takes one batch, and the next one later. Its snapshot is none of the round's, and ends no round. A
    format that keeps one state of its rows may refuse what is left of it, and shows none of the new rows."""
    table.append(0)
    source = table.source
    plan = source.plan(ScanRequest(columns=("id",)))
    batches = (batch for split in plan.splits for batch in read_split(source, split, plan.schema))
    found = list(islice(batches, 1))
    expect(table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of a round beside a reader of its process")
    expect(table.append(1).outcome, RoundOutcome.ALREADY_THERE, "the outcome of its replay beside that reader")
    with overtaken(table.lake.plugin.features):
        found.extend(batches)
        ids = sorted(i for batch in found for i in batch.column("id").to_pylist())
        expect(ids, ids_of(0), "rows of a reader beside a round of its process")
    expect(table.ids, ids_of(0) + ids_of(1), "rows of a round beside a reader of its process")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_columns_added_side_by_side(table: Table, children: Take) -> None:
    """Each process adds columns of its own, one after the other. No step takes back what another process did."""
    table.append(0)
    # A format without it refuses here.
    table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("of_none", pa.int64()))])
    changers = children(PROCESSES)
    added = [[f"of_{number}_{column}" for column in range(3)] for number in range(PROCESSES)]
    for changer, names in zip(changers, added, strict=True):
        changer.begin(table.lake, "alter", table="db.t", columns=names, wait=True)
    assert all(changer.answer() == {"ready": True} for changer in changers), "each process is ready to add columns"
    for changer in changers:
        changer.go()
    answers = [changer.answer() for changer in changers]
    expect(
        sorted(table.info.schema.names),
        sorted([*SCHEMA.names, "of_none", *(name for names in added for name in names)]),
        f"the columns that processes added side by side, which said {answers}",
    )
    expect(table.append(0).outcome, RoundOutcome.ALREADY_THERE, "the outcome of a replay after columns were added")
    expect(table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of the next epoch after columns were added")


@pytest.mark.needs(Feature.ADD_COLUMN)
def test_a_column_comes_before_effects_of_a_round(
    table: Table, children: Take, runs: Interposed, pytestconfig: pytest.Config
) -> None:
    """Another process adds it while the round waits. Rows that were staged before may be refused then. Who commits in
    several steps may not lose them between two, and remember their epoch."""
    changers: list[Child] = []
    patience, steps = Patience(), (*SYNCS, *WRITES)

    def change(column: str) -> None:
        (changer,) = children(1)
        changers.append(changer)
        changer.begin(table.lake, "alter", table="db.t", columns=[column])
        patience.came(changer)

    table.append(0)
    whole = runs.run(at=NOWHERE, but=steps, **round_of(1))
    expect((whole.answer or {}).get("outcome"), "PUBLISHED", "the outcome of a round that nothing comes upon")
    some = (pytestconfig.getoption("lake_steps"), pytestconfig.getoption("lake_seed"))
    for epoch, at in enumerate(spread(len(whole.steps), *some), start=2):
        column = f"came_{epoch}"
        run = runs.run(at=at, but=steps, meanwhile=partial(change, column), **round_of(epoch))
        told = f"{runs.told(run, 'another process added a column before')}, and the round ended with {run.answer}"
        while changers:
            changer = changers.pop()
            answer = changer.answer()
            changer.stop()
            assert column in answer.get("columns", ()), f"{told}: the column was added: found {answer}"
            assert column in table.info.schema.names, f"{told}: the column stays: found {table.info.schema.names}"
        ended = {"outcome", "refused"} & (run.answer or {}).keys()
        assert ended, f"{told}: expected that it is published, or refused for the columns that its files lack"
        made_whole(table, epoch, ids_until(epoch), ids_until(epoch + 1), partial(replay, table, epoch), told)


def test_creating_the_same_table(lake: Lake, children: Take) -> None:
    creators = children(PROCESSES)
    for creator in creators:
        creator.begin(lake, "create", table="db.raced")
    assert all(creator.answer() == {"ready": True} for creator in creators), "each process is ready to create the table"
    for creator in creators:
        creator.go()
    answers = [creator.answer() for creator in creators]
    expect(
        {answer.get("uuid") for answer in answers},
        {lake.table("db.raced").info.table_uuid},
        f"the uuids that processes were given which created one table: {answers}",
    )
    raced = lake.table("db.raced")
    raced.append(0)
    expect(raced.ids, ids_of(0), "rows of a table that several processes created")
