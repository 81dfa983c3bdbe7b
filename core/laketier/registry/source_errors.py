"""The one place that says of a source's own error whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from laketier.kit.library_errors import ends_the_process, told
from laketier.spi import LaketierError, StorageError


@contextmanager
def naming_source_errors(method: str, *, where: str) -> Iterator[None]:
    """Raise what a source or a library of its raises in the body as `StorageError`. Errors of laketier's and of the
    storage pass: they say by themselves, or to whoever called, what to do. ``method`` is what the source was asked,
    ``where`` the source or its table."""
    try:
        yield
    except (LaketierError, OSError):
        raise
    except BaseException as error:
        if ends_the_process(error):
            raise
        raise StorageError(
            f"the source failed in `{method}`",
            where=where,
            why=told(error),
            fix="Nothing was published. See that the source answers and that its options fit. If they do, report it to "
            "the author of the source: it is an error of the plugin's own, or of a library that it uses.",
        ) from error
