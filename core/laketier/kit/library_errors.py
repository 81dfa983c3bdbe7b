"""The one place that tells whose trouble an error is that is no `LaketierError`: a library's, or the process's own."""

from __future__ import annotations

import errno
import logging
import re
import threading
from collections.abc import Callable

from laketier.spi.errors import LaketierError, StorageError
from laketier.spi.redaction import redacted
from laketier.spi.visible import plain

log = logging.getLogger(__name__)

_OS_ERROR = re.compile(r"(?:\(os error |\bOs \{ code: |\[Errno )(\d+)")
"""How an error of the system is printed: by Rust for people, for developers, and by Python."""


def ends_the_process(error: BaseException) -> bool:
    """Whether an error is a person's Ctrl-C or the end of a generator, which whatever catches it raises again.

    All others are a library's. Some of those are no `Exception`: a panic in Rust, and a client library that calls
    `sys.exit`. In a thread beside the main one these two are a library's, too, as Python gives a person's Ctrl-C to the
    main thread alone; were one raised again there, whoever waits for the thread's answer would wait for ever.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and isinstance(error, KeyboardInterrupt | GeneratorExit)


def errors_and_panics(*errors: type[Exception]) -> tuple[type[BaseException], ...]:
    """What an ``except`` around a library in Rust has to name: these errors of it, and its panics, as it may have for
    a file that is damaged. A panic passes every ``except Exception``. Its class is made by the first one, and exported
    by no library: write ``except errors_and_panics(OSError) as error``, which Python evaluates when something was
    raised. Driver and executor."""
    return (*errors, *(kind for kind in BaseException.__subclasses__() if kind.__name__ == "PanicException"))


def refused_by_the_system(error: BaseException) -> bool:
    """Whether a look at a file failed, by the text of an error of a library in Rust, which often has no class of errors
    for it. That tells nothing of the file: it is no damage. A file that is not there is no such error. Driver and
    executor."""
    return any(number != errno.ENOENT for number in numbers_of_the_system(error))


def numbers_of_the_system(error: BaseException) -> list[int]:
    """The numbers of the system's errors, by the text of a library's error, which has none as an attribute. Driver and
    executor."""
    return [int(number) for number in _OS_ERROR.findall(str(error))]


def in_one_line(text: str) -> str:
    """The words of a library without what is for a terminal, so that a log has them in one line. Driver and
    executor."""
    return " ".join(plain(text).split())


def as_told(error: BaseException, what: str, *, where: str | None = None) -> LaketierError:
    """Turn whatever a library raised into an error to tell.

    Args:
        error: What was caught, as a `BaseException`.
        what: What failed.
        where: The table or source.

    Returns:
        ``error`` itself if it is a `LaketierError`, otherwise a `StorageError` with it as its cause.

    Raises:
        BaseException: ``error`` again, if it `ends_the_process`.
    """
    if isinstance(error, LaketierError):
        return error
    if ends_the_process(error):
        raise error
    found = StorageError(what, where=where, why=told(error))
    found.__cause__ = error
    return found


def told(error: BaseException) -> str:
    """The name and the words of an error. One of a library's may fail as it is asked for its words.

    Args:
        error: What was caught.

    Returns:
        The text.
    """
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as failed:  # noqa: BLE001 - whatever its words may raise
        return f"{type(error).__name__}, whose text can't be made: {type(failed).__name__}"


def close_and_tell(close: Callable[[], object], what: str) -> None:
    """Close what a library opened, and log what it raises: what was done with it is done, and others are to be closed.
    Driver.

    Args:
        close: Closes it.
        what: Its name, for the log.

    Raises:
        BaseException: What was raised, if it `ends_the_process`.
    """
    try:
        close()
    except BaseException as error:
        if ends_the_process(error):
            raise
        log.warning("%s could not be closed: %s", what, redacted(told(error)))
