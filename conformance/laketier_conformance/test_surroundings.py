"""What a process finds where it runs: its encoding, its folder for temporary files, its limits and random numbers, its
zone, the dates of files, the numbers of objects. None of it changes what a table holds."""

from __future__ import annotations

import builtins
import gc
import importlib
import io
import itertools
import os
import platform
import random
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import Feature, Leaf, Op, PartitionField, ScanRequest, SnapshotNotFound, UnsupportedType
from laketier.tiering import RoundOutcome
from laketier_conformance.expect import expect, told
from laketier_conformance.lake import Lake, Table, ids_of, read_plan, tick, token
from laketier_conformance.outside import local_folder
from laketier_conformance.reused_numbers import ReusedNumbers

FILES = 32
SPARE = 24
"""Fewer than the files of a plan, and more than what is open beside them."""
NAMED = "caf\u00e9-\u65e5\u672c"


@pytest.fixture
def ascii_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text files that are opened without an encoding are in the locale's: here one that has ASCII alone."""
    opened = io.open

    def narrow(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, *more: Any, **named: Any
    ) -> Any:
        if "b" not in mode and encoding in (None, "locale"):
            encoding = "ascii"
        return opened(file, mode, buffering, encoding, *more, **named)

    monkeypatch.setattr(io, "open", narrow)
    monkeypatch.setattr(builtins, "open", narrow)
    monkeypatch.setattr(io, "text_encoding", lambda given, level=2: given or "locale")  # noqa: ARG005


@pytest.mark.usefixtures("ascii_locale")
def test_files_have_an_encoding_of_their_own(lake: Lake) -> None:
    """Neither that of the driver's locale nor that of an executor's, which may be another one."""
    try:
        table = lake.create(comment=NAMED, properties={"note.of": NAMED})
        published = table.append(0, pipeline=NAMED).outcome
        outcome = table.append(0, pipeline=NAMED).outcome
        found = table.ids
    except UnicodeError as error:
        pytest.fail(f"a pipeline is called {NAMED!r}, and the locale's encoding is ASCII: {told(error)}")
    expect(published, RoundOutcome.PUBLISHED, f"the outcome of {NAMED!r}, where the locale's encoding is ASCII")
    expect(outcome, RoundOutcome.ALREADY_THERE, f"the replay of {NAMED!r}, where the locale's encoding is ASCII")
    expect(found, ids_of(0), "rows where the locale's encoding is ASCII")


ZONES = ("EST5EDT,M3.2.0,M11.1.0", "IST-5:30")
CLOCKS = ("2026-11-21 08:30:15.123456", "2026-03-08 02:30:00", "2026-11-01 01:30:00", "1969-12-31 23:59:59.999999")
"""One of them is on no clock of the first zone, and one is there twice."""


@pytest.fixture
def live_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the zone of this process's clocks, and of its sessions with PostgreSQL."""

    def move(zone: str) -> None:
        for name in ("TZ", "PGTZ"):
            monkeypatch.setenv(name, zone)
        time.tzset()

    yield move
    monkeypatch.undo()
    if hasattr(time, "tzset"):
        time.tzset()


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()], ids=["clock", "moment", "day"]
)
def test_moments_of_processes_in_other_zones(
    lake: Lake, kind: pa.DataType, live_in: Callable[[str], None], unproven: Callable[[str, str], None]
) -> None:
    """An executor's clocks may show another zone than the driver's. A moment is no clock's, and a day no moment, also
    where rows are parted by them. Nor does time travel go by the zone."""
    if not hasattr(time, "tzset"):
        unproven("processes in other zones", "this system keeps the zone of a process for itself")
        return
    values = pa.array(CLOCKS).cast(pa.timestamp("us")).cast(kind)
    schema = pa.schema([("id", pa.int64()), ("v", kind)])
    rows = pa.record_batch([pa.array(range(len(CLOCKS)), pa.int64()), values], schema=schema)
    parted = [(PartitionField("v"),)] if lake.declares(Feature.PARTITIONING) else []
    for number, partition_by in enumerate([(), *parted]):
        try:
            table = lake.create(schema, f"db.moments{number}", partition_by=partition_by)
        except UnsupportedType:
            continue
        live_in(ZONES[0])
        snapshot = table.publish_arrow([rows], token(0)).snapshot_id
        moment = tick()
        table.publish_arrow([rows.slice(0, 0)], token(1))
        for zone in ZONES:
            live_in(zone)
            parts = ", by which rows are parted" if partition_by else ""
            about = f"{kind}{parts}, written in {ZONES[0]}, read in {zone}"
            expect(table.read().sort_by("id")["v"].to_pylist(), values.to_pylist(), f"values of {about}")
            for at, value in enumerate(values):
                ids = table.read(filters=(Leaf("v", Op.EQ, value.as_py()),))["id"].to_pylist()
                alike = [i for i, other in enumerate(values) if other == value]
                expect(sorted(ids), alike, f"ids of rows whose value is {CLOCKS[at]}: {about}")
            if lake.declares(Feature.TIME_TRAVEL_BY_TIMESTAMP):
                expect(_snapshot_at(table, moment), snapshot, f"the snapshot of a moment, for who lives in {zone}")


def _snapshot_at(table: Table, moment: int) -> object:
    try:
        return table.source.plan(ScanRequest(as_of=moment)).snapshot_id
    except SnapshotNotFound as error:
        return told(error)


@pytest.fixture
def elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path | None]:
    """The folder for temporary files is on another device than the table. None where there is no other."""
    for place in ("/dev/shm", "/run", "/var/tmp", str(Path.home())):
        if os.access(place, os.W_OK) and os.stat(place).st_dev != folder.stat().st_dev:
            with tempfile.TemporaryDirectory(dir=place) as other:
                for name in ("TMPDIR", "TEMP", "TMP"):
                    monkeypatch.setenv(name, other)
                monkeypatch.setattr(tempfile, "tempdir", None)
                yield Path(other)
            monkeypatch.setattr(tempfile, "tempdir", None)
            return
    yield None


def test_temporary_files_are_on_another_device(
    table: Table, elsewhere: Path | None, unproven: Callable[[str, str], None]
) -> None:
    """From there no file is renamed into the table: it would be copied, and a reader or a crash come in between."""
    if elsewhere is None:
        unproven("temporary files on another device", "there is no other device here")
    try:
        table.append(0, ids_of(0), ids_of(1))
    except Exception as error:  # noqa: BLE001 - reported
        pytest.fail(f"the folder for temporary files is on another device, and a round fails: {told(error)}")
    expect(table.ids, ids_of(0) + ids_of(1), "rows of a process whose temporary files are on another device")
    left = [] if elsewhere is None else sorted(path.name for path in elsewhere.rglob("*") if path.is_file())
    expect(left, [], "files that a round leaves in the folder for temporary files")


@pytest.fixture
def live_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Moves this process to another host: it has another name, and the user another home and other temporary files."""

    def move(host: str) -> None:
        for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMPDIR", "TEMP", "TMP"):
            folder = tmp_path / host / name.lower()
            folder.mkdir(parents=True, exist_ok=True)
            monkeypatch.setenv(name, str(folder))
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.setattr(socket, "gethostname", lambda: host)
        monkeypatch.setattr(platform, "node", lambda: host)

    yield move
    monkeypatch.undo()


def test_a_driver_goes_on_on_another_host(
    table: Table, live_on: Callable[[str], None], unproven: Callable[[str, str], None]
) -> None:
    """What a format keeps in the user's home, or in a folder for temporary files, other hosts do not have; and when a
    driver comes back it is old. A home may also have what each host needs: a login, or a library's extensions."""
    live_on("new")
    try:
        table.lake.create(name="db.new").append(0)
    except Exception as error:  # noqa: BLE001 - reported
        unproven("drivers on other hosts", f"in another home no table can be made and used: {told(error)}")
        return
    for epoch, host in enumerate(("one", "one", "two", "one", "two")):
        live_on(host)
        outcomes = [table.append(each).outcome for each in (epoch - 1, epoch) if each >= 0]
        wanted = [RoundOutcome.ALREADY_THERE, RoundOutcome.PUBLISHED][-len(outcomes) :]
        expect(outcomes, wanted, f"a replay and epoch {epoch} of a driver that is now on host {host!r}")
    expect(table.ids, [i for epoch in range(5) for i in ids_of(epoch)], "rows of a driver that changed its host")


def _descriptors() -> Set[int]:
    """Those that are open: Linux and macOS list them. Nothing where nobody does."""
    for place in ("/proc/self/fd", "/dev/fd"):
        if os.path.isdir(place):
            return {int(name) for name in os.listdir(place)}
    return frozenset()


def _limit_with(spare: int) -> int:
    """The limit that leaves so many descriptors: the system gives the least that is free, and a process that has lived
    long has free ones between those that are open."""
    taken = _descriptors()
    return next(itertools.islice((number for number in itertools.count() if number not in taken), spare, None))


def test_many_files_are_read_with_few_descriptors(table: Table, unproven: Callable[[str, str], None]) -> None:
    """A process may have 1,024 of them, and a table more files than that."""
    if not _descriptors():
        unproven("reading with few descriptors", "this system does not list the descriptors that are open")
        return
    resource = importlib.import_module("resource")  # where descriptors are listed, they are limited, too
    table.append(0, *([number] for number in range(FILES)))
    table.read()  # whatever is opened once for a process is open
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = min(soft, _limit_with(SPARE))
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        found = table.ids
        table.append(1, *([FILES + number] for number in range(FILES)))
    except OSError as error:
        pytest.fail(f"a table of {FILES} files is read, and one more descriptor than {SPARE} is needed: {told(error)}")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    expect(found, list(range(FILES)), f"rows of a table of {FILES} files, by a process with few descriptors")
    expect(table.ids, list(range(2 * FILES)), f"rows of a commit of {FILES} files, by a process with few descriptors")


def _seed() -> None:
    random.seed(7)


@pytest.fixture
def kept_randomness() -> Iterator[None]:
    kept = random.getstate()
    yield
    random.setstate(kept)


@pytest.mark.usefixtures("kept_randomness")
def test_random_numbers_that_come_again(table: Table) -> None:
    """An application seeds them, and so each task does; a process that is forked has those of its parent. Attempts and
    their files are different all the same."""
    messages = []
    for number in range(2):
        _seed()
        messages.append(table.staged([number], number))
    attempts, files = {each.attempt for each in messages}, {file.path for each in messages for file in each.files}
    expect((len(attempts), len(files)), (2, 2), "attempts and files of two tasks that begin with the same seed")
    _seed()
    table.commit(messages, token(0))
    _seed()
    table.append(1, [2])
    expect(table.ids, [0, 1, 2], "rows of tasks and commits that begin with the same seed")


@pytest.mark.usefixtures("kept_randomness")
@pytest.mark.needs(Feature.DROP_TABLE)
def test_identities_do_not_come_again(lake: Lake) -> None:
    """Two tables of one name, made by processes with the same seed, are two: nobody takes one for the other."""
    _seed()
    first = lake.create().info.table_uuid
    lake.storage.catalog().drop_table(lake.table("db.t").path)
    _seed()
    second = lake.create().info.table_uuid
    assert first != second, (
        f"a table was dropped and made anew by a process with the same seed: both have the uuid {first}"
    )


_COLUMNS = (("id", "left", "right"), ("right", "id", "left"), ("left", "other", "id"))


@pytest.fixture
def reused_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's `id` gives a number again as soon as it may."""
    monkeypatch.setattr(builtins, "id", ReusedNumbers().number)


@pytest.mark.usefixtures("reused_numbers")
def test_numbers_of_objects_come_again(lake: Lake) -> None:
    """Python gives the `id` of an object that is gone to another one. What a plugin keeps of a schema, a batch or a
    table by that number is another one's then: of tables that are used in turn, each has its own columns."""
    for turn in range(2):
        for number, names in enumerate(_COLUMNS):
            _comes_and_goes(lake, f"db.t{number}", names if turn == 0 else names[::-1], names, turn)
            gc.collect()


def _comes_and_goes(lake: Lake, name: str, written: Sequence[str], names: Sequence[str], turn: int) -> None:
    """A round and some reads. Nothing is kept of them."""
    values = {each: [at if each == "id" else f"{name} {each} {at}" for at in range(turn + 1)] for each in names}
    kinds = {each: pa.int64() if each == "id" else pa.string() for each in names}
    table = lake.create(pa.schema([(each, kinds[each]) for each in names]), name)
    columns = {each: pa.array(values[each][turn:], kinds[each]) for each in written}
    table.publish_arrow([pa.record_batch(columns)], token(turn))
    for asked in (tuple(names), (names[-1],), (names[0],)):
        rows = table.read(columns=asked)
        found = {each: sorted(rows[each].to_pylist(), key=str) for each in rows.column_names}
        told = f"rows of {name}, which is used in turn with others, in the columns {', '.join(asked)}"
        expect(found, {each: values[each] for each in asked}, told)


def _all_dates(root: Path, moment: int) -> None:
    """Files and folders of the warehouse, as a copy, a backup or a coarse clock dates them."""
    for path in (root, *root.rglob("*")):
        os.utime(path, ns=(moment, moment), follow_symlinks=False)


@pytest.fixture
def dated(table: Table, unproven: Callable[[str, str], None]) -> Callable[[int], None]:
    """Gives all files of a warehouse one date. Where they are in no local folder, the report says so."""
    root = local_folder(table.lake.location)
    if root is None:
        unproven("dates of files", "the warehouse is no local folder")
        return lambda _: None
    return lambda moment: _all_dates(root, moment)


def test_dates_of_files_say_nothing(table: Table, dated: Callable[[int], None]) -> None:
    """A table that was copied, or put back, has files of other dates: they are the same rows, and more can come."""
    for epoch in range(2):
        table.append(epoch)
    for moment in (1_000_000_000, 4_000_000_000_000_000_000):
        dated(moment)
        try:
            expect(table.ids, ids_of(0) + ids_of(1), "rows of a table whose files have other dates")
            outcome = table.append(1).outcome
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(f"a table is read whose files have other dates: {told(error)}")
        expect(outcome, RoundOutcome.ALREADY_THERE, "the replay of an epoch in a table whose files have other dates")
    table.append(2)
    expect(table.ids, [i for epoch in range(3) for i in ids_of(epoch)], "rows of a table whose files had other dates")


def test_a_clock_that_stands_still_hides_no_commit(table: Table, dated: Callable[[int], None]) -> None:
    """Dates of files move in steps of milliseconds, on some disks of seconds. A reader that keeps what it read looks at
    more than these."""
    storage, info = table.lake.storage, table.info
    source = storage.source(info)
    for epoch in range(4):
        table.append(epoch)
        dated(1_700_000_000_000_000_000)
        expected = [i for each in range(epoch + 1) for i in ids_of(each)]
        expect(table.ids, expected, f"rows after epoch {epoch}, where all files have one date")
        kept = sorted(read_plan(source, source.plan(ScanRequest()))["id"].to_pylist())
        expect(kept, expected, f"rows after epoch {epoch} for who holds a source, where all files have one date")
        mark = table.watermark()
        assert mark is not None, "a pipeline has a watermark, where all files have one date"
        expect(mark.token.epoch, epoch, "the epoch of the watermark, where all files have one date")
