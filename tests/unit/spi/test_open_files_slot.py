"""The place where a writer leaves its open files for the next epoch."""

from __future__ import annotations

from laketier.spi import OpenFiles, OpenFilesSlot
from memory_lake import MemoryFactory, MemoryTable


class Files(OpenFiles):
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Old(Files):
    is_due = True


def test_one_writer_gets_what_the_last_one_left() -> None:
    slot, files = OpenFilesSlot(), Files()
    assert (slot.take(), slot.is_empty, slot.ending) == (None, True, False)
    slot.leave(files)
    assert not slot.is_empty
    assert slot.take() is files
    assert (slot.take(), slot.is_empty) == (None, True)
    slot.leave(files)
    assert slot.take() is files
    assert files.closed == 0


def test_what_comes_second_is_given_up() -> None:
    slot, first, second = OpenFilesSlot(), Files(), Files()
    slot.leave(first)
    slot.leave(second)
    assert (first.closed, second.closed) == (0, 1)
    assert slot.take() is first


def test_a_slot_that_is_closed_takes_nothing() -> None:
    """Also where it was empty: its engine has lost the table."""
    slot, first, second = OpenFilesSlot(), Files(), Files()
    slot.leave(first)
    slot.close()
    slot.close()
    slot.leave(second)
    assert (first.closed, second.closed) == (1, 1)
    assert (slot.take(), slot.is_empty) == (None, True)
    empty, third = OpenFilesSlot(), Files()
    empty.close()
    empty.leave(third)
    assert (third.closed, empty.take()) == (1, None)


def test_only_what_is_in_it_is_due() -> None:
    slot = OpenFilesSlot()
    assert not slot.is_due
    slot.leave(Files())
    assert not slot.is_due, "files are not due by themselves"
    slot.take()
    slot.leave(Old())
    assert slot.is_due
    slot.take()
    assert not slot.is_due


def test_no_format_leaves_files_open_by_itself() -> None:
    assert MemoryFactory(MemoryTable()).leaves_files_open is False
