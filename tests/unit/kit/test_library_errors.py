"""Whose trouble an error is: a library's, which is told, or a person's Ctrl-C, which ends what runs."""

from __future__ import annotations

import threading

import pytest

from laketier.kit.library_errors import as_told, ends_the_process, errors_and_panics, refused_by_the_system
from laketier.spi import IncompatibleData, StorageError


class PanicException(BaseException):
    """As libraries in Rust raise it: no `Exception`."""


@pytest.mark.parametrize("error", [PanicException("index"), SystemExit("index"), ValueError("index")])
def test_whatever_a_library_raises_is_told(error: BaseException) -> None:
    told = as_told(error, "a task failed", where="t")
    assert isinstance(told, StorageError)
    assert str(told) == f"t: a task failed, because {type(error).__name__}: index"
    assert told.__cause__ is error


def test_an_error_of_ours_stays_as_it_is() -> None:
    error = IncompatibleData("no")
    assert as_told(error, "a task failed") is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
def test_what_ends_the_process_is_raised_again(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        as_told(error, "a task failed")
    assert raised.value is error


def test_beside_the_main_thread_an_interrupt_is_a_librarys() -> None:
    """Nobody would hear of it: the thread would end without an answer."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(ends_the_process(KeyboardInterrupt())))
    thread.start()
    thread.join()
    assert found == [False]


@pytest.mark.parametrize("error", [PanicException("index"), OSError("index")])
def test_an_except_names_panics_beside_errors(error: BaseException) -> None:
    found = []
    try:
        raise error
    except errors_and_panics(OSError) as caught:
        found.append(caught)
    assert found == [error]
    assert ValueError not in errors_and_panics(OSError)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("File not found (os error 2)", False),
        ("gone (os error 2), then (os error 5)", True),
        ("Too many open files (os error 24)", True),
        ('Os { code: 13, kind: PermissionDenied, message: "Permission denied" }', True),
        ("Os { code: 2, kind: NotFound }", False),
        ("Python read of 0..2484 failed: OSError: [Errno 5] Input/output error", True),
        ("the footer has 5 bytes", False),
    ],
)
def test_a_look_that_failed_is_no_damage_and_a_file_that_is_gone_is_no_such_look(text: str, refused: bool) -> None:
    assert refused_by_the_system(RuntimeError(text)) is refused
