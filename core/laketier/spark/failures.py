"""What failed, out of what Spark says about it."""

from __future__ import annotations

import re

from laketier.spi import LaketierError, errors

_LINE = re.compile(r"^(?:laketier\.spi\.errors\.)(?P<kind>\w+): (?P<text>.*)$", re.MULTILINE)


def cause_of(error: BaseException) -> LaketierError | None:
    """The error of ours inside an exception of Spark's, or None.

    Spark hands an error over from its Python processes as the text of a traceback. The last error of ours in it is the
    one that ended the work; its parts are one text then.
    """
    if isinstance(error, LaketierError):
        return error
    found = list(_LINE.finditer(f"{error}"))
    for match in reversed(found):
        kind = getattr(errors, match["kind"], None)
        if isinstance(kind, type) and issubclass(kind, LaketierError):
            rebuilt = kind.__new__(kind, match["text"])
            LaketierError.__init__(rebuilt, match["text"])
            return rebuilt
    return None
