"""Orphan collection: what nobody published goes, and nothing that is, or will be, published."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.kit import failpoints
from laketier.maintenance.orphans import Collection, collect_orphans, list_orphans
from laketier.spi import (
    AddColumn,
    Collected,
    Conflict,
    Feature,
    FeatureNotSupported,
    LakeCommitter,
    LaketierError,
    OrphanFile,
    PartitionField,
    StorageError,
    WriteMode,
    WriteResult,
    host_time,
)
from laketier.tiering import RoundOutcome
from laketier.tiering.failpoints import ORPHANS_FENCED, ORPHANS_LISTED
from laketier_conformance.children import Child, ChildDied
from laketier_conformance.expect import expect, goes_well, refused
from laketier_conformance.lake import Lake, Table, ids_of, token
from laketier_conformance.outside import LONG_AGO, local_folder
from laketier_conformance.schedules import interleave

pytestmark = pytest.mark.needs(Feature.ORPHAN_COLLECTION)

NONE = timedelta(0)
_DAY = 86_400_000
_FAR = 4_102_444_800_000
"""In ms since the epoch: the year 2100."""
_WITHIN = 3
"""In the table's folder, and in so many less one below it."""
PER_TABLE = 20
"""So many on one table: with more of them most of the time would go into reading it."""


def collect(table: Table, grace: timedelta = NONE) -> Collection:
    """As another process would."""
    table.lake.let_age()
    return collect_orphans(table.lake.storage, table.info, grace=grace)


def test_what_went_well_leaves_no_orphans(lake: Lake, table: Table) -> None:
    """Neither rounds nor a commit that lost a race leave files that somebody has to collect, nor does the creation of
    a table or a new column. A file that is named by its content may belong to others as well, so a commit that lost
    leaves it; the next one that loses with the same rows finds it there, and leaves nothing more."""
    lake.create()
    table.append(0)
    staged = table.staged(ids_of(7))
    table.append(1)
    before = left_over(table)
    lost(table, staged, to=2)
    shared = {each.path for each in left_over(table) - before if each.attempt is None}
    late = lost(table, staged, to=3)
    late.discard([staged])
    late.close()
    table.append(3)
    if lake.declares(Feature.OVERWRITE):
        table.round(token(4), [ids_of(4)], WriteMode.OVERWRITE)
    if lake.declares(Feature.ADD_COLUMN):
        lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
    left = [each.path for each in left_over(table) if each.path not in shared]
    expect(left, [], "the orphans of a table after rounds, a refused commit and an overwrite that went well")


def lost(table: Table, staged: WriteResult, *, to: int) -> LakeCommitter[WriteResult]:
    """A commit of what was staged, before which an epoch came."""
    late = table.committer()
    state = late.open()
    table.append(to)
    with refused(Conflict, "a state is published on that a round made stale"):
        late.publish(state, [staged], None)
    return late


def left_over(table: Table) -> set[OrphanFile]:
    table.lake.let_age()
    found = list_orphans(table.lake.storage, table.info, grace=NONE).orphans
    return {each for each in found if each.kind != "record"}  # each watermark supersedes the one before


def test_what_nobody_published_goes(lake: Lake, table: Table) -> None:
    table.append(0)
    clean = list_orphans(lake.storage, table.info, grace=NONE).orphans
    staged = table.staged(ids_of(1))
    lake.let_age()
    found = list_orphans(lake.storage, table.info, grace=NONE).orphans
    paths = {file.path for file in staged.files}
    assert paths, "a staged result names its files"
    assert paths <= {file.path for file in found}, "the staged files are listed by the paths of their result"
    expect(
        {file.bytes for file in found if file.path in paths},
        {file.bytes for file in staged.files},
        "the sizes of the staged files, as the listing of orphans tells them",
    )
    now = host_time()
    for file in found:
        assert abs(file.modified_at - now) < _DAY, (
            f"an orphan says when it was modified, in ms since the epoch: found {file.modified_at}, and it is {now}"
        )
    expect(
        list_orphans(lake.storage, table.info, grace=timedelta(hours=1)).orphans,
        (),
        "the orphans that are older than an hour",
    )
    collected = collect(table)
    assert paths <= {file.path for file in collected.removed}, (
        "a collection removes the staged files that nobody published"
    )
    with goes_well("orphans are deleted that another collector has deleted since they were listed"):
        gone = lake.storage.maintenance(table.info).remove_orphans(collected.removed)
    expect(set(gone), set(collected.removed), "the files that are gone for a collector that comes second")
    assert not {file.path for file in collect(table).orphans} & (paths | {file.path for file in clean}), (
        "a second collection finds none of the files that the first one removed"
    )
    expect(table.ids, ids_of(0), "rows after a collection")
    expect(table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of the next round after a collection")
    expect(table.ids, ids_of(0) + ids_of(1), "rows of the next round after a collection")


def test_what_is_a_users_stays(table: Table, unproven: Callable[[str, str], None]) -> None:
    """Notes, a copy, a folder of his own, also in the folders that the format made and that no name hides: a file that
    the format does not know is nobody's to delete."""
    table.append(0)
    folder = local_folder(table.info.location)
    if folder is None:
        unproven("files of users beside a table's", "the table is in no local folder")
        return
    made = _shown_below(folder)
    theirs = ["README.md", "rows.csv", "notes.txt", "a copy/rows.bak", "somebody's folder/deep/file"]
    theirs += [f"{each}/{name}" for each in made for name in ("README.md", "a copy/rows.bak")]
    copies = _copies(folder, table)
    for name in [*theirs, *copies]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("theirs")
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    listed = {file.path: file.attempt for file in list_orphans(table.lake.storage, table.info, grace=NONE).orphans}
    expect(sorted(listed.keys() & theirs), [], "files of a user that are listed as orphans")
    claimed = {name: listed[name] for name in copies if listed.get(name) is not None}
    expect(claimed, {}, "copies of a staged file that are listed as staged by an attempt, which staged none of them")
    collect(table)
    expect([name for name in theirs if not (folder / name).is_file()], [], "files of a user that a collection deleted")


@pytest.mark.needs(Feature.PARTITIONING)
def test_what_a_user_moved_is_of_no_attempt(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    """A staged file, put into a folder of his own that is as deep as where it was: no attempt staged it there."""
    table = lake.create(partition_by=(PartitionField("name"),))
    table.append(0)
    list_orphans(lake.storage, table.info, grace=NONE)  # a format without it refuses here
    folder = local_folder(table.info.location)
    staged = [Path(file.path) for file in table.staged(ids_of(1)).files]
    if folder is None or not all((folder / path).is_file() for path in staged):
        unproven("staged files that a user moved", "they are in no local folder of the table")
        return
    moved = [str(Path("somebody's folder", *path.parts[1:-1], path.name)) for path in staged]
    for path, to in zip(staged, moved, strict=True):
        (folder / to).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).rename(folder / to)
        os.utime(folder / to, (LONG_AGO, LONG_AGO))
    listed = {file.path: file.attempt for file in list_orphans(lake.storage, table.info, grace=NONE).orphans}
    claimed = {path: listed[path] for path in moved if listed.get(path) is not None}
    expect(claimed, {}, "files in a folder of a user that are listed as staged by an attempt, which staged none there")


@pytest.mark.parametrize("has_rows", [True, False], ids=["with rows", "made a moment ago"])
def test_a_table_within_its_folders_stays(table: Table, has_rows: bool, unproven: Callable[[str, str], None]) -> None:
    """Somebody's warehouse is inside of the table's folder, or of one that the format made there: its files have the
    names that the format gives. Collecting orphans is refused, or leaves the other table as it is, also where nothing
    but its first metadata is there yet."""
    table.append(0)
    folder = local_folder(table.info.location)
    list_orphans(table.lake.storage, table.info, grace=NONE)  # a format without it refuses here
    if folder is None:
        unproven("tables below one whose orphans are collected", "the table is in no local folder")
        return
    table.staged(ids_of(1))
    within: list[Table] = []
    for number, place in enumerate([folder, *(folder / name for name in _shown_below(folder))][:_WITHIN]):
        inner = replace(table.lake, location=str(place / "theirs"))
        try:
            theirs = inner.create(name=f"db.theirs{number}")
            home = local_folder(theirs.info.location)
            if home is None or not home.is_relative_to(place):
                unproven("tables below one whose orphans are collected", "its warehouse does not say where a table is")
                return
            if has_rows:
                theirs.append(0, ids_of(5))
        except LaketierError:
            continue
        within.append(theirs)
    with suppress(LaketierError):
        collect(table)
    what = "rows of a table below one whose orphans were collected, or refused to be"
    for theirs in within:
        with goes_well(f"{what}, are read"):
            ids = theirs.ids
        expect(ids, ids_of(5) if has_rows else [], what)
        with goes_well("a round of a table below one whose orphans were collected, or refused to be"):
            theirs.append(int(has_rows), ids_of(6))
    expect(table.ids, ids_of(0), "rows of a table that has others below, after its orphans were collected")


def _copies(folder: Path, table: Table) -> list[str]:
    """Names beside a staged file that desktops give to a copy of it. Who looks for the orphans of others, too, may list
    them."""
    staged = [Path(file.path) for file in table.staged(ids_of(1)).files if (folder / file.path).is_file()]
    return [str(path.with_name(f"{path.stem}{copy}{path.suffix}")) for path in staged for copy in (" (copy)", " 2")]


def _shown_below(folder: Path) -> list[str]:
    """The folders that the format made and that no name hides, from the top on."""
    below = (each.relative_to(folder) for each in folder.rglob("*") if each.is_dir())
    return sorted(each.as_posix() for each in below if not any(part[0] in "._" for part in each.parts))


def test_what_could_not_be_deleted_is_not_called_gone(table: Table, unproven: Callable[[str, str], None]) -> None:
    """A folder has taken the place of an orphan since it was listed, and is in the way: whoever counts what a
    collection removed, and asks no more for it, would leave it for ever. The other orphans go, and are told."""
    folder = local_folder(table.info.location)
    table.append(0)
    staged = [file.path for epoch in (1, 2) for file in table.staged(ids_of(epoch)).files]
    maintenance = table.lake.storage.maintenance(table.info)
    time.sleep(0.02)
    found = list_orphans(table.lake.storage, table.info, grace=NONE).orphans
    orphans = sorted((file for file in found if file.path in staged), key=lambda file: file.path != staged[0])
    if folder is None or not (folder / staged[0]).is_file():
        unproven("orphans that can't be deleted", "the staged files are in no local folder of the table")
        return
    in_the_way = folder / staged[0] / "somebody's.txt"
    in_the_way.parent.unlink()
    in_the_way.parent.mkdir()
    in_the_way.write_text("theirs")
    with goes_well(
        "orphans are deleted, and a folder has taken the place of one: the others go, or it says that it can't"
    ):
        try:
            gone = {file.path for file in maintenance.remove_orphans(orphans)}
        except LaketierError:
            return  # and nothing is said to be gone
    still_there = {path for path in gone if (folder / path).exists()}
    expect(still_there, set(), "orphans that `remove_orphans` says are gone, and that are still there")
    missed = {path for path in staged[1:] if (folder / path).exists()}
    expect(missed, set(), "orphans that are still there as another one could not be deleted")
    untold = {file.path for file in orphans if file.path not in gone and not (folder / file.path).exists()}
    expect(untold, set(), "orphans that were deleted, beside one that could not be, and that nobody is told of")


def test_what_any_snapshot_needs_stays(lake: Lake, table: Table) -> None:
    """After appends, replays and, where the format can, an overwrite: every snapshot reads as before."""
    for epoch in range(4):
        table.append(epoch)
    table.append(3)
    overwrites = lake.declares(Feature.OVERWRITE)
    if overwrites:
        table.round(token(4), [ids_of(4)], WriteMode.OVERWRITE)
    travels = lake.declares(Feature.HISTORY, Feature.TIME_TRAVEL)
    snapshots = [snapshot.snapshot_id for snapshot in table.history.snapshots(20)] if travels else [None]
    before = {snapshot: table.read(snapshot_id=snapshot) for snapshot in snapshots}
    table.staged(ids_of(9))
    collect(table)
    for snapshot, rows in before.items():
        with goes_well(f"snapshot {snapshot} is read after a collection"):
            found = table.read(snapshot_id=snapshot).sort_by("id")
        expect(found, rows.sort_by("id"), f"rows of snapshot {snapshot} after a collection")
    epoch = 5 if overwrites else 4
    expect(table.append(epoch).outcome, RoundOutcome.PUBLISHED, "the outcome of the next round after a collection")


def test_what_is_young_stays(table: Table) -> None:
    staged = table.staged(ids_of(0))
    maintenance = table.lake.storage.maintenance(table.info)
    expect(list(maintenance.remove_orphans([])), [], "orphans that are gone, of none")
    expect(list(maintenance.orphans(0)), [], "orphans that are older than the first moment of all")
    found = maintenance.orphans(_FAR)
    assert found, "a staged file is older than any moment to come: it is listed by `orphans`"
    for moment in {file.modified_at for file in found}:
        as_old = [file for file in maintenance.orphans(moment) if file.modified_at >= moment]
        expect(as_old, [], f"orphans before {moment} that are not older than that")
    collected = collect(table, grace=timedelta(hours=1))
    expect(
        (collected.orphans, collected.removed, collected.horizon),
        ((), (), None),
        "orphans, removed files and horizon of a collection of young files",
    )
    expect(
        table.commit([staged], token(0)).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of a round that was under way in a collection with a grace",
    )
    expect(table.ids, ids_of(0), "rows of a round that was under way in a collection with a grace")


@pytest.mark.parametrize("with_pipeline", [True, False])
def test_a_slow_round_is_refused(table: Table, with_pipeline: bool) -> None:
    """Its files are gone, so publishing them would lose rows. Staged again it goes through."""
    staged = table.staged(ids_of(0))
    collect(table)
    with refused(Collected, "a round is committed whose files were collected", match="stages its files again"):
        table.commit([staged], token(0) if with_pipeline else None)
    expect(table.ids, [], "rows after a round was refused")
    expect(table.append(0).outcome, RoundOutcome.PUBLISHED, "the outcome of a round that was refused and is run again")
    expect(table.ids, ids_of(0), "rows of a round that was refused and is run again")


@pytest.mark.parametrize("moment", [ORPHANS_LISTED, ORPHANS_FENCED])
def test_a_commit_while_orphans_are_collected(table: Table, moment: str) -> None:
    """Before the horizon it lands, and its files are no orphans any more; after it, it is refused."""
    staged = table.staged(ids_of(0))

    def commit(name: str) -> None:
        if name == moment:
            table.commit([staged], token(0))

    with failpoints.observed(commit):
        if moment == ORPHANS_FENCED:
            with refused(Collected, "orphans are collected of which one was committed after they were listed"):
                collect(table)
        else:
            collect(table)
    table.append(0)
    expect(table.ids, ids_of(0), "rows of a commit while orphans were collected")


def test_a_horizon_never_goes_back(table: Table) -> None:
    table.staged(ids_of(0))
    first = collect(table).horizon
    table.staged(ids_of(1))
    second = collect(table, grace=timedelta(milliseconds=1)).horizon
    assert first is not None, "the first collection has a horizon"
    assert second is not None, "the second collection has a horizon"
    assert second >= first, f"a horizon never goes back: first {first}, then {second}"


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_table_that_was_made_anew(lake: Lake, table: Table) -> None:
    """A collector that runs for long knows a table that was dropped meanwhile. It may refuse, or collect orphans of the
    table that is there now."""
    table.append(0)
    storage = lake.storage
    old = storage.catalog().load_table(table.path)
    lake.storage.catalog().drop_table(table.path)
    lake.create()
    table.append(0, ids_of(1))
    lake.let_age()
    try:
        collect_orphans(storage, old, grace=NONE)
    except FeatureNotSupported:
        raise
    except LaketierError:
        pass  # it may say that its table is gone
    expect(
        table.ids,
        ids_of(1),
        "rows of the table that was made anew, after orphans were collected by who knew the dropped one",
    )


def test_a_killed_round_leaves_nothing_that_is_not_listed(table: Table, interpreter: Child) -> None:
    """Killed before its commit, and done again by others: what is left beside the table's own files is listed."""
    table.append(0)
    with refused(ChildDied, "a driver that is to be killed before it publishes runs an epoch"):
        interpreter.ask(
            table.lake,
            "round",
            table="db.t",
            pipeline="p",
            epoch=1,
            tasks=[ids_of(1)],
            failpoints="publish.before=kill",
        )
    table.append(1)
    collected = collect(table)
    assert any(file.kind == "data" for file in collected.removed), "the dead round's data file"
    expect(table.ids, ids_of(0) + ids_of(1), "rows of a replay beside files of a killed round")
    assert not [file for file in collect(table).orphans if file.kind == "data"], (
        "no data file of the killed round is left after a collection"
    )


def test_any_schedule(lake: Lake, pytestconfig: pytest.Config) -> None:
    """Two slow rounds and a collector take turns at their failpoints, in orders drawn from seeds."""
    last = pytestconfig.getoption("lake_schedules")
    for first in range(0, last, PER_TABLE):
        _schedules(lake.create(name=f"db.from_{first}"), range(first, min(first + PER_TABLE, last)))


def _schedules(table: Table, seeds: range) -> None:
    epochs = {"one": 0, "two": 0}

    def round_of(pipeline: str) -> Callable[[], None]:
        def run() -> None:
            epoch = epochs[pipeline]
            ids = ids_of(epoch, split=list(epochs).index(pipeline))
            for tries in itertools.count(1):
                try:
                    table.append(epoch, ids, pipeline=pipeline)
                except (Collected, StorageError):  # in mid-write its file is gone, and the task fails
                    if tries == 10:
                        raise
                    continue
                epochs[pipeline] += 1
                return

        return run

    for seed in seeds:
        table.staged(ids_of(900 + seed))
        interleave({"one": round_of("one"), "two": round_of("two"), "collector": lambda: _collected(table)}, seed)
        expect(
            table.ids,
            sorted(
                i
                for split, pipeline in enumerate(epochs)
                for n in range(epochs[pipeline])
                for i in ids_of(n, split=split)
            ),
            f"rows after the schedule of seed {seed}",
        )


def _collected(table: Table) -> None:
    time.sleep(0.02)  # whatever it finds old enough
    collect_orphans(table.lake.storage, table.info, grace=NONE)
