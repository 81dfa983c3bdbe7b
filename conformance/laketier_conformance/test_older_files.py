"""Files of older commits that are cut short, empty, gone or of a history that was taken back, and files of tables that
were taken back which can't be read. What is there is told as it is, or refused: never other rows, and never a watermark
of a table that was taken back. `test_torn` does the same to the files of the newest commit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from laketier.spi import Feature, LakeStoragePlugin, LaketierError, Watermark, WriteMode, support_of
from laketier_conformance import apart, foreign
from laketier_conformance.expect import expect, refused, told
from laketier_conformance.forged import is_sealed
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Table, ids_of, read_plan, token
from laketier_conformance.outside import contents, kind, local_folder, restore
from laketier_conformance.search_bounds import foreign_commits

EPOCHS = 3
AGES = 1 << 50
"""Later than any file was made, in ms since the epoch."""
LONG = 34
"""Commits of others: past the intervals at which a history is commonly summed up, 10 and 32."""
MANY = 1000
"""Lines: more than there are, also where a commit is several snapshots."""
FEW, MOST = 5, 12
"""So many files of one kind are not of a commit each. So many pairs of such a file and a harm are tried."""
HARMS = ("cut", "empty", "gone")

Answers = Mapping[str, object]
Looks = Mapping[str, Callable[[], object]]


def _snapshot(table: Table, snapshot: int | None) -> object:
    return sorted(table.read(columns=("id",), snapshot_id=snapshot)["id"].to_pylist())


def _looks(table: Table, snapshots: Sequence[int | None], start: int | None = None) -> Looks:
    """What may be asked of a table that is whole, each of which has one right answer. ``start``: the version from which
    on its commits only appended."""
    mark = table.watermark()
    assert mark is not None, "a pipeline has a watermark after its epochs"
    commit = mark.commit_id

    def opened() -> tuple[Watermark | None, bool]:
        committer = table.committer()
        try:
            state = committer.open()
            return state.watermark("p"), state.landed(commit)
        finally:
            committer.close()

    looks: dict[str, Callable[[], object]] = {"all rows": lambda: table.ids}
    looks["the watermark, and whether its commit landed"] = opened
    if table.lake.declares(Feature.TIME_TRAVEL):
        looks |= {f"rows of snapshot {each}": partial(_snapshot, table, each) for each in snapshots}
    if table.lake.declares(Feature.TIME_TRAVEL_BY_TIMESTAMP, Feature.HISTORY):
        lived = {line.snapshot_id: line.committed_at for line in table.history.snapshots(MANY)}
        moments = {each: moment for each, moment in lived.items() if each in snapshots and moment is not None}
        looks |= {f"rows of the moment of snapshot {each}": partial(_moment, table, moments[each]) for each in moments}
    if table.lake.declares(Feature.HISTORY):
        lines = {line.snapshot_id: line for line in table.history.snapshots(9)}
        # One whose file is gone may be as one that was cleaned up.
        looks["lines of the history that were others"] = lambda: [
            line for line in table.history.snapshots(9) if lines.get(line.snapshot_id, line) != line
        ]
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        known = _orphans(table)
        looks["orphans that are none"] = lambda: sorted(_orphans(table) - known)
    if table.lake.declares(Feature.INCREMENTAL_READ):
        versions = table.changes.versions()
        first = versions.earliest if start is None else start
        looks["rows that commits appended"] = lambda: _appended(table, first, versions.latest)
    return looks


def _orphans(table: Table) -> set[str]:
    """Files of rows. A document that only one which is gone had named is nobody's."""
    found = table.lake.storage.maintenance(table.info).orphans(AGES)
    return {each.path for each in found if each.kind == "data"}


def _appended(table: Table, start: int, end: int) -> object:
    return sorted(read_plan(table.source, table.changes.plan(start, end))["id"].to_pylist())


def _answers(looks: Looks, said: str) -> Answers:
    """Those that are no refusal."""
    found: dict[str, object] = {}
    for what, look in looks.items():
        try:
            found[what] = look()
        except LaketierError:
            pass
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(f"{said}, and {what} are told by no error of laketier's, but by {told(error)}")
    return found


def _harm(file: Path, harm: str, content: bytes) -> None:
    if harm == "gone":
        file.unlink()
    else:
        apart.write(file, content[: len(content) // 2 if harm == "cut" else 0])


def _is_whole_or_refused(looks: Looks, whole: Answers, said: str) -> None:
    for what, found in _answers(looks, said).items():
        expect(found, whole[what], f"{said}: {what}, which are told and not refused")


def _moment(table: Table, moment: int) -> object:
    return sorted(table.read(columns=("id",), as_of=moment)["id"].to_pylist())


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_of_an_older_commit_is_damaged(table: Table, harm: str, unproven: Callable[[str, str], None]) -> None:
    """Each file of the table that the newest commit left alone, in turn. An answer is the one of the whole table; what
    can't be answered is refused. So is the next epoch, or its rows are there."""
    snapshots = [table.append(epoch).snapshot_id for epoch in range(EPOCHS - 1)]
    root = local_folder(table.info.location)
    if root is None:
        unproven("damaged files", "the table is in no local folder")
        return
    before = contents(root)
    snapshots.append(table.append(EPOCHS - 1).snapshot_id)
    table.info  # noqa: B018 - whoever looks may settle what the commit left
    after = contents(root)
    looks = _looks(table, snapshots[:2])
    whole = _answers(looks, "nothing is damaged")
    expect(sorted(looks), sorted(whole), "what a whole table answers")
    for file in sorted(file for file, content in after.items() if before.get(file) == content):
        _harm(file, harm, after[file])
        _is_whole_or_refused(looks, whole, f"{file.name} of an older commit is {harm}")
        restore(root, after)
    expect(_answers(looks, "the files are as they were"), whole, "the answers of files that are back")


def test_a_file_of_a_long_history_is_damaged(table: Table, unproven: Callable[[str, str], None]) -> None:
    """Each tenth commit, or so, leaves files of a kind that the others do not: a checkpoint, a summary. Each of these
    in turn, and the first, a middle and the last of those that each commit left. An answer is the one of the whole
    table, and what can't be answered is refused. Without any of them the next epoch is published on all that was there,
    or refused, and its replay adds nothing."""
    root = local_folder(table.info.location)
    if root is None:
        unproven("damaged files of a long history", "the table is in no local folder")
        return
    overwrites = table.lake.declares(Feature.OVERWRITE)
    snapshots = [table.append(0).snapshot_id]
    snapshots.append(
        table.round(token(1), [ids_of(1)], WriteMode.OVERWRITE if overwrites else WriteMode.APPEND).snapshot_id
    )
    start = table.latest if table.lake.declares(Feature.INCREMENTAL_READ) else None
    before = contents(root)
    foreign_commits(table, range(LONG))
    table.info  # noqa: B018 - whoever looks may settle what the commit left
    among = {file: content for file, content in contents(root).items() if before.get(file) != content}
    table.append(2)
    table.info  # noqa: B018 - as above
    after, looks = contents(root), _looks(table, snapshots, start)
    whole = _answers(looks, f"nothing is damaged after {LONG} commits of others")
    expect(sorted(looks), sorted(whole), "what a whole table answers")
    sums, each = _kinds(root, sorted(file for file in among if file in after))
    pairs = list(itertools.product(sums, HARMS))
    pairs = pairs[:: 1 + len(pairs) // MOST] + list(zip(each, itertools.cycle(HARMS), strict=False))
    for file, harm in pairs:
        _harm(file, harm, after[file])
        _is_whole_or_refused(looks, whole, f"{file.name} of a history of {LONG} commits is {harm}")
        restore(root, after)
    for file in sums:
        file.unlink()
    without = f"what sums up a history of {LONG} commits is gone"
    for file in each:
        file.unlink()
        _is_whole_or_refused(looks, whole, f"{without}, and so is {file.name}")
        apart.write(file, after[file])
    rows = ids_of(2) + ids_of(1) if overwrites else ids_of(0) + ids_of(1) + ids_of(2)
    for doing in ("the next epoch", "its replay"):
        try:
            table.append(3)
        except LaketierError:
            continue
        expect(table.ids, sorted(rows + ids_of(3)), f"{without}: rows after {doing}")


def _kinds(root: Path, files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Files of which there are few of a kind, and of the kinds of which each commit leaves one the first, a middle and
    the last."""
    kinds: dict[str, list[Path]] = {}
    for file in files:
        kinds.setdefault(kind(root, file), []).append(file)
    few = [file for alike in kinds.values() if len(alike) <= FEW for file in alike]
    many = [alike for alike in kinds.values() if len(alike) > FEW]
    return few, [alike[at] for alike in many for at in (0, len(alike) // 2, -1)]


def test_a_file_of_a_history_that_was_taken_back(table: Table, unproven: Callable[[str, str], None]) -> None:
    """A backup was put back, other commits got the numbers of those that were lost, and a second restore brings their
    rows back, and one of their documents: whole, and in its own place. No library has to see that. A document with the
    kit's checksum names the one before it, so an answer is the one of the table as it is, or refused."""
    table.append(0)
    root = local_folder(table.info.location)
    if root is None:
        unproven("files of a history that was taken back", "the table is in no local folder")
        return
    backup = contents(root)
    for epoch in (1, 2):
        table.append(epoch, ids_of(6 + epoch))
    former = contents(root)
    restore(root, backup)
    if not any(map(is_sealed, backup.values())):
        return
    snapshots = [table.append(epoch).snapshot_id for epoch in (1, 2, 3)]
    apart.write_all({file: content for file, content in former.items() if not file.exists()})
    after, looks = contents(root), _looks(table, snapshots)
    whole = _answers(looks, "a backup was put back, and three epochs were published")
    for file in sorted(file for file, content in after.items() if former.get(file, content) != content):
        if is_sealed(after[file]):
            apart.write(file, former[file])
            _is_whole_or_refused(looks, whole, f"{file.name} is of a history that was taken back")
            restore(root, after)


@pytest.mark.shows(Feature.ROLLBACK_DETECTION)
def test_a_file_of_a_table_that_was_taken_back_cannot_be_read(
    plugin: LakeStoragePlugin, harness: Harness, table: Table, unproven: Callable[[str, str], None]
) -> None:
    """Whoever can't read what tells a rollback does not take the table for whole: no driver gets its watermark. In
    place of each file in turn there is a folder, which no look at a file can read."""
    root = local_folder(table.info.location)
    if not support_of(plugin.features, Feature.ROLLBACK_DETECTION).full:
        return
    if harness.roll_back is None or root is None:
        unproven("files of a table that was taken back", "the harness has no roll_back, or there is no local folder")
        return
    first = table.append(0).snapshot_id
    table.append(1)
    foreign.roll_back(table, harness, first, ids_of(0))
    after, looks = contents(root), _refused_looks(table)
    for file in sorted(after):
        file.unlink()
        file.mkdir()
        for what, look in looks.items():
            with refused(Exception, f"{what} of a table whose {file.name} can't be read, and that somebody took back"):
                look()
        file.rmdir()
        restore(root, after)


def _refused_looks(table: Table) -> Mapping[str, Callable[[], object]]:
    """What a table that was taken back refuses to tell: a driver its watermark, and most formats a state, too."""
    with refused(LaketierError, "a driver opens a table that somebody took back"):
        table.watermark()
    storage, info = table.lake.storage, table.info.with_handle(None)
    looks: dict[str, Callable[[], object]] = {"a driver opens, and asks for the watermark": table.watermark}
    try:
        storage.state(info).watermark("p")
    except LaketierError:
        looks["the watermark is asked for in a state"] = lambda: storage.state(info).watermark("p")
    return looks
