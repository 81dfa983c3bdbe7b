"""Nothing hostile reaches outside of the table: no forged result, no link, no listing. Inside of it, a forged result
reaches no file but its own attempt's. And nothing that is not whole gets into it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from laketier.maintenance.orphans import collect_orphans, list_orphans
from laketier.spi import (
    Conflict,
    Feature,
    LaketierError,
    PartitionField,
    Refused,
    UnknownOutcome,
    WriteMode,
    WriteResult,
    unpack,
)
from laketier.tiering import RoundOutcome
from laketier_conformance import apart
from laketier_conformance.expect import expect, refused, told
from laketier_conformance.hostile import paths
from laketier_conformance.lake import Lake, Table, ids_of, token
from laketier_conformance.outside import Surroundings, everything, touched

SEED = 11
FORGED = 120
"""So many paths are tried. `python -m laketier_conformance.hostile_run` tries as many as you like."""


@pytest.fixture
def around(lake: Lake, table: Table, tmp_path: Path, unproven: Callable[[str, str], None]) -> Surroundings | None:
    found = Surroundings.of(lake, table, tmp_path)
    if found is None:
        unproven("confinement to the table's folder", "the warehouse is no local folder")
    return found


def forged(staged: WriteResult, path: str) -> WriteResult:
    """A result that says that its first file is at ``path``."""
    return replace(staged, files=(replace(staged.files[0], path=path), *staged.files[1:]))


def targets(around: Surroundings | None, staged: WriteResult) -> Iterator[str]:
    """Paths that lead out of the table, many of them to what is really there."""
    yield from paths(SEED, FORGED)
    if around is not None:
        own = len(around.folder.parts) - 1
        copy = around.copy(staged.files[0].path)
        # A database may keep no file below the table's location.
        live = [path for path in sorted(around.home.rglob("*")) if path.is_file()][:1]
        for target in (copy, around.theirs / "canary", *live):
            yield str(target)
            yield f"file://{target}"
            yield "../" * own + str(target).lstrip("/")
            yield f"{Path(staged.files[0].path).parent}/" + "../" * (own + 9) + str(target).lstrip("/")


def test_a_forged_result_deletes_nothing_elsewhere(table: Table, around: Surroundings | None) -> None:
    table.append(0)
    staged = table.staged(ids_of(1))
    hostile = list(targets(around, staged))
    before = {} if around is None else around.all()
    committer = table.committer()
    for path in hostile:
        committer.discard([forged(staged, path)])
        expect(
            touched(before, {} if around is None else around.all()),
            [],
            f"files that changed when a forged result was discarded, of the path {path!r}",
        )
    committer.close()
    expect(table.ids, ids_of(0), "rows after forged results were discarded")


def test_a_forged_result_is_not_published(table: Table, around: Surroundings | None) -> None:
    """By the format alone, and by the core: it is refused by the name of its path, and nothing changes."""
    table.append(0)
    staged = table.staged(ids_of(1))
    hostile = list(targets(around, staged))
    before = {} if around is None else around.all()
    committer = table.committer()
    state = committer.open()
    for path in hostile:
        with refused(Refused, f"a forged result is published, of the path {path!r}") as refusal:
            committer.publish(state, [forged(staged, path)], None)
        said = refusal.text
        assert path[:40] in said or ascii(path)[1:40].rstrip("'") in said, "the path is named"
    committer.close()
    with refused(Refused, "a forged result of the path ../x is committed"):
        table.commit([forged(staged, "../x")], token(1))
    expect(
        touched(before, {} if around is None else around.all()),
        [],
        "files that changed when forged results were published",
    )
    expect(table.ids, ids_of(0), "rows after forged results were refused")
    expect(
        table.append(1).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the next round after forged results were refused",
    )


@pytest.mark.needs(Feature.OVERWRITE)
def test_an_overwrite_gets_what_was_staged_to_append(table: Table) -> None:
    """No writer makes such a result for it. Its rows take the place of all others, as those of any result do; or it is
    refused, nothing changes, and no error tells of a race: a round is tried again then, and this one is as it is."""
    table.append(0)
    committer = table.committer(WriteMode.OVERWRITE)
    state, staged = committer.open(), table.staged(ids_of(1))
    said = "a result that was staged to append is published by an overwrite"
    expected = ids_of(1)
    try:
        committer.publish(state, [staged], None)
    except (Conflict, UnknownOutcome) as error:
        pytest.fail(f"{said}: expected its rows, or a refusal, and found an error that tells of a race: {told(error)}")
    except LaketierError:
        expected = ids_of(0)
    except Exception as error:  # noqa: BLE001 - reported
        pytest.fail(f"{said}: expected its rows, or a refusal, and found no error of laketier's: {told(error)}")
    committer.close()
    expect(table.ids, expected, f"{said}: rows")
    expect(table.append(1, ids_of(2)).outcome, RoundOutcome.PUBLISHED, f"{said}: the outcome of the next round")


def of_others(around: Surroundings | None, staged: WriteResult, *others: WriteResult) -> list[str]:
    """Files in the table that ``staged`` did not stage: those of ``others``, and where they can be listed all that are
    there, live ones, the table's own documents, and one that nobody staged: as large as it should be, with a name that
    no writer gives."""
    _put_a_stray(around, staged.files[0].path)
    own = {file.path for file in staged.files}
    found = {file.path for result in others for file in result.files}
    if around is not None:
        found |= {str(path.relative_to(around.folder)) for path in around.folder.rglob("*") if path.is_file()}
    return sorted(found - own)


def _put_a_stray(around: Surroundings | None, path: str) -> None:
    """A copy of the file, beside it, as another program may leave one there."""
    file = None if around is None else around.folder / path
    if file is not None and file.is_file():
        apart.copy(file, file.with_name(f"stray{''.join(file.suffixes)}"))


def test_a_forged_result_deletes_no_other_file_of_the_table(table: Table, around: Surroundings | None) -> None:
    """The others may be live, or the table's log."""
    live = table.staged(ids_of(0))
    table.commit([live], token(0))
    staged, other = table.staged(ids_of(1)), table.staged(ids_of(2))
    theirs = of_others(around, staged, live, other)
    before = {} if around is None else around.all()
    committer = table.committer()
    for path in theirs:
        committer.discard([forged(staged, path)])
        expect(
            touched(before, {} if around is None else around.all()),
            [],
            f"files that changed when a result was discarded that names another attempt's file {path!r}",
        )
    committer.close()
    expect(table.ids, ids_of(0), "rows after results were discarded that name files of others")
    table.commit([other], token(1))
    expect(table.ids, ids_of(0) + ids_of(2), "rows after a round whose files a forged result named")


def test_a_forged_result_publishes_no_other_file_of_the_table(table: Table, around: Surroundings | None) -> None:
    """Rows would be there twice, or before their own round is."""
    live = table.staged(ids_of(0))
    table.commit([live], token(0))
    staged, other = table.staged(ids_of(1)), table.staged(ids_of(2))
    hostile = [[forged(staged, path)] for path in of_others(around, staged, live, other)]
    hostile += [[replace(result, attempt=staged.attempt)] for result in (live, other)]
    committer = table.committer()
    state = committer.open()
    for results in (*hostile, [staged, staged]):
        with refused(Refused, "results are published that name files of other attempts, or a file twice"):
            committer.publish(state, results, None)
    committer.close()
    expect(table.ids, ids_of(0), "rows after results with files of others were refused")
    expect(
        table.append(1).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the next round after results with files of others were refused",
    )


def test_what_a_result_says_of_a_file_is_of_another_one(table: Table) -> None:
    """What a format tells itself of a file (`StagedFile.payload`) comes from outside, too. It is refused, or the rows
    that come are those of the file that the path names: others would come before their own round, or once more."""
    live = table.staged(ids_of(0))
    table.commit([live], token(0))
    rows = ids_of(0)
    for number, whose in enumerate(("that is in the table", "that another attempt staged"), start=1):
        own = table.staged(ids_of(number))
        other = live if number == 1 else table.staged(ids_of(9))
        said = [replace(file, payload=theirs.payload) for file, theirs in zip(own.files, other.files, strict=True)]
        doing = f"a result is published whose payload is of a file {whose}"
        try:
            table.commit([replace(own, files=tuple(said))], token(number))
            rows = rows + ids_of(number)
        except Refused:
            table.commit([table.staged(())], token(number))
        except LaketierError as error:
            pytest.fail(f"{doing}: expected Refused, or the rows of its own file, and found {told(error)}")
        expect(table.ids, sorted(rows), f"rows after {doing}")


@pytest.mark.parametrize(
    "mode",
    [
        WriteMode.APPEND,
        pytest.param(WriteMode.OVERWRITE, marks=pytest.mark.needs(Feature.OVERWRITE)),
        pytest.param(WriteMode.UPSERT, marks=pytest.mark.needs(Feature.UPSERT)),
    ],
    ids=lambda mode: mode.value,
)
def test_a_staged_file_that_is_gone_is_not_published(lake: Lake, mode: WriteMode) -> None:
    """Somebody's clean-up took it. A table that lists it could not be read any more. The result before it is whole."""
    table = lake.create(primary_key=("id",) if mode is WriteMode.UPSERT else ())
    table.append(0)
    whole, staged = (_result_of(table, ids, mode) for ids in (ids_of(3), ids_of(1)))
    committer = table.committer(mode=mode)
    committer.discard([staged])
    _is_refused(table, committer, [whole, staged])


@pytest.mark.needs(Feature.PARTITIONING)
def test_one_staged_file_of_several_is_gone(lake: Lake) -> None:
    """Each file of a result is looked at, not one for all, and those that are left can be discarded."""
    table = lake.create(partition_by=(PartitionField("name"),))
    table.append(0)
    before = lake.files()
    committer = table.committer()
    staged = table.staged(ids_of(1))
    for number in range(len(staged.files)):
        committer.discard([replace(staged, files=(staged.files[number],))])
        with refused(Refused, f"a result is published whose file {number + 1} of {len(staged.files)} is gone"):
            committer.publish(committer.open(), [staged], None)
        committer.discard([staged])
        expect(lake.files(), before, "files after a result was discarded, one of whose files was gone before")
        staged = table.staged(ids_of(1))
    committer.discard([staged])
    committer.close()
    expect(table.ids, ids_of(0), "rows after results were refused, a file of which was gone")


def _result_of(table: Table, ids: Sequence[int], mode: WriteMode) -> WriteResult:
    """One task's result."""
    factory = table.factory
    result: WriteResult = unpack(factory.write_result_serializer, table.stage(ids, 0, factory, mode))
    return result


@pytest.mark.parametrize("damage", ["cut", "longer", "folder", "link"])
def test_a_staged_file_that_is_another_one_is_not_published(
    table: Table, around: Surroundings | None, damage: str
) -> None:
    table.append(0)
    staged = table.staged(ids_of(1))
    if around is None:
        return
    path = around.folder / staged.files[0].path
    copy = around.copy(staged.files[0].path)
    written = apart.read(path)
    path.unlink()
    match damage:
        case "cut":
            apart.write(path, written[: len(written) // 2])
        case "longer":
            apart.write(path, b"x" + written)
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(copy)
    before = around.around()
    _is_refused(table, table.committer(), [staged])
    expect(touched(before, around.around()), [], "files that changed around the table when a damaged file was refused")


def _is_refused(table: Table, committer: Any, staged: Sequence[WriteResult]) -> None:
    with refused(Refused, "a staged file that is gone or another one is published by the format"):
        committer.publish(committer.open(), staged, None)
    committer.close()
    with refused(Refused, "a staged file that is gone or another one is committed"):
        table.commit(staged, token(1))
    expect(table.ids, ids_of(0), "rows after a staged file was refused")
    expect(
        table.append(1).outcome, RoundOutcome.PUBLISHED, "the outcome of the next round after a staged file was refused"
    )
    expect(table.ids, ids_of(0) + ids_of(1), "rows of the next round after a staged file was refused")


def test_a_file_that_was_collected_after_a_lost_answer_is_not_published(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt has no answer, and the loop tries again: on files that are gone by then. Whether the first one
    still lands nobody knows, so the round's outcome is unknown, caused by the refusal of the second."""
    table.append(0)
    staged = table.staged(ids_of(1))
    committer = type(table.committer())
    publish = committer.publish
    failed: list[str] = []

    def fails_once(self: Any, *arguments: Any) -> Any:
        if not failed:
            failed.append("once")
            self.discard([staged])
            raise TimeoutError("no answer")
        return publish(self, *arguments)

    monkeypatch.setattr(committer, "publish", fails_once)
    with refused(UnknownOutcome, "a staged file is published that was collected after an answer was lost") as outcome:
        table.commit([staged], token(1))
    expect(isinstance(outcome.value.__cause__, Refused), True, f"a refusal is the cause of {told(outcome.value)}")
    assert failed, "the first attempt to publish failed, as this test needs"
    expect(table.ids, ids_of(0), "rows after a collected file was refused")
    expect(
        table.append(1).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the next round after a collected file was refused",
    )


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_listing_changes_nothing(lake: Lake, table: Table, around: Surroundings | None) -> None:
    table.append(0)
    staged = table.staged(ids_of(1))
    lake.let_age()
    before = everything(Path(lake.location)) if around is not None else {}
    found = list_orphans(lake.storage, table.info, grace=timedelta(0)).orphans
    assert {file.path for file in staged.files} <= {file.path for file in found}, (
        "a listing of orphans has the staged files"
    )
    expect(
        touched(before, everything(Path(lake.location)) if around is not None else {}),
        [],
        "files that changed when orphans were listed",
    )


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_collection_follows_no_link_in_the_table(lake: Lake, table: Table, around: Surroundings | None) -> None:
    """Links to files and folders of others, in each folder of the table. None of them is told as an orphan, whatever
    its name: a format may have links of its own, and made none of these."""
    table.append(0)
    staged = table.staged(ids_of(1))
    links: list[str] = []
    if around is not None:
        around.copy(staged.files[0].path)
        # A link to this has such a name, too. The table staged nothing of that name, so no list of its own has it.
        if (others := around.home / around.other.staged(ids_of(2)).files[0].path).is_file():
            apart.copy(others, around.theirs / others.name)
        links = [str(path.relative_to(around.folder)) for path in _plant_links(around)]
    before = {} if around is None else around.around()
    lake.let_age()
    listed = [file.path for file in collect_orphans(lake.storage, table.info, grace=timedelta(0)).orphans]
    expect(
        touched(before, {} if around is None else around.around()),
        [],
        "files that changed around the table when orphans were collected, with links in the table",
    )
    behind = [path for path in listed if {"to-theirs", "to-other"}.intersection(path.split("/")[:-1])]
    expect(behind, [], "files behind a link that are listed as the table's orphans")
    expect(sorted({*links}.intersection(listed)), [], "links of others in the table that are told as orphans")
    assert around is None or around.other.ids == ids_of(7), (
        "rows of the other table after orphans were collected, with links to it"
    )
    expect(table.ids, ids_of(0), "rows after orphans were collected, with links in the table")
    expect(
        table.append(1).outcome,
        RoundOutcome.PUBLISHED,
        "the outcome of the next round after orphans were collected, with links in the table",
    )


def _plant_links(around: Surroundings) -> list[Path]:
    planted = []
    for folder in [around.folder, *(path for path in around.folder.rglob("*") if path.is_dir())]:
        links = {folder / "to-theirs": around.theirs, folder / "to-other": around.home}
        links |= {folder / each.name: each for each in around.theirs.iterdir() if each.is_file()}
        for link, target in links.items():
            if not link.exists():
                link.symlink_to(target)
                planted.append(link)
    return planted


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_collection_takes_no_folder_of_another_table_for_its_own(
    lake: Lake, table: Table, around: Surroundings | None
) -> None:
    """Each folder of the table in turn is a link to the other table's, or to where somebody else has such files."""
    table.append(0)
    staged = table.staged(ids_of(1))
    for name in () if around is None else sorted(path.name for path in around.folder.iterdir() if path.is_dir()):
        assert around is not None, "the table's surroundings are known here"
        around.copy(staged.files[0].path)
        for target in (around.home / name, around.theirs):
            if not target.exists():
                continue
            own, aside = around.folder / name, around.folder.parent / "aside"
            own.rename(aside)
            own.symlink_to(target)
            before = around.around()
            try:
                collect_orphans(lake.storage, table.info, grace=timedelta(0))
            except LaketierError:
                pass  # it may say that it can't
            finally:
                own.unlink()
                aside.rename(own)
            expect(
                touched(before, around.around()),
                [],
                f"files that changed around the table when orphans were collected, with the link {name} -> {target}",
            )
            expect(
                around.other.ids,
                ids_of(7),
                f"rows of the other table after orphans were collected, with the link {name} -> {target}",
            )
    collect_orphans(lake.storage, table.info, grace=timedelta(0))
    expect(table.ids, ids_of(0), "rows after orphans were collected beside links")


@pytest.mark.needs(Feature.DROP_TABLE)
def test_dropping_a_table_follows_no_link(lake: Lake, table: Table, around: Surroundings | None) -> None:
    table.append(0)
    if around is not None:
        _plant_links(around)
    before = {} if around is None else around.around()
    lake.storage.catalog().drop_table(table.path)
    expect(
        touched(before, {} if around is None else around.around()),
        [],
        "files that changed around the table when it was dropped, with links in it",
    )
    if around is not None:
        shutil.rmtree(around.folder, ignore_errors=True)
        expect(around.other.ids, ids_of(7), "rows of the other table after one with links to it was dropped")
