"""Files of older commits that are cut short, empty or gone, and files of tables that were taken back which can't be
read. What is there is told as it is, or refused: never fewer rows, and never a watermark of a table that was taken
back. `test_torn` does the same to the files of the newest commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from laketier.spi import Feature, LakeStoragePlugin, LaketierError, support_of
from laketier_conformance import apart, foreign
from laketier_conformance.expect import expect, refused, told
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Table, ids_of, read_plan
from laketier_conformance.outside import contents, local_folder, restore

EPOCHS = 3

Answers = Mapping[str, object]


def _snapshot(table: Table, snapshot: int | None) -> object:
    return sorted(table.read(columns=("id",), snapshot_id=snapshot)["id"].to_pylist())


def _looks(table: Table, snapshot: int | None) -> Mapping[str, Callable[[], object]]:
    """What may be asked of a table that is whole, each of which has one right answer."""

    def epoch() -> object:
        mark = table.watermark()
        return None if mark is None else mark.token.epoch

    looks: dict[str, Callable[[], object]] = {"all rows": lambda: table.ids, "the watermark's epoch": epoch}
    if table.lake.declares(Feature.TIME_TRAVEL):
        looks["rows of an older snapshot"] = lambda: _snapshot(table, snapshot)
    if table.lake.declares(Feature.INCREMENTAL_READ):
        versions = table.changes.versions()
        looks["rows that commits appended"] = lambda: _appended(table, versions.earliest, versions.latest)
    return looks


def _appended(table: Table, start: int, end: int) -> object:
    return sorted(read_plan(table.source, table.changes.plan(start, end))["id"].to_pylist())


def _answers(looks: Mapping[str, Callable[[], object]], said: str) -> Answers:
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


@pytest.mark.parametrize("harm", ["cut", "empty", "gone"])
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
    looks = _looks(table, snapshots[1])
    whole = _answers(looks, "nothing is damaged")
    expect(sorted(looks), sorted(whole), "what a whole table answers")
    for file in sorted(file for file, content in after.items() if before.get(file) == content):
        said = f"{file.name} of an older commit is {harm}"
        if harm == "gone":
            file.unlink()
        else:
            apart.write(file, after[file][: len(after[file]) // 2 if harm == "cut" else 0])
        for what, found in _answers(looks, said).items():
            expect(found, whole[what], f"{said}: {what}, which are told and not refused")
        restore(root, after)
    expect(_answers(looks, "the files are as they were"), whole, "the answers of files that are back")


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
