"""What lies in a warehouse beside its tables, or in the place of one: it stays as it is, and is taken for no table. And
the ways in which a warehouse is named."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from laketier.spi import (
    AddColumn,
    Conflict,
    Feature,
    FeatureNotSupported,
    LaketierError,
    TableNotFound,
    TablePath,
    UnknownOutcome,
    WriteMode,
)
from laketier.tiering import RoundOutcome
from laketier_conformance import apart
from laketier_conformance.expect import expect, goes_well, refused, told
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, ids_of, token
from laketier_conformance.outside import everything, files_below, left_by, local_folder, local_path, sibling, touched

NO_FOLDER = "the warehouse is no local folder"
NOTHING = {"empty": "", "blanks": "  ", "scheme": "file:"}


def _place(table: Table, name: str) -> Path | None:
    """Where a table ``db.<name>`` would lie, if each has a local folder of its name. None as well where the table's
    files lie one level below that folder."""
    folder = local_folder(table.info.location)
    return None if folder is None else sibling(folder, table.path.table, name)


def _home(lake: Lake) -> Path | None:
    """The folder that is the warehouse. None where the harness's `setup` gave another name than that of one."""
    return local_path(lake.location)


def _folder(lake: Lake, folder: Path, unproven: Callable[[str, str], None]) -> Path:
    """One for tests of warehouses in folders. What is behind a server refuses it, or has it for a name of its own."""
    home = _home(lake)
    if home is None:
        unproven("names of local warehouses", NO_FOLDER)
        return folder
    return home


def _is_known_elsewhere(table: Table, other: Lake) -> bool:
    """Whether the tables of a warehouse are those of another folder, too: a server has the catalog, and options tell
    which one it is."""
    with suppress(LaketierError):
        return table.path in other.storage.catalog().list_tables()
    return False


@pytest.mark.parametrize("what", ["a file", "a folder"])
def test_a_table_where_something_else_lies(table: Table, what: str, unproven: Callable[[str, str], None]) -> None:
    """Creating is refused, by an error that is no race, as those are tried again; or the table is made beside. What lay
    there stays as it was, also when that table is dropped, and a table that is refused is not listed."""
    place = _place(table, "notes")
    if place is None:
        unproven("tables where something else lies", "the table is in no local folder of its name")
        return
    _make_beside(table, "notes", place if what == "a file" else place / "notes.txt", what)


def test_a_table_where_a_folder_lies_that_is_called_as_one_of_its_own(
    table: Table, unproven: Callable[[str, str], None]
) -> None:
    """Anybody may have a folder `data`. As above."""
    folder = local_folder(table.info.location)
    if folder is None:
        unproven("tables where something else lies", "the table is in no local folder of its name")
        return
    table.append(0)
    own = sorted(each.name for each in folder.iterdir() if each.is_dir() and each.name.isalnum())
    for number, name in enumerate(own or ["data"]):  # one that can't be dropped is not in the way of the next
        beside = f"notes{number}"
        place = _place(table, beside)
        if place is None:
            unproven("tables where something else lies", "the table is in no local folder of its name")
            return
        _make_beside(table, beside, place / name / "notes.txt", f"a folder {name}")


def _make_beside(table: Table, name: str, notes: Path, what: str) -> None:
    """Make a table ``db.<name>`` in whose place ``notes`` of somebody else's lie, and drop it."""
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_text("theirs")
    catalog, path, place = table.lake.storage.catalog(), TablePath("db", name), _place(table, name)
    listed = [*map(str, catalog.list_tables())]
    try:
        table.lake.create(name=str(path)).append(0)
        listed = sorted([*listed, str(path)])
        expect(table.lake.table(str(path)).ids, ids_of(0), f"rows of a table that was made where {what} lay")
    except (Conflict, UnknownOutcome) as error:
        pytest.fail(f"a table is created where {what} of somebody else's lies: {told(error)}, which tells of a race")
    except LaketierError:
        if place is not None and notes != place:
            files = [str(each.relative_to(place)) for each in place.rglob("*") if each.is_file()]
            expect(files, [str(notes.relative_to(place))], "what a refused table left in the folder")
    except Exception as error:  # noqa: BLE001 - reported
        pytest.fail(
            f"a table is created where {what} of somebody else's lies: no error of laketier's, but {told(error)}"
        )
    expect(notes.read_text(), "theirs", f"{what} where a table was created, afterwards")
    expect(list(map(str, catalog.list_tables())), listed, f"the tables, after one was created where {what} lay")
    if str(path) in listed and table.lake.declares(Feature.DROP_TABLE):
        with suppress(LaketierError):
            catalog.drop_table(path)
        left = notes.read_text() if notes.exists() else "nothing"
        expect(left, "theirs", f"{what} where a table was created, after that table was dropped")


def test_what_is_no_table_is_not_listed(table: Table, unproven: Callable[[str, str], None]) -> None:
    """Files and folders of somebody else's beside the tables, below one and above: a list tells the tables alone, in
    all databases and in one."""
    place = _place(table, "other")
    if place is None:
        unproven("lists of odd folders", "the table is in no local folder of its name")
        return
    table.append(0)
    home = _home(table.lake)
    around = () if home is None else (home, home / "empty", home / ".trash" / "t")
    for folder in (place, place.with_name(".hidden"), place / "deeper" / "still", *around):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "notes.txt").write_text("theirs")
    (place.parent / "not a name!").mkdir()
    catalog = table.lake.storage.catalog()
    for database in (None, "db"):
        try:
            listed = list(map(str, catalog.list_tables(database)))
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(f"tables are listed where folders of somebody else's lie: {told(error)}")
        expect(listed, [str(table.path)], "the tables of a warehouse with folders of somebody else's")
    for database in ("empty", "other", "nothing"):
        expect(catalog.list_tables(database), [], f"the tables of {database!r}, which is no database")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_copy_of_a_table_is_listed_where_it_can_be_opened(table: Table, unproven: Callable[[str, str], None]) -> None:
    """A folder of a table under another name, or deeper, as a copy leaves it. What is listed can be loaded and read,
    and dropping the table leaves the copy."""
    place = _place(table, "copy")
    folder = local_folder(table.info.location)
    if place is None or folder is None:
        unproven("copies of tables", "the table is in no local folder of its name")
        return
    table.append(0)
    apart.copy(folder, place)
    apart.copy(folder, place / "deeper" / "still")
    catalog = table.lake.storage.catalog()
    for path in catalog.list_tables():
        try:
            catalog.load_table(path)
        except LaketierError as error:
            pytest.fail(f"{path} is listed, and can't be loaded: {told(error)}")
    before = everything(place)
    catalog.drop_table(table.path)
    expect(touched(before, everything(place)), [], "names in a copy of a table that was dropped")


def test_a_warehouse_named_by_a_uri(lake: Lake, folder: Path, unproven: Callable[[str, str], None]) -> None:
    """A path with a blank and a percent sign, as a `file:` URI has them. It is the folder, or refused."""
    folder = _folder(lake, folder, unproven) / "a lake%20"
    by_path, by_uri = (replace(lake, location=where) for where in (str(folder), folder.as_uri()))
    try:
        table = by_uri.create()
        table.append(0)
    except (Conflict, UnknownOutcome) as error:
        pytest.fail(f"a warehouse is named by a URI: {told(error)}, which tells of a race")
    except LaketierError:
        return
    expect(by_path.table("db.t").ids, ids_of(0), "rows of the same warehouse, named by its path")
    expect(by_path.table("db.t").append(0).outcome, RoundOutcome.ALREADY_THERE, "a replay, by the warehouse's path")
    expect([*map(str, by_uri.storage.catalog().list_tables())], ["db.t"], "the tables of a warehouse named by a URI")


def test_a_warehouse_that_was_moved_and_a_copy_in_its_place(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    """As a restore beside the old one leaves them. The moved one's folders and files have the numbers that a process
    may know them by, and are another warehouse's now. What is made in it is in it alone. A format may
    refuse the copy."""
    home = _home(lake)
    if home is None:
        unproven("a warehouse that was moved and a copy of it", NO_FOLDER)
        return
    here, moved = (replace(lake, location=str(home / name)) for name in ("here", "moved"))
    table = here.create()
    table.append(0)
    if _is_known_elsewhere(table, replace(lake, location=str(home / "elsewhere"))):
        unproven("a warehouse that was moved and a copy of it", "the catalog of its tables is not in its folder")
        return
    Path(here.location).rename(moved.location)
    apart.copy(moved.location, here.location)
    try:
        made = str(moved.create(name="db.later").path)
    except (Conflict, UnknownOutcome) as error:
        pytest.fail(f"a table is made in a warehouse that was moved: {told(error)}, which tells of a race")
    except LaketierError:
        return
    expect(made in map(str, moved.storage.catalog().list_tables()), True, "whether a new table is where it was made")
    try:
        copied = [*map(str, here.storage.catalog().list_tables())]
    except (Conflict, UnknownOutcome) as error:
        pytest.fail(f"the tables of a copy of a warehouse are listed: {told(error)}, which tells of a race")
    except LaketierError:
        return
    expect(made in copied, False, "whether a new table of a warehouse that was moved is in the copy in its place")


def test_a_table_that_was_moved_is_read_where_it_is(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    """A copy stays in its old place, goes on, and is taken away at last: whoever keeps absolute paths in metadata reads
    that one, and never the table that was asked for. A format may refuse a table that was moved."""
    home = _home(lake)
    if home is None:
        unproven("a table that was moved", NO_FOLDER)
        return
    here, moved = (replace(lake, location=str(home / name)) for name in ("here", "moved"))
    table = here.create()
    if _is_known_elsewhere(table, replace(lake, location=str(home / "elsewhere"))):
        unproven("a table that was moved", "the catalog of its tables is not in its folder")
        return
    staged = {*left_by(table, 0).values()}
    apart.copy(here.location, moved.location)
    there = moved.table("db.t")
    try:
        found = there.ids
    except (Conflict, UnknownOutcome) as error:
        pytest.fail(f"a table is read that was moved: {told(error)}, which tells of a race")
    except LaketierError:
        return
    expect(found, ids_of(0), "rows of a table that was moved, beside a copy in its old place")
    table.append(1)
    expect(there.ids, ids_of(0), "rows of a table that was moved, after the copy in its old place got more")
    gone = [path for path in Path(moved.location).rglob("*") if path.is_file() and apart.read(path) in staged]
    for path in gone:
        path.rename(home / path.name)
    if gone:
        with refused(
            Exception, "a table was moved, its data files are gone, and a copy is in its old place: it is read"
        ):
            found = there.ids
    for path in gone:
        (home / path.name).rename(path)
    Path(here.location).rename(home / "away")
    with goes_well("a table was moved, and is read after the copy in its old place is gone"):
        found = there.ids
    expect(found, ids_of(0), "rows of a table that was moved, after the copy in its old place is gone")


def test_a_warehouse_of_another_host(lake: Lake, folder: Path, unproven: Callable[[str, str], None]) -> None:
    """It is none of this host's folders."""
    folder = _folder(lake, folder, unproven) / "here"
    elsewhere = replace(lake, location=folder.as_uri().replace("file://", "file://another.host.invalid", 1))
    try:
        elsewhere.create().append(0)
    except Conflict as error:
        pytest.fail(f"a warehouse of another host is opened: {told(error)}, which tells of a race")
    except Exception:  # noqa: BLE001 - whatever says that it can't be reached
        pass
    else:
        assert not folder.exists(), "a warehouse of another host is opened, and is a folder of this one"
    assert not folder.exists(), "a warehouse of another host is refused, and a folder of this one is made"


@pytest.mark.parametrize("name", NOTHING)
def test_a_warehouse_without_a_name(lake: Lake, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is made: it is not the folder in which the process happens to run."""
    monkeypatch.chdir(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    nowhere = replace(lake, location=NOTHING[name])
    try:
        nowhere.create()
    except (Conflict, UnknownOutcome) as error:
        pytest.fail(f"a warehouse without a name is opened: {told(error)}, which tells of a race")
    except LaketierError:
        pass
    else:
        pytest.fail("a warehouse without a name is opened, and a table is made there")
    left = {path.name for path in tmp_path.iterdir()} - before
    expect(left, set(), "what is made in the working folder by a warehouse without a name")


@pytest.mark.parametrize(
    "name",
    ["{folder}?version=3", "{uri}?version=3", "{uri}#part", "lake:{name}", "file:", "file:{name}", "nowhere://x"],
)
def test_a_warehouse_that_is_named_oddly(
    lake: Lake,
    name: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unproven: Callable[[str, str], None],
) -> None:
    """It is refused, by an error that is no race, before anything is made; or it is one folder, the same for writers
    and readers, and no other one is made."""
    monkeypatch.chdir(tmp_path)
    folder = _folder(lake, folder, unproven) / "odd"
    odd = replace(lake, location=name.format(folder=folder, uri=folder.as_uri(), name=folder.name))
    try:
        odd.create().append(0)
    except (Conflict, UnknownOutcome, TableNotFound) as error:
        pytest.fail(f"a warehouse is named {name}: {told(error)}, which tells of a race, or of another warehouse")
    except LaketierError:
        made = [path for path in (folder, *tmp_path.glob("*odd*"), *tmp_path.glob("lake:*")) if path.exists()]
        expect(made, [], f"what is made by a warehouse that is named {name}, and refused")
        return
    except Exception as error:  # noqa: BLE001 - reported
        pytest.fail(f"a warehouse is named {name}: no error of laketier's, but {told(error)}")
    expect(odd.table("db.t").ids, ids_of(0), f"rows of a warehouse that is named {name}")
    assert not folder.exists() or folder.name == odd.location.rpartition("/")[2], (
        f"a warehouse is named {name}, and what is behind the name is passed over: it became {folder}"
    )


@pytest.mark.needs(Feature.DROP_TABLE)
@pytest.mark.parametrize("has_rows", [True, False], ids=["with rows", "made a moment ago"])
def test_a_table_below_another_one(table: Table, has_rows: bool, unproven: Callable[[str, str], None]) -> None:
    """Somebody's warehouse is inside of a table's folder. Dropping the table is refused, or leaves the other one as it
    is, also where nothing but its first metadata is there yet."""
    catalog, folder = table.lake.storage.catalog(), local_folder(table.info.location)
    if folder is None or table.path.table not in folder.name:
        unproven("tables below others", "the table is in no local folder of its name")
        catalog.drop_table(table.path)
        return
    table.append(0)
    inner = replace(table.lake, location=str(folder / "theirs"))
    if _is_known_elsewhere(table, inner):
        unproven("tables below others", "the catalog of a warehouse's tables is not in its folder")
        catalog.drop_table(table.path)
        return
    try:
        theirs = inner.create()
        if has_rows:
            theirs.append(0, ids_of(5))
    except LaketierError:
        catalog.drop_table(table.path)
        return
    try:
        catalog.drop_table(table.path)
    except FeatureNotSupported:
        raise  # the run judges the refusal of what is declared unsupported
    except (Conflict, UnknownOutcome, TableNotFound) as error:
        pytest.fail(f"a table is dropped that has another one below: {told(error)}, which tells of a race")
    except LaketierError:
        expect(table.ids, ids_of(0), "rows of a table that was not dropped, as another one is below")
    what = "rows of a table below one that was dropped, or refused to be"
    with goes_well(f"{what}, are read (a drop takes what is the table's out of its folder, and nothing else)"):
        ids = theirs.ids
    expect(ids, ids_of(5) if has_rows else [], what)
    with goes_well("a round of a table below one that was dropped, or refused to be"):
        found = theirs.append(1, ids_of(6)).outcome if has_rows else theirs.append(0, ids_of(6)).outcome
    expect(found, RoundOutcome.PUBLISHED, "a round of a table below one that was dropped, or refused to be")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_drop_leaves_no_folder(table: Table, unproven: Callable[[str, str], None]) -> None:
    """Nothing but the table was in it: whoever makes and drops many tables would leave as many empty folders. A
    folder with files that a library keeps for a clean-up of its own is not empty."""
    table.append(0)
    folder = local_folder(table.info.location)
    table.lake.storage.catalog().drop_table(table.path)
    if folder is None or table.path.table not in folder.name:
        unproven("folders after drops", "the table is in no local folder of its name")
        return
    folders = [each for each in (folder, *folder.rglob("*")) if each.is_dir()]
    empty = [each for each in folders if not any(below.is_file() for below in each.rglob("*"))]
    left = sorted(str(each.relative_to(folder.parent)) for each in empty)
    expect(left, [], "empty folders that are left where a table was that nobody shared, after it was dropped")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_a_drop_leaves_no_file(table: Table, harness: Harness, unproven: Callable[[str, str], None]) -> None:
    """What it was made of goes with it: rows, documents, and what tasks staged that nobody published. Else rows that
    somebody wants gone stay on the disk, and nothing that knows them is left. A format whose library deletes them
    later says so in its harness. Beside its folder a warehouse has what it had after a first table was dropped."""
    table.lake.storage.catalog().drop_table(table.path)
    known = table.lake.files()
    table.lake.create()
    table.append(0)
    table.append(1)
    if table.lake.declares(Feature.ADD_COLUMN):
        table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
    if table.lake.declares(Feature.OVERWRITE):
        table.round(token(2), [ids_of(2)], WriteMode.OVERWRITE)
    table.staged(ids_of(3))
    folder = local_folder(table.info.location)
    table.lake.storage.catalog().drop_table(table.path)
    if harness.dropped_files_stay or folder is None or table.path.table not in folder.name:
        why = harness.dropped_files_stay or "the table is in no local folder of its name"
        unproven("files after drops", why)
        return
    left = sorted(str(path.relative_to(folder.parent)) for path in files_below(folder))
    expect(left, [], "files that are left where a table was that nobody shared, after it was dropped")
    beside = sorted(table.lake.files() - known)
    expect(beside, [], "files that are left in a warehouse beside the folder of a table, after it was dropped")
