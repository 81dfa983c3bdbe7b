"""Files of a table that are cut short, empty or gone: the table is whole, or says that it is not. It never is an older
one, and a reader never gets fewer rows."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import ConfigError, Conflict, LaketierError, TableState, UnknownOutcome, Watermark, WriteResult
from laketier_conformance import apart
from laketier_conformance.children import Child
from laketier_conformance.expect import expect, told
from laketier_conformance.forged import is_sealed, resealed
from laketier_conformance.lake import SCHEMA, Lake, Table, batch, ids_of, token
from laketier_conformance.outside import contents, local_folder, restore

MOST = 40
"""Pairs of documents that one run tries."""
HARMS = ("cut", "empty", "gone", "older")
"""``older``: a file that was changed is what it was before, as a copy, a mirror or a cache of the network leaves it."""
FOLLOWED = "followed"
"""It is gone, and one more commit came after that one."""


def _harm(file: Path, harm: str, before: bytes | None) -> bool:
    """Whether it is another file now."""
    content = apart.read(file)
    if harm in ("gone", FOLLOWED):
        file.unlink()
    elif harm != "older":
        apart.write(file, content[: len(content) // 2 if harm == "cut" else 0])
    elif before is not None:
        apart.write(file, before)
    return harm != "older" or before is not None


def _told(table: Table) -> tuple[list[int] | None, int | None, list[str]]:
    """The ids and the epoch that the table tells, None for what it refuses to; and errors that tell of no damage."""
    ids: list[int] | None = None
    epoch: int | None = None
    errors: list[str] = []
    try:
        ids = table.ids
    except Exception as error:  # noqa: BLE001 - reported
        errors += _misled("a read", error)
    try:
        mark = table.watermark()
        epoch = -1 if mark is None else mark.token.epoch
    except Exception as error:  # noqa: BLE001 - reported
        errors += _misled("the watermark", error)
    return ids, epoch, errors


def _misled(what: str, error: Exception) -> list[str]:
    """An error of others tells nobody what to do, and one of a commit or of settings the wrong thing."""
    is_told = isinstance(error, LaketierError) and not isinstance(error, (ConfigError, Conflict, UnknownOutcome))
    return [] if is_told else [f"{what}: {told(error)}"]


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_of_the_newest_commit_is_damaged(table: Table, harm: str, unproven: Callable[[str, str], None]) -> None:
    """Each file below the table that the newest commit made or changed, in turn: as a disk, a copy or a backup leaves
    it. Where its newest metadata are gone, a table may be an older one: that is a rollback, which some formats can't
    see. It is then one in all that it tells."""
    table.append(0)
    table.append(1)
    root = local_folder(table.info.location)
    if root is None:
        unproven("damaged files", "the table is in no local folder")
    before = contents(root)
    table.append(2)
    after = contents(root)
    older, whole = ids_of(0) + ids_of(1), ids_of(0) + ids_of(1) + ids_of(2)
    allowed = [(ids, epoch) for ids in (None, whole) for epoch in (None, 2)]
    if harm in ("gone", "older"):
        allowed += [(older, 1), (older, None)]
    for file in sorted(file for file, content in after.items() if before.get(file) != content):
        if not _harm(file, harm, before.get(file)):
            continue
        ids, epoch, errors = _told(table)
        name = file.name
        assert not errors, f"{name} is {harm}, and that is told by no error for damage but by {'; '.join(errors)}"
        assert (ids, epoch) in allowed, (
            f"{name} is {harm}: the table has to be whole or to refuse. A reader gets "
            f"{'a refusal' if ids is None else ids}, where {whole} was committed, and the watermark is "
            f"{'refused' if epoch is None else 'not there' if epoch == -1 else f'of epoch {epoch}'}, where it was of 2"
        )
        _tells_what_a_fresh_state_does(table, f"{name} is {harm}")
        restore(root, after)
    expect(table.ids, whole, "the files are back as they were, and so are the rows")


def test_what_an_older_commit_made_is_gone(table: Table, unproven: Callable[[str, str], None]) -> None:
    """Of three commits the one in the middle loses each file that it made, in turn, and each folder with all that is in
    it. The newest commit is there, so its rows are no older table's: a reader gets all rows, or a refusal."""
    table.append(0)
    root = local_folder(table.info.location)
    if root is None:
        unproven("damaged files", "the table is in no local folder")
        return
    before = set(root.rglob("*"))
    table.append(1)
    made = sorted(set(root.rglob("*")) - before)
    table.append(2)
    after, whole = contents(root), ids_of(0) + ids_of(1) + ids_of(2)
    for path in (path for path in made if path.exists()):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
        ids, epoch, errors = _told(table)
        said = f"{path.relative_to(root)} of an older commit is gone"
        assert not errors, f"{said}, and that is told by no error for damage but by {'; '.join(errors)}"
        assert ids in (None, whole), (
            f"{said}: a reader has to get all rows or a refusal, as a commit after it is there. He gets {ids}, where "
            f"{whole} was committed"
        )
        assert epoch in (None, 2), f"{said}: the watermark is of epoch {epoch}, where it was of 2"
        restore(root, after)
    expect(table.ids, whole, "what an older commit made is back, and so are the rows")


def _tells_what_a_fresh_state_does(table: Table, said: str) -> None:
    """A state is as old as the handle of its table, and fresh without one. Of a table that was loaded just now, both
    tell the same epoch, or both refuse."""
    try:
        loaded = table.info
    except LaketierError:
        return
    found = []
    for info in (loaded, loaded.with_handle(None)):
        try:
            mark = table.lake.storage.state(info).watermark("p")
            found.append(f"epoch {-1 if mark is None else mark.token.epoch}")
        except LaketierError as error:
            found.append(f"a refusal, {type(error).__name__}")
    with_it, fresh = found
    if all(each.startswith("a refusal") for each in found):  # by whichever error it is told
        return
    expect(with_it, fresh, f"{said}, and the state of the table that is loaded then tells what a fresh state does")


def test_a_file_of_another_table_lies_in_its_place(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    """As a restore into the wrong folder leaves it: each is whole, and was in the same place of a table with other rows
    and epochs. No library has to see that. A document with the kit's checksum says whose it is, so a table of these
    tells its own rows and its own epoch, or refuses."""
    tables = [lake.create(name=name) for name in ("db.t", "db.other")]
    for number in range(3):
        tables[0].append(number)
        tables[1].append(max(0, number - 1), ids_of(7 + number), pipeline="p" if number else "q")
    root, other = (local_folder(each.info.location) for each in tables)
    if root is None or other is None:
        unproven("files of another table", "the table is in no local folder")
        return
    mine, theirs = _by_place(root, contents(root)), _by_place(other, contents(other))
    whole = ids_of(0) + ids_of(1) + ids_of(2)
    before = dict(mine.values())
    for place in sorted(mine.keys() & theirs.keys()):
        file, foreign = mine[place][0], theirs[place][1]
        # Once alone, and once as if those who name it had been told.
        for changed in ({file: foreign}, resealed(before, file, foreign)):
            for name, content in changed.items():
                apart.write(name, content)
            ids, epoch, errors = _told(tables[0])
            for name in changed:
                apart.write(name, before[name])
            assert not errors, f"{file.name} is another table's, and that is told by {'; '.join(errors)}"
            if is_sealed(foreign):
                expect(ids, None if ids is None else whole, f"rows where {file.name} is another table's")
                expect(epoch, None if epoch is None else 2, f"the epoch where {file.name} is another table's")
    expect(tables[0].ids, whole, "the files are back as they were, and so are the rows")


def test_a_file_has_columns_of_other_types(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    """As another tool leaves it that wrote a file anew: the same names, and numbers for texts. Cast to the types of the
    table they would be other values, so the file is damage."""
    other = pa.schema([SCHEMA.field("id"), ("name", pa.int64()), ("value", pa.string())])
    table, typed = lake.create(name="db.t"), lake.create(other, "db.typed")
    rows = pa.record_batch([ids_of(0), ids_of(0), list(map(str, ids_of(0)))], schema=other)
    files: list[list[Path]] = []
    for each, batches in ((table, [batch(ids_of(0))]), (typed, [rows])):
        root = local_folder(each.info.location)
        before = {} if root is None else contents(root)
        staged = each.stage_arrow(batches)
        # They may get other names, and lie elsewhere, once they are published.
        new = set() if root is None else {*contents(root).values()} - {*before.values()}
        each.commit([staged], token(0))
        files.append([] if root is None else [file for file, content in contents(root).items() if content in new])
    whole = table.read().sort_by("id")
    if not all(files):
        unproven("files with columns of other types", "no file in a local folder is what a task made")
        return
    for file, typed_file in zip(*files, strict=False):
        content = apart.read(file)
        apart.write(file, apart.read(typed_file))
        what = f"a file has name as int64 and value as string, where the table has {SCHEMA.types[1]}, {SCHEMA.types[2]}"
        try:
            read = table.read().sort_by("id")
        except Exception as error:  # noqa: BLE001 - reported
            errors = _misled("a read", error)
            assert not errors, f"{what}, and that is told by {'; '.join(errors)}"
        else:
            expect(read, whole, f"{what}: expected a refusal, and it was read")
        apart.write(file, content)
    expect(table.read().sort_by("id"), whole, "the files are back as they were, and so are the rows")


def test_a_document_lies_in_the_place_of_another(table: Table, unproven: Callable[[str, str], None]) -> None:
    """As a script leaves it that mixed names up. A document with the kit's checksum says which one it is, so a table of
    these tells all of its rows and its newest epoch, or refuses."""
    root = local_folder(table.info.location)
    if root is None:
        unproven("documents in each other's place", "the table is in no local folder")
        return
    before = contents(root)
    changed_by = dict.fromkeys(before, -1)
    for number in range(4):
        table.append(number)
        after = contents(root)
        changed_by |= {file: number for file, content in after.items() if before.get(file) != content}
        before = after
    documents = sorted(file for file, content in before.items() if is_sealed(content))
    whole = [i for number in range(4) for i in ids_of(number)]
    pairs = [pair for pair in itertools.permutations(documents, 2) if pair[0].parent == pair[1].parent]
    # Newest files first, of which a stride leaves some of each.
    pairs.sort(key=lambda pair: (-changed_by[pair[0]], -changed_by[pair[1]], pair))
    for file, other in pairs[:: 1 + len(pairs) // MOST]:
        # Once alone, and once as if those who name it had been told: an older one names none of these.
        forgeries: list[Mapping[Path, bytes]] = [{file: before[other]}]
        if changed_by[other] < changed_by[file]:
            forgeries.append(resealed(before, file, before[other]))
        for changed in forgeries:
            for name, content in changed.items():
                apart.write(name, content)
            ids, epoch, errors = _told(table)
            restore(root, before)
            what = f"where {file.name} holds what {other.name} held"
            assert not errors, f"{what}, that is told by {'; '.join(errors)}"
            expect(ids, None if ids is None else whole, f"rows {what}")
            expect(epoch, None if epoch is None else 3, f"the epoch {what}")
    expect(table.ids, whole, "the files are back as they were, and so are the rows")


_IDENTITY = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")


def _by_place(root: Path, files: Mapping[Path, bytes]) -> Mapping[str, tuple[Path, bytes]]:
    """Each file by its path below the table, whatever identities are in that."""
    return {_IDENTITY.sub("*", str(file.relative_to(root))): (file, content) for file, content in files.items()}


@pytest.mark.parametrize("harm", HARMS)
def test_a_round_after_a_file_is_damaged(lake: Lake, harm: str, unproven: Callable[[str, str], None]) -> None:
    """Of each file of the newest commit in turn, in a table of its own. What told rows and a watermark all the same is
    written on: the next epoch is added to what was there, or refused, and then nothing of it is seen. A replay of the
    one before adds nothing to either."""
    number, files = 0, 1
    while number < files:
        table = lake.create(name=f"db.t{number}")
        table.append(0)
        root = local_folder(table.info.location)
        if root is None:
            unproven("damaged files", "the table is in no local folder")
        before = contents(root)
        table.append(1)
        changed = sorted(file for file, content in contents(root).items() if before.get(file) != content)
        files, file = len(changed), changed[number] if number < len(changed) else None
        number += 1
        if file is None or not _harm(file, harm, before.get(file)):
            continue
        ids, epoch, _ = _told(table)
        if ids is None or epoch is None:
            continue
        said = f"{file.name} is {harm}, and the table tells epoch {epoch}: rows after"
        for doing, added, what in ((epoch, [], "a replay"), (epoch + 1, ids_of(7), "the next epoch")):
            try:
                table.append(doing, ids_of(7))
            except LaketierError:
                added = []  # noqa: PLW2901 - refused, so nothing of it is there
            expect(table.ids, sorted(ids + added), f"{said} {what}")


@pytest.mark.parametrize("harm", ["gone", "older", FOLLOWED])
def test_a_driver_from_before_a_file_was_damaged(lake: Lake, harm: str, unproven: Callable[[str, str], None]) -> None:
    """It opened, another pipeline published, and a file of that commit is gone or as it was before, each in turn. The
    driver may find the name free that the other one had, also where one more commit stands on that. Where its commit is
    acknowledged, its rows are there and it goes on. Where it is refused, none of its rows is ever seen, also once the
    file is back."""
    number, files = 0, 1
    while number < files:
        table = lake.create(name=f"db.t{number}")
        table.append(0)
        root = local_folder(table.info.location)
        if root is None:
            unproven("damaged files", "the table is in no local folder")
            return
        committer = table.committer(commit_id="late")
        state, staged = committer.open(), table.staged(ids_of(1))
        before = contents(root)
        table.append(0, ids_of(5), pipeline="other")
        after = contents(root)
        changed = sorted(file for file, content in after.items() if before.get(file) != content)
        theirs = ids_of(0) + ids_of(5)
        if harm == FOLLOWED:
            table.append(1, ids_of(6), pipeline="other")
            theirs, after = theirs + ids_of(6), contents(root)
        files, file = len(changed), changed[number] if number < len(changed) else None
        number += 1
        if file is not None and _harm(file, harm, before.get(file)):
            is_now = "gone, with one more commit after it" if harm == FOLLOWED else harm
            said = f"{file.name} is {is_now}, of a commit that came after a driver had opened: "
            _publishes_late(table, committer, state, staged, file, said)
            _is_put_back(table, file, after, theirs, said)
        committer.close()


def _publishes_late(
    table: Table, committer: Any, state: TableState, staged: WriteResult, file: Path, said: str
) -> None:
    try:
        committer.publish(state, [staged], Watermark(token(1), "late"))
    except Exception:  # noqa: BLE001 - whatever it says: it is refused, or its outcome is unknown
        return
    try:
        found = table.ids
    except LaketierError as error:
        # What is gone may be missed; but here it was the commit itself that took its place.
        if file.exists():
            pytest.fail(f"{said}its own commit is acknowledged, and the table can't be read since: {told(error)}")
        return
    missing = sorted(set(ids_of(1)) - set(found))
    assert not missing, f"{said}its own commit is acknowledged, and rows of it are missing: {missing}, found {found}"
    try:
        table.append(2, ids_of(2))
    except LaketierError as error:
        pytest.fail(f"{said}its own commit is acknowledged, and the next epoch is refused: {told(error)}")


def _is_put_back(table: Table, file: Path, after: Mapping[Path, bytes], theirs: list[int], said: str) -> None:
    """Where nothing landed since, it is the table again that it was."""
    if file.exists():
        return
    apart.write(file, after[file])
    try:
        found = table.ids
    except LaketierError:
        return
    late = ids_of(1)
    rows = [sorted(theirs), sorted(theirs + late), sorted(theirs + late + ids_of(2))]
    assert found in rows, (
        f"{said}the driver was refused or not, and the file is back: rows are {found}, expected {rows}"
    )


def test_a_backup_is_put_back_and_goes_on(
    table: Table, children: Callable[[int], list[Child]], unproven: Callable[[str, str], None]
) -> None:
    """Its next snapshots get the numbers of others that were there before, in the same process. What it knew of those
    must not be taken for these. Where it refuses the backup, or to go on, a process that knew nothing does, too."""
    table.append(0)
    # A database keeps no rows in a table's folder, but somewhere in the warehouse.
    folders = map(local_folder, (table.info.location, table.lake.location))
    backups = {root: contents(root) for root in folders if root is not None}
    for epoch in (1, 2):
        table.append(epoch)
        expect(table.ids, _rows(epoch + 1), "rows before the table's folder is put back as it was some epochs ago")
    root = next((root for root, backup in backups.items() if contents(root) != backup), None)
    if root is None:
        unproven("backups that are put back", "the table is in no local folder")
        return None
    restore(root, backups[root])
    since = "after the table's folder was put back as it was two epochs ago"
    for number in (2, 3, 4, 5):
        asked: dict[str, Any] = {"do": "round", "pipeline": "q", "epoch": 0, "tasks": [ids_of(9)]}
        try:
            if number > 2:
                table.commit([table.staged(ids_of(number))], None)
            asked = {"do": "tell", "what": "rows"}
            expect(table.ids, ids_of(0) + _rows(number + 1)[15:], f"rows after {number - 2} batches {since}")
        except LaketierError as error:
            return _is_refused_elsewhere(table, children, error, asked)
    return None


def _rows(epochs: int) -> list[int]:
    return [i for epoch in range(epochs) for i in ids_of(epoch)]


def _is_refused_elsewhere(
    table: Table, children: Callable[[int], list[Child]], error: LaketierError, asked: dict[str, Any]
) -> None:
    (child,) = children(1)
    answer = child.ask(table.lake, **asked, table=str(table.path))
    assert "refused" in answer or "failed" in answer, (
        f"a backup was put back, and a process that knew what was there before ends in {told(error)}. One that knew "
        f"nothing was asked for the same ({asked['do']}): expected that it is refused, too, and found {answer}"
    )
