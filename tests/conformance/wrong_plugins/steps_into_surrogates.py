"""The bound above a long text is the next code point after its first ones, which may be half a pair of UTF-16: no file
can have it, and a task with such a row fails each time."""

from __future__ import annotations

from forgetful import forgetful

from laketier import spi
from laketier.registry import hookimpl
from laketier_iceberg.plugin import IcebergPlugin

CAUGHT_BY = "test_filters.py::test_filters_on_each_type[large-text]"
SAYS = "as a task ends (LakeWriter.complete): expected no error, found UnicodeEncodeError"


def _next(prefix: str) -> str | None:
    for end in range(len(prefix) - 1, -1, -1):
        if ord(prefix[end]) < 0x10FFFF:
            return prefix[:end] + chr(ord(prefix[end]) + 1)
    return None


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return forgetful(
        IcebergPlugin, "steps-into-surrogates", writer="laketier_iceberg.metrics._next_string", instead=_next
    )
