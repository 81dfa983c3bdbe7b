"""Files that a process leaves open from one epoch to the next: each row is there once, whoever goes on. Where a format
leaves none, each round is whole, and the same holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

import pyarrow as pa
import pytest

from laketier.maintenance.orphans import collect_orphans
from laketier.spi import AddColumn, Feature, FeatureNotSupported, LakeMaintenance, LaketierError, WriteMode, unpack
from laketier.tiering import RoundOutcome, write_task
from laketier.tiering.open_files import finish_open_files
from laketier_conformance import apart
from laketier_conformance.expect import expect, goes_well
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, batch, ids_of, read_plan, token
from laketier_conformance.living import Living, left_open, tables
from laketier_conformance.outside import contents, local_folder, restore

NOT_PUBLISHED = 77
"""An epoch whose rows no commit has."""


def _has(table: Table, expected: Sequence[int], what: str) -> None:
    with goes_well(f"a table is read: {what}"):
        found = table.ids
    expect(found, expected, what)


def _ids(*epochs: int) -> list[int]:
    return [each for epoch in sorted(epochs) for each in ids_of(epoch)]


def _appended(table: Table, since: int) -> list[int]:
    """The ids that commits appended from a version on."""
    plan = table.changes.plan(since, table.latest)
    return sorted(read_plan(table.source, plan)["id"].to_pylist())


def test_epochs_of_one_process(lake: Lake, harness: Harness) -> None:
    """One of them has no rows. Each is there as soon as it is committed, and earlier snapshots and changes hold what
    they held. The last one leaves nothing."""
    for table in tables(lake, harness):
        living, seen, snapshots = Living(table), list[int](), dict[int, list[int]]()
        for epoch in range(5):
            living.slot.ending = epoch == 4
            before = table.latest if lake.declares(Feature.INCREMENTAL_READ) else 0
            ids = [] if epoch == 2 else ids_of(epoch)
            done, seen = living.append(epoch, ids), seen + ids
            what = f"epoch {epoch} of a process that lives over epochs was committed"
            _has(table, seen, f"{what}: rows")
            if lake.declares(Feature.INCREMENTAL_READ):
                expect(_appended(table, before), ids, f"{what}: rows that its changes have")
            if done.snapshot_id is not None:
                snapshots[done.snapshot_id] = list(seen)
            _is_told(table, living, epoch, what)
        if lake.declares(Feature.TIME_TRAVEL):
            for snapshot, ids in snapshots.items():
                found = sorted(table.read(snapshot_id=snapshot)["id"].to_pylist())
                expect(found, ids, f"rows of snapshot {snapshot}, of an epoch of a process that went on")


def _is_told(table: Table, living: Living, epoch: int, what: str) -> None:
    """The table tells of the files that wait in the process's slot, and of no others."""
    files = left_open(table)
    if living.slot.ending:
        assert living.slot.is_empty, f"{what}, and no other follows: its writer left nothing in its slot, found files"
    if not files:
        _holds_no_file(table, living, what)
        return
    pipelines = set() if living.slot.is_empty else {living.pipeline}
    told = f"{what}: the pipelines that have files open, as `open_files` tells"
    expect({file.pipeline for file in files}, pipelines, told)
    assert table.factory.leaves_files_open, f"{what}, and left files open: `leaves_files_open` is true, found false"
    expect({file.epoch for file in files}, {epoch}, f"{what}: the last epoch of its open files, as `open_files` tells")
    expect(len({file.path for file in files}), len(files), f"{what}: paths of its open files")
    rows = sum(file.rows for file in files)
    assert rows <= len(table.ids), f"{what}: its open files have no more rows than the table, found {rows}"
    assert all(file.bytes > 0 for file in files if file.rows), f"{what}: an open file has bytes, found {files}"


def _holds_no_file(table: Table, living: Living, what: str) -> None:
    """A writer may keep something else for the next epoch: then there is nothing to finish."""
    was, done = living.slot.ending, finish_open_files(table.factory, living.slot, ending=True)
    living.slot.ending = was
    assert done is None, f"{what}: no file is open of which `open_files` does not tell, found some that were finished"


@pytest.mark.parametrize("is_closed", [False, True], ids=["frozen", "closed"])
def test_another_process_goes_on(lake: Lake, harness: Harness, is_closed: bool) -> None:
    """The first one gave up what it had, or only seemed dead and goes on later."""
    for table in tables(lake, harness):
        first, second = Living(table), Living(table)
        for epoch in range(2):
            first.append(epoch)
        left = {file.path for file in left_open(table)}
        for _ in range(2 * is_closed):
            with goes_well("a process gives up what it left open"):
                first.slot.close()
        _has(table, _ids(0, 1), "rows between a process and the one that goes on with its pipeline")
        second.append(2)
        _has(table, _ids(0, 1, 2), "rows after another process went on with a pipeline")
        still = left & {file.path for file in left_open(table)}
        expect(still, set(), "files that a process left open, after the next one of its pipeline committed")
        for epoch, living in ((3, Living(table) if is_closed else first), (4, second)):
            outcome = living.append(epoch).outcome
            expect(outcome, RoundOutcome.PUBLISHED, f"the outcome of epoch {epoch} of two processes")
            _has(table, _ids(*range(epoch + 1)), "rows after two processes went on by turns")
        left = {file.path for file in left_open(table)}
        table.append(5)
        still = left & {file.path for file in left_open(table)}
        expect(still, set(), "files that processes left open, after a round without a place for open files")
        first.end()
        second.end()
        _has(table, _ids(*range(6)), "rows after each of two processes ended")


def _maintenance(table: Table) -> LakeMaintenance | None:
    try:
        return table.lake.storage.maintenance(table.info)
    except FeatureNotSupported:
        return None


def test_files_are_finished_by_hand(lake: Lake, harness: Harness) -> None:
    """Those of one pipeline, in a commit without rows. Its process lives, and goes on."""
    for table in tables(lake, harness):
        maintenance = _maintenance(table)
        if maintenance is None:
            continue
        living, other = Living(table), Living(table, "q")
        for epoch in range(2):
            living.append(epoch)
            other.append(epoch, ids_of(epoch + 10))
        before, marks = table.ids, (table.watermark("p"), table.watermark("q"))
        open_then, since = {*left_open(table)}, table.latest if lake.declares(Feature.INCREMENTAL_READ) else 0
        for each in (living, other):
            if each.pipeline not in {file.pipeline for file in open_then}:
                _holds_no_file(table, each, f"pipelines p and q committed by turns, and {each.pipeline} goes on")
        for pipelines in ([], ["nobody's"]):
            _finish(maintenance, pipelines)
            expect({*left_open(table)}, open_then, f"open files after those of the pipelines {pipelines} were finished")
        _finish(maintenance, ["p"])
        theirs = {file for file in open_then if file.pipeline == "q"}
        what = "the open files of a pipeline were finished by hand"
        expect({*left_open(table)}, theirs, f"{what}: files that are open, which are another pipeline's")
        _has(table, before, f"{what}: rows")
        expect((table.watermark("p"), table.watermark("q")), marks, f"{what}: the watermarks of two pipelines")
        if lake.declares(Feature.INCREMENTAL_READ):
            expect(_appended(table, since), [], f"{what}: rows that the changes since then have")
        version = _version(table)
        _finish(maintenance, ["p"])
        expect(_version(table), version, f"{what}, and once more, where none is open: the version of the table")
        living.append(2)
        other.append(2, ids_of(12))
        _has(table, sorted([*before, *ids_of(2), *ids_of(12)]), f"{what}, and both processes went on: rows")
        _finish(maintenance, ["p", "q"])
        expect(list(left_open(table)), [], "files that are open, after those of both pipelines were finished")


def _version(table: Table) -> object:
    return table.lake.storage.catalog().table_version(table.path)


def _finish(maintenance: LakeMaintenance, pipelines: Sequence[str]) -> None:
    left = maintenance.finish_open_files(pipelines)
    expect(
        list(left), [], f"open files of the pipelines {pipelines} for which there was no room, of a disk that has room"
    )


def _forgets(table: Table, living: Living) -> None:
    write_task(table.factory, [batch(ids_of(NOT_PUBLISHED))], living.context)


def _discards(table: Table, living: Living) -> None:
    factory = table.factory
    message = write_task(factory, [batch(ids_of(NOT_PUBLISHED))], living.context)
    committer = table.committer()
    committer.discard([unpack(factory.write_result_serializer, message)])
    committer.close()


def _aborts(table: Table, living: Living) -> None:
    writer = table.factory.create_writer(living.context)
    writer.write(batch(ids_of(NOT_PUBLISHED)))
    writer.abort()


ENDS: dict[str, Callable[[Table, Living], None]] = {
    "and its commit never came": _forgets,
    "and discarded": _discards,
    "and aborted": _aborts,
}


def test_an_attempt_comes_to_nothing(lake: Lake, harness: Harness) -> None:
    """Its rows lie behind those of an epoch that was committed, maybe in the same file: nobody reads them, and those
    of the epoch before stay."""
    for table in tables(lake, harness):
        living, epochs = Living(table), [0]
        living.append(0)
        for said, end in ENDS.items():
            end(table, living)
            what = f"rows after an attempt of a process that lives over epochs was staged, {said}"
            _has(table, _ids(*epochs), what)
            epochs.append(len(epochs))
            living.append(epochs[-1])
            _has(table, _ids(*epochs), f"{what}, and the epoch was run again")
        living.end()
        _has(table, _ids(*epochs), "rows after attempts that came to nothing, and the end of the process")


def test_others_come_between(lake: Lake, harness: Harness) -> None:
    """Between two epochs of a process: a clean-up, another pipeline, a column, an overwrite, and another table of this
    name."""
    for table in tables(lake, harness):
        living, other, catalog = Living(table), Living(table, "q"), table.lake.storage.catalog()
        living.append(0)
        seen = _ids(0)
        with suppress(FeatureNotSupported):
            table.lake.let_age()
            collect_orphans(table.lake.storage, table.info, grace=timedelta(0))
        _has(table, seen, "rows after a collection of orphans between two epochs of a process")
        seen = _goes_on(living, seen, "a collection of orphans")
        other.append(0, ids_of(10))
        seen = _goes_on(living, [*seen, *ids_of(10)], "an epoch of another pipeline")
        if lake.declares(Feature.ADD_COLUMN):
            catalog.alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
            seen = _goes_on(living, seen, "a new column")
        if lake.declares(Feature.OVERWRITE):
            table.round(token(1, "q"), [ids_of(11)], WriteMode.OVERWRITE)
            seen = _goes_on(living, ids_of(11), "an overwrite of another pipeline")
        if lake.declares(Feature.DROP_TABLE):
            catalog.drop_table(table.path)
            table.lake.create(name=str(table.path))
            seen = _goes_on(living, [], "another table of this name was made")
        living.end()
        other.end()
        _has(table, sorted(seen), "rows after two processes ended, between whose epochs others came")


def _goes_on(living: Living, seen: Sequence[int], said: str) -> list[int]:
    mark = living.table.watermark(living.pipeline)
    epoch = 0 if mark is None else mark.token.epoch + 1
    living.append(epoch)
    expected = sorted([*seen, *ids_of(epoch)])
    _has(living.table, expected, f"rows of a process that lives over epochs, after {said} between two of them")
    return expected


def test_what_was_recorded_is_cut_off(lake: Lake, harness: Harness, unproven: Callable[[str, str], None]) -> None:
    """An open file has the length of the epoch before. Who reads it, finishes it, or goes on tells of it, and no commit
    goes without its rows. Another file that grew may be a log, and tell of the table as it was."""
    for table in tables(lake, harness):
        root, living = local_folder(table.info.location), Living(table)
        if root is None:
            unproven("open files that were cut off", "the table is in no local folder")
            return
        living.append(0)
        first = contents(root)
        living.append(1)
        whole = contents(root)
        lengths = {file.bytes for file in left_open(table)}
        for file in [each for each in whole if each in first and len(whole[each]) in lengths]:
            if len(whole[file]) == len(first[file]) or not whole[file].startswith(first[file]):
                continue
            for doing in ("read", "finished", "gone on with"):
                apart.write(file, first[file])
                _loses_nothing(table, doing, file.name)
                restore(root, whole)
        _has(table, _ids(0, 1), "rows, where all is as it was")


def _loses_nothing(table: Table, doing: str, name: str) -> None:
    expected = _ids(0, 1)
    with suppress(LaketierError):
        maintenance = _maintenance(table)
        if doing == "finished" and maintenance is not None:
            maintenance.finish_open_files(["p"])
        elif doing == "gone on with":
            table.append(2)
            expected = _ids(0, 1, 2)
        expect(
            table.ids,
            expected,
            f"{name} was cut back to the length of an epoch before, and the table was {doing}: rows",
        )
