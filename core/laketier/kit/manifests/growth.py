"""Files that stay open across commits: what a manifest says of one that grew.

A process that lives over epochs appends to a data file, and each commit records how long the file is. So a manifest's
entry of such a file is its *state*: a later entry with the same path takes the place of the earlier one. The rows of
the commit itself are those between the two lengths.

Nobody but the process that opened a file ever writes into it, and it only appends. So whatever lies behind a recorded
length, what was recorded stays as it was.
"""

from __future__ import annotations

import base64
import builtins
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from laketier.kit.manifests.document import whole
from laketier.spi.writer import StagedFile

GROWTH = "growth"
"""Its key in an entry, and in the payload of a `StagedFile`, as text."""


@dataclass(frozen=True)
class Growth:
    """What a commit added to a file. ``rows`` and ``bytes``: what was there before it, 0 for a file that it began.
    ``upto``: where the rows end, and in a finished file its end begins. ``head``: so many bytes at the file's beginning
    are needed to read any stretch of it (names of columns, a schema). ``digest``: of the bytes from ``bytes`` to
    ``upto``. ``pipeline``: whose epochs it grows by, empty for none. ``is_open``: whether it goes on growing; then
    ``suffix`` is what has to follow ``upto`` so that it is a whole file, None where that is made of what is there."""

    rows: int
    bytes: int
    upto: int
    head: int
    digest: str
    pipeline: str = ""
    is_open: bool = True
    suffix: builtins.bytes | None = b""

    @property
    def continues(self) -> bool:
        """Whether an earlier commit recorded the file, too."""
        return self.bytes > 0

    def to_plain(self) -> dict[str, Any]:
        """As JSON's own types."""
        return {
            "rows": self.rows,
            "bytes": self.bytes,
            "upto": self.upto,
            "head": self.head,
            "digest": self.digest,
            "pipeline": self.pipeline,
            "open": self.is_open,
            "suffix": None if self.suffix is None else base64.b64encode(self.suffix).decode("ascii"),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Growth:
        """Undo `to_plain`. Raises `KeyError`, `TypeError` and `ValueError`."""
        digest, pipeline, is_open = plain["digest"], plain["pipeline"], plain["open"]
        if not (isinstance(digest, str) and isinstance(pipeline, str) and isinstance(is_open, bool)):
            raise TypeError(f"{dict(plain)!r} is no growth of a file")
        found = cls(
            rows=whole(plain["rows"]),
            bytes=whole(plain["bytes"]),
            upto=whole(plain["upto"]),
            head=whole(plain["head"]),
            digest=digest,
            pipeline=pipeline,
            is_open=is_open,
            suffix=None if plain["suffix"] is None else base64.b64decode(plain["suffix"], validate=True),
        )
        if not found.bytes <= found.upto or not found.head <= found.upto:
            raise ValueError(f"a file can't grow from {found.bytes} to {found.upto} bytes")
        return found


def growth_of(file: StagedFile) -> Growth | None:
    """What a staged file says of its growth; None for a file of one attempt. Raises as `Growth.from_plain`."""
    text = file.payload.get(GROWTH)
    return None if text is None else Growth.from_plain(json.loads(text))


def growth_text(growth: Growth) -> str:
    """For a staged file's payload."""
    return json.dumps(growth.to_plain(), sort_keys=True, separators=(",", ":"))
