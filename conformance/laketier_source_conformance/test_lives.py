"""The life of a log: in a pickle, in threads, beside others, and after its end."""

from __future__ import annotations

import gc
import os
import pickle
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.rounds.checked_log import CheckedLog
from laketier.spi import TableLog
from laketier_conformance import started
from laketier_conformance.expect import NotShown, expect, goes_well
from laketier_source_conformance.children import Processes
from laketier_source_conformance.own_process import kept_process, of_the_process, put_variables
from laketier_source_conformance.reads import Read, by_turns, carried, read_range, read_splits, whole
from laketier_source_conformance.system import Table

_OFTEN = 8


def test_a_log_is_pickled_while_it_is_used(table: Table) -> None:
    """A round pickles it for each task, after `bounds` and `plan`, and while others read."""
    for _ in range(2):
        table.append(10)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    reading = log.log.read(splits[0])
    next(reading, None)
    with goes_well("a log is pickled while it is read"):
        data = pickle.dumps((log.log, splits))
    task, given = pickle.loads(data)  # noqa: S301 - our own bytes
    table.expect_rows(read_splits(task, given).rows, "a log out of a pickle that was made in mid-read")


def test_a_pickle_of_a_log_is_small(table: Table) -> None:
    """It goes to each task."""
    for _ in range(3):
        table.append(5)
    log = table.log()
    log.bounds()
    size = len(pickle.dumps(log.log))
    assert size < 1 << 20, f"a log of 15 rows is pickled for each task: expected less than 1 MiB, found {size} bytes"


def test_threads_read_splits_of_a_log_at_once(table: Table) -> None:
    for _ in range(4):
        table.append(25)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    task = carried(log)
    with ThreadPoolExecutor(4) as pool:
        reads = list(pool.map(lambda split: read_splits(task, [split]).rows, splits * 3))
    for time in range(3):
        rows = [row for read in reads[time * len(splits) : (time + 1) * len(splits)] for row in read]
        table.expect_rows(rows, "threads read the splits of one log at once")


def test_two_logs_of_a_table_are_open_at_once(table: Table) -> None:
    """A service opens it anew at each look, and closes the older one later."""
    table.append(5)
    first = table.log()
    first.bounds()
    second = table.log()
    table.append(5)
    table.expect_rows(read_range(first).rows, "a log is read that another one was opened beside")
    first.close()
    table.expect_rows(read_range(second).rows, "a log is read after an older one was closed")


def test_logs_of_one_source_are_read_by_turns(table: Table) -> None:
    """Two of one table, and one of another: a service has one source for all of them."""
    other = table.system.table("other")
    for each in (table, other):
        for _ in range(3):
            each.append(10)
    source, options = table.system.source(), table.system.harness.table_options
    logs = [source.open(each.listed, options) for each in (table, table, other)]
    found = by_turns([_batches(log) for log in logs])
    for each, batches in zip((table, table, other), found, strict=True):
        each.expect_rows(Read(batches).rows, f"logs of one source are read by turns: {each.name}")
    with ThreadPoolExecutor(len(logs)) as pool:
        reads = list(pool.map(lambda log: Read(list(_batches(log))).rows, logs))
    for each, rows in zip((table, table, other), reads, strict=True):
        each.expect_rows(rows, f"logs of one source are read in threads: {each.name}")
    for log in logs:
        log.close()


def _batches(log: TableLog) -> Iterator[pa.RecordBatch]:
    for split in log.plan(whole(log.bounds())):
        yield from log.read(split)


def test_a_log_is_closed_while_another_is_read(table: Table) -> None:
    for _ in range(2):
        table.append(10)
    first, second = table.log(), table.log()
    first.bounds()
    splits = list(second.plan(whole(second.bounds())))
    reading = second.log.read(splits[0])
    batches = [batch for batch in [next(reading, None)] if batch is not None]
    first.log.close()
    batches += [*reading, *read_splits(second, splits[1:]).batches]
    table.expect_rows(Read(batches).rows, "a log is read while another one of its table is closed")


def test_a_log_is_closed_once_a_newer_one_of_its_source_is_open(table: Table) -> None:
    """As a service does, which opens a table again at each look at its source."""
    table.append(3)
    source, options = table.system.source(), dict(table.system.harness.table_options)
    older, newer = (CheckedLog.of(source.open(table.listed, options), table.listed) for _ in range(2))
    older.bounds()
    older.log.close()
    table.append(3)
    table.expect_rows(read_range(newer).rows, "a log is read after an older one of its source was closed")
    newer.log.close()


def test_closing_a_log_closes_no_other_of_its_source(table: Table) -> None:
    """A service has one source, and a log of each table; it closes the older log of a table, and that of another."""
    table.append(5)
    other = table.system.table("other")
    other.append(2)
    source = table.system.source()
    options = table.system.harness.table_options
    first, second, third = (source.open(each.listed, options) for each in (table, table, other))
    for log in (first, second, third):
        log.bounds()
    first.close()
    third.close()
    table.expect_rows(read_range(second).rows, "a log is read after others of its source were closed")
    with goes_well("a source is asked for its tables after its logs were closed"):
        source.list_tables()
    again = source.open(other.listed, options)
    other.expect_rows(read_range(again).rows, "a log is read that was opened after others of its source were closed")
    again.close()
    second.close()


def test_a_log_is_closed_twice_and_in_another_thread(table: Table) -> None:
    table.append(2)
    log = table.log()
    read_range(log)
    with goes_well("a log is closed in another thread"):
        _in_a_thread(log.log.close)
    with goes_well("a log is closed twice"):
        log.log.close()
    never_used = table.log()
    with goes_well("a log is closed that was never asked anything"):
        never_used.log.close()
        never_used.log.close()


def test_a_source_is_closed_twice(table: Table) -> None:
    table.append(2)
    source = table.system.source()
    source.list_tables()
    with goes_well("a source is closed twice"):
        source.source.close()
        source.source.close()


def test_a_log_outlives_its_task(table: Table, processes: Processes) -> None:
    """Closed in a task's process, it goes on in the driver's."""
    table.append(5)
    log = table.log()
    splits = list(log.plan(whole(log.bounds())))
    task = carried(log)
    read_splits(task, splits)
    task.close()
    processes.read(log.log, splits)
    table.append(3)
    table.expect_rows(read_range(log).rows, "a log is asked again after tasks of it ended")


def test_a_log_is_asked_in_any_thread(table: Table) -> None:
    """A service plans each round in another one."""
    table.append(4)
    log = table.log()
    found: list[Read] = []
    _in_a_thread(lambda: found.append(read_range(log)))
    table.append(4)
    table.expect_rows(read_range(log).rows, "a log is read that another thread asked before")
    expect(len(found), 1, "the reads of the other thread")


def test_closed_logs_keep_no_descriptors(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor threads, nor temporary files. A service opens each table again and again, for months."""
    table.append(12)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        raise NotShown("descriptors", "the system does not show them in /proc")
    counts: list[dict[str, int]] = []
    for _ in range(3):
        for _ in range(_OFTEN):
            source = table.system.source()
            log = source.open(table.listed, table.system.harness.table_options)
            read_range(log)
            given_up = log.read(log.plan(whole(log.bounds()))[0])
            next(given_up, None)
            getattr(given_up, "close", lambda: None)()
            log.close()
            source.close()
        gc.collect()
        left = {"descriptors more are open": len(os.listdir(folder)), "threads more go on": threading.active_count()}
        counts.append({**left, "temporary files more are there": sum(1 for _ in tmp_path.rglob("*"))})
    for what, last in counts[-1].items():
        more = last - counts[0][what]
        assert more < _OFTEN, (
            f"a log was opened, read, begun to be read once more, and closed {2 * _OFTEN} times more: {more} {what}"
        )


def test_a_source_leaves_its_process_as_it_was(table: Table) -> None:
    """Other sources, formats and the user's own code are in it."""
    table.append(5)
    # A harness may start a server for them, and put what that needs: the source has no part in it.
    _ = table.system.harness.source_options, table.system.harness.table_options
    with kept_process(), put_variables() as put:
        before = of_the_process()
        log = table.log()
        read_range(log)
        log.close()
        found = of_the_process()
    changed = {what: (before[what], found[what]) for what in before if found[what] != before[what]}
    expect(changed, {}, "what is of the whole process and a source changed, by opening, reading and closing a log")
    expect(
        sorted(put),
        [],
        "variables of its process that a source set, and that stores, proxies or clocks of others go by",
    )


def test_a_source_leaves_a_process_of_its_own_as_it_was(table: Table, processes: Processes) -> None:
    """One that has nothing of the source yet: what it does once, as it is imported, others of this run did not see."""
    table.append(5)
    told = processes.ask("live", environment=dict(started.ENVIRONMENT), **table.named)
    expect(told["changed"], {}, "what is of a process and a source changed that is new in it")
    expect(
        told["put"],
        [],
        "variables that a source set in a process that it is new in, and that stores, proxies or clocks of others have",
    )


def _in_a_thread(do: Callable[[], object]) -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            do()
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
