"""The last look at staged files, and their deletion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laketier import kit, spi
from laketier.kit import staged
from text_lake import Lake, TextTable


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def test_files_that_cannot_be_deleted_stay_orphans(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    good, folder = lake.stage(1).files[0].path, "a" * 32 + ".text"
    (lake.table.location / folder / "below").mkdir(parents=True)
    gone = "b" * 32 + ".text"
    found = [spi.OrphanFile(path, 1, 0, "data", None) for path in (folder, good, "../x", gone)]
    assert [file.path for file in lake.maintenance.remove_orphans(found)] == [good, gone]
    assert caplog.text.count("was not deleted") == 2
    assert staged.remove(lake.table.folder, []) == set()


def test_a_bug_while_deleting_is_no_file_that_stays(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(kit.TableFolder, "delete", fails)
    with pytest.raises(KeyError):
        staged.remove(lake.table.folder, ["a" * 32 + ".text"])


def test_each_replaced_file_is_live_and_named_once(lake: Lake) -> None:
    def results(*names: str) -> list[spi.WriteResult]:
        return [replace(lake.stage(1), replaced=(name,)) for name in names]

    assert staged.replaced_files(results("a", "b"), {"a", "b", "c"}, where="t") == ("a", "b")
    with pytest.raises(spi.CommitError, match="is no live file") as told:
        staged.replaced_files(results("a", "x"), {"a"}, where="t")
    assert told.type is spi.CommitError, "a conflict would be tried again, with the same files"
    with pytest.raises(spi.CommitError, match="is replaced twice") as told:
        staged.replaced_files(results("a", "a"), {"a"}, where="t")
    assert told.type is spi.CommitError


@pytest.mark.parametrize("error", [OSError("away"), KeyError("a library's")])
def test_nothing_is_discarded_of_a_table_that_cannot_be_read(
    lake: Lake, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    deleted: list[Any] = []

    def fails(_: Any) -> Any:
        raise error

    def discard(published: Callable[[Any], Any]) -> None:
        attempt_of = TextTable.layout.attempt_of
        staged.discard_staged([left], attempt_of=attempt_of, where="t", published=published, delete=deleted.append)

    left = lake.stage(1)
    discard(fails)
    assert deleted == []
    assert "can't be read, so nothing was deleted" in caplog.text
    caplog.clear()
    discard(lambda paths: paths)
    assert deleted == [[]]
    assert "is in the table: kept" in caplog.text
    caplog.clear()
    discard(lambda _: ())
    assert deleted == [[], [left.files[0].path]]
    assert not caplog.text


def test_nothing_to_discard_asks_nothing(lake: Lake) -> None:
    def fails(_: Any) -> Any:
        raise AssertionError("the table is asked")

    staged.discard_staged([], attempt_of=TextTable.layout.attempt_of, where="t", published=fails, delete=fails)


def test_a_staged_file_that_is_gone_or_short(lake: Lake) -> None:
    with pytest.raises(spi.StagedFileLost, match="is gone"):
        staged.refuse_lost("a", None, 5, where="t")
    with pytest.raises(spi.StagedFileLost, match="has 4 bytes, and its writer wrote 5"):
        staged.refuse_lost("a", 4, 5, where="t")
    staged.refuse_lost("a", 5, 5, where="t")
    left = lake.stage(1)
    other = replace(left, files=(replace(left.files[0], path="notes.txt"),))
    with pytest.raises(spi.OutsideTable, match="no writer of this format stages a file under such a name"):
        staged.refuse_foreign([other], TextTable.layout.attempt_of, where="t")
    assert staged.own_paths([other, left], TextTable.layout.attempt_of, where="t") == [left.files[0].path]


def test_a_bug_in_a_formats_names_is_told(lake: Lake) -> None:
    def fails(_: str) -> str | None:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        staged.own_paths([lake.stage(1)], fails, where="t")


@pytest.mark.parametrize("error", [OSError("busy"), spi.StorageError("busy"), spi.OutsideTable("a link")])
def test_one_that_can_not_be_deleted_keeps_no_other(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    first, second = (lake.stage(number).files[0].path for number in (1, 2))
    delete = kit.TableFolder.delete

    def fails(folder: kit.TableFolder, path: str) -> bool:
        if path == first:
            raise error
        return delete(folder, path)

    monkeypatch.setattr(kit.TableFolder, "delete", fails)
    assert staged.remove(lake.table.folder, [first, second]) == {second}


def test_a_file_that_is_live_or_handed_over_twice_is_not_published(lake: Lake) -> None:
    staged.refuse_live(["a", "b"], {"c"}, where="t")
    with pytest.raises(spi.OutsideTable, match="'b' is a file of the table already"):
        staged.refuse_live(["a", "b"], {"b"}, where="t")
    with pytest.raises(spi.OutsideTable, match="'b' was published before; nothing was published"):
        staged.refuse_published(["a", "b"], {"b"}, where="t")
    result = lake.stage(1)
    twice = replace(result, files=result.files * 2)
    with pytest.raises(spi.StagedFileLost, match="was handed over twice"):
        staged.refuse_foreign([twice], TextTable.layout.attempt_of, where="t")
    with pytest.raises(spi.StagedFileLost, match="was handed over twice"):
        staged.refuse_foreign([result, result], TextTable.layout.attempt_of, where="t")


def test_a_path_that_leads_out_is_not_discarded(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    result = lake.stage(1)
    forged = replace(result, files=(*result.files, replace(result.files[0], path="../x")))
    assert staged.own_paths([forged], TextTable.layout.attempt_of, where="t") == [result.files[0].path]
    assert "was not deleted" in caplog.text
