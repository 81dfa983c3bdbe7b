"""What runs on executors: factories and sources that came as bytes, and no table metadata."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.registry import installed_formats
from laketier.spi import (
    AddColumn,
    Feature,
    Leaf,
    Op,
    PartitionField,
    ScanRequest,
    WriteResult,
    new_attempt_id,
    pack,
    unpack,
)
from laketier_conformance import apart
from laketier_conformance.children import Child
from laketier_conformance.expect import expect, goes_well
from laketier_conformance.interposed.looks import Looks
from laketier_conformance.lake import Lake, Table, batch, ids_of, read_plan, token
from laketier_conformance.operations import went_well
from laketier_conformance.outside import in_parts, left_by, local_folder

ENDS_WITHIN_SECONDS = 30.0
OF_TASKS = "metadata that executors read"


@pytest.fixture(scope="module")
def workers() -> Iterator[dict[str, Child]]:
    """By format, in a run of several. Not those of `Children`, which end with each test."""
    alive: dict[str, Child] = {}
    yield alive
    for child in alive.values():
        child.stop()


@pytest.fixture
def interpreter(format_name: str, workers: dict[str, Child]) -> Child:
    """One for all of them, as an engine uses a worker for several tasks. Tests come in any order, so there is another
    one after that which ends it. In it no assert checks anything."""
    if format_name not in workers:
        workers[format_name] = Child.fresh(format_name, "-O")
    return workers[format_name]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_an_executor_writes_with_what_it_was_given(table: Table, interpreter: Child) -> None:
    """It reads no table metadata (as far as Python opens the files), and imports no other format. One file may be
    looked at, to see that the executor's file system is the driver's."""
    for epoch in range(3):
        table.append(epoch)
    before = table.lake.files()
    factory = table.factory
    answer = interpreter.ask(table.lake, "stage", factory=_text(pickle.dumps(factory)), ids=ids_of(3))
    assert "opened" in answer, f"an executor stages rows with what it was given: found {answer}"
    root = Path(table.lake.location)
    read = [path for path, how in answer["opened"] if how == "read" and Path(path).is_relative_to(root)]
    known = {path for path in read if str(Path(path).relative_to(root)) in before}
    assert len(in_parts(known, {str(root / name) for name in before})) <= 1, (
        f"an executor read {known}: what a writer needs travels with its factory"
    )
    others = {offer.module.partition(".")[0] for offer in installed_formats() if offer.name != table.lake.format}
    assert not others & {name.partition(".")[0] for name in answer["modules"]}, (
        f"an executor imports no other format: {sorted(others)} are there"
    )
    result: WriteResult = unpack(factory.write_result_serializer, base64.b64decode(answer["message"]))
    table.commit([result], token(3))
    expect(
        table.ids,
        [i for epoch in range(4) for i in ids_of(epoch)],
        "rows that an executor staged with what it was given",
    )


@pytest.mark.usefixtures("looks")  # skips it where nothing can be seen
def test_an_executor_opens_no_metadata(
    table: Table, folder: Path, children: Callable[[int], list[Child]], unproven: Callable[[str, str], None]
) -> None:
    """By any library: the kernel tells what a task opens. Data files are what tasks left, and what tasks write to is
    theirs; all else is the driver's. One file may be looked at, as above, which a database may have in parts: its log
    has its name. Of a task that reads no data file the rows lie in the driver's own ones, and nobody can tell more."""
    root = local_folder(table.lake.location)
    left = [left_by(table, epoch) for epoch in range(3)]
    data = {content for each in left for content in each.values()}
    if root is None or not data:
        unproven(OF_TASKS, "tasks leave no files in a local folder")
        return
    driver = apart.read_all({str(root / name) for name in table.lake.files()})
    rows = {path for path, holds in driver.items() if holds in data}
    metadata = driver.keys() - rows - {path for each in left for path in each}
    source, factory = table.source, table.factory
    plan = source.plan(ScanRequest(columns=("id",)))
    read = {"source": _text(pickle.dumps(source)), "schema": _text(pickle.dumps(plan.schema))}
    split = _text(pack(source.split_serializer, plan.splits[0]))
    requests: dict[str, dict[str, Any]] = {
        "stage": {"factory": _text(pickle.dumps(factory)), "ids": ids_of(3)},
        "read": {**read, "split": split},
    }
    [child] = children(1)
    for do, request in requests.items():
        child.ask(table.lake, do, **request)  # what is done the first time only, modules that are imported among it
    with Looks.of(child, table.lake, folder) as looked:
        for do, request in requests.items():
            run = looked.ask(do, **request)
            assert went_well(run.answer), f"an executor is asked to {do}: found {run.answer}"
            opened = {path for look in run.steps if look.call.startswith("open") for path in look.on}
            if do == "read" and not opened & rows:
                unproven(OF_TASKS, "a task that reads opens no file that a task left: the rows lie in the driver's")
                continue
            shown = sorted(path.removeprefix(f"{root}/") for path in opened & metadata)
            assert len(in_parts(opened & metadata, driver)) <= 1, (
                f"an executor is asked to {do}, and opens {shown}, which no task made: expected one file at most, as "
                "what a task needs travels with its factory or its split"
            )


def test_an_executor_is_on_another_host(
    table: Table, interpreter: Child, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What the driver noted in a module is not there, and when the commit comes, nor are its temporary files. It takes
    columns in any order, and refuses a batch that does not fit, as the driver would."""
    host = tmp_path_factory.mktemp("host")  # it is there as long as the interpreter
    (temporary := host / "temporary").mkdir()
    factory = table.factory
    asked = {"factory": _text(pickle.dumps(factory)), "ids": ids_of(0), "temporary": str(temporary)}
    answer = interpreter.ask(table.lake, "stage_elsewhere", **asked)
    assert "staged" in answer, f"an executor on another host refuses what does not fit, and stages rows: found {answer}"
    result: WriteResult = unpack(factory.write_result_serializer, base64.b64decode(answer["staged"]))
    temporary.rename(away := host / "away")
    with goes_well("rows are committed that were staged on a host whose temporary files are gone"):
        table.commit([result], token(0))
    away.rename(temporary)  # the host still has them
    expect(table.ids, ids_of(0), "rows that were staged on another host")


def test_an_executor_reads_a_split(table: Table, interpreter: Child) -> None:
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    source = table.source
    plan = source.plan(ScanRequest(columns=("id",)))
    found: list[int] = []
    for split in plan.splits:
        answer = interpreter.ask(
            table.lake,
            "read",
            source=_text(pickle.dumps(source)),
            schema=_text(pickle.dumps(plan.schema)),
            split=_text(pack(source.split_serializer, split)),
        )
        assert "ids" in answer, f"an executor reads a split with what it was given: found {answer}"
        found += answer["ids"]
    expect(sorted(found), ids_of(0, 0) + ids_of(0, 1), "rows that an executor read of splits")


def test_a_worker_outlives_what_it_knows(lake: Lake, interpreter: Child) -> None:
    """An engine keeps a worker for the tasks of many jobs. Meanwhile a task of it fails, and the driver commits, alters
    the table, drops it, and makes another one."""
    by = (PartitionField("name"),) if lake.declares(Feature.PARTITIONING) else ()
    table = lake.create(name="db.kept", partition_by=by)

    def commit(epoch: int, rows: pa.RecordBatch) -> None:
        factory = table.factory
        request = {"factory": _text(pickle.dumps(factory)), "rows": _stream(rows)}
        answer = interpreter.ask(lake, "stage_rows", **request, fails=False)
        assert "staged" in answer, f"a worker stages rows that has done other tasks: found {answer}"
        table.commit([unpack(factory.write_result_serializer, base64.b64decode(answer["staged"]))], token(epoch))

    def read(what: str, *expected: pa.RecordBatch) -> None:
        source = table.source
        plan = source.plan(ScanRequest())
        splits = [_text(pack(source.split_serializer, split)) for split in plan.splits]
        request = {"source": _text(pickle.dumps(source)), "schema": _text(pickle.dumps(plan.schema))}
        answer = interpreter.ask(lake, "read_rows", **request, splits=splits)
        assert "rows" in answer, f"a worker reads {what}: found {answer}"
        found = pa.ipc.open_stream(base64.b64decode(answer["rows"])).read_all()
        rows = pa.concat_tables([pa.Table.from_batches([each]) for each in expected], promote_options="default")
        expect(_by_id(found), _by_id(rows), f"rows that a worker reads, {what}")

    table.append(0)
    read("which no task was before", first := batch(ids_of(0)))
    factory = table.factory
    lost = {"factory": _text(pickle.dumps(factory)), "rows": _stream(batch(ids_of(7)))}
    answer = interpreter.ask(lake, "stage_rows", **lost, fails=True)
    assert answer == {"failed": True}, f"a task fails in a worker as what feeds it does: found {answer}"
    commit(1, second := batch(ids_of(1)))
    read("after a task of it failed, and the next one was committed", first, second)
    named = Leaf("name", Op.EQ, second["name"][0].as_py())
    found = sorted(table.read(filters=(named,))["id"].to_pylist())
    expect(found, ids_of(1)[:1], f"ids that the driver finds by the filter {named}, of rows that a worker wrote")
    if lake.declares(Feature.ADD_COLUMN):
        lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("more", pa.int64()))])
        commit(2, third := batch(ids_of(2)).append_column("more", pa.array(ids_of(2), pa.int64())))
        read("after the driver added a column", first, second, third)
    if lake.declares(Feature.DROP_TABLE):
        lake.storage.catalog().drop_table(table.path)
        table = lake.create(name="db.kept", partition_by=by)
        commit(0, fourth := batch(ids_of(4)))
        read("after the driver dropped the table, and made another one", fourth)


def _stream(rows: pa.RecordBatch) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return _text(sink.getvalue())


def _by_id(rows: pa.Table) -> list[dict[str, object]]:
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


def test_reads_of_a_source_leave_it_as_it_is(table: Table) -> None:
    """A task that reads two splits at a time, one that gives up in the middle, and one that begins again."""
    table.append(0, ids_of(0, 0), ids_of(0, 1))
    source = table.source
    plan = source.plan(ScanRequest(columns=("id",)))
    for split in plan.splits:
        next(iter(source.read(split, plan.schema)), None)
    readers = [iter(source.read(split, plan.schema)) for split in (*plan.splits, *reversed(plan.splits))]
    found: list[int] = []
    while readers:
        left = []
        for reader in readers:
            rows = next(reader, None)
            if rows is not None:
                found += rows["id"].to_pylist()
                left.append(reader)
        readers = left
    expected = ids_of(0, 0) + ids_of(0, 1)
    expect(sorted(found), sorted(2 * expected), "rows of splits that are read at once, and each of them twice")
    again = pickle.loads(pickle.dumps(source))  # noqa: S301 - as Spark does
    expect(sorted(read_plan(again, plan)["id"].to_pylist()), expected, "rows of a source that was pickled after use")


def test_a_factory_stays_picklable_after_use(table: Table) -> None:
    factory = table.factory
    before = len(pickle.dumps(factory))
    table.stage(ids_of(0), factory=factory)
    again = pickle.loads(pickle.dumps(factory))  # noqa: S301 - as Spark does
    assert len(pickle.dumps(factory)) < before + 4096, "no handles, no caches"
    result = unpack(again.write_result_serializer, table.stage(ids_of(1), factory=again))
    table.commit([result], token(0))
    expect(table.ids, ids_of(1), "rows that a factory staged which was pickled after use")


def test_checks_are_made_without_asserts(table: Table, interpreter: Child) -> None:
    """`python -O` leaves asserts out, and whatever asks for `__debug__`: results are checked all the same."""
    message, committer = table.stage(ids_of(0)), table.committer()
    committer.discard([unpack(table.factory.write_result_serializer, message)])
    committer.close()
    commit = new_attempt_id()
    asked = {"table": "db.t", "epoch": 0, "commit": commit, "message": _text(message), "batch": False}
    answer = interpreter.ask(table.lake, "publish", **asked)
    assert answer.get("certain"), (
        "in a process that runs with `python -O`, a result is published whose files are gone: expected StagedFileLost, "
        f"found {answer}"
    )
    expect(table.ids, [], "rows after a result was refused by a process that runs with `python -O`")


def test_a_process_that_used_a_table_ends(
    table: Table, interpreter: Child, workers: dict[str, Child], format_name: str
) -> None:
    """Neither a thread, a pool nor a loop keeps it alive, and nothing fails as it ends: a job that is done is over."""
    answer = interpreter.ask(table.lake, "imports")
    assert "rows" in answer, f"a process used a table, and ended in an error: {answer}"
    del workers[format_name]
    code = interpreter.ends_within(ENDS_WITHIN_SECONDS)
    interpreter.stop()
    assert code is not None, f"a process used a table, and goes on {ENDS_WITHIN_SECONDS:.0f} s after it was done"
    expect(code, 0, "what a process ends with that used a table")
