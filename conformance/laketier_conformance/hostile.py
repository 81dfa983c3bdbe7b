"""Hostile paths, for tests of what takes paths from outside. From a seed, so that a failure can be run again.

**None names a file that any system has**: a plugin that is wrong may delete what it is given, and tests run as any
user, root too. Each ends in `NOWHERE`, a name of nobody's, or in what can only be a folder.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

NOWHERE = "laketier-nowhere"

STEPS = (
    "..", ".", "", "...", ".. ", "a", "data", "region=eu", "~", "~root", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "%2f",
    "a%2f..%2f..", "..%5c..", "%5c", "\\", "..\\..", "C:", "file:", "s3:", "\x00", "%00", "\n", "\x7f", "k=%2e%2e",
    "\ud800", "é", "\u2025", " ", "_delta_log", "__in_progress", "metadata",
)  # fmt: skip
"""What the way to a file is made of by who wants to be somewhere else, and by who does not."""

_LAST = (
    NOWHERE, f"{NOWHERE}.parquet", f"part-0-{NOWHERE}.parquet", f"{NOWHERE}\x00.parquet", f"{NOWHERE}\n",
    f"é-{NOWHERE}", f"%2f{NOWHERE}", f"..%2f{NOWHERE}", f"..%5c{NOWHERE}", f"..\\{NOWHERE}", NOWHERE * 20,
    "..", ".", "", "%2e%2e", "... ",
)  # fmt: skip
PIECES = (*STEPS, *_LAST)

FIXED = (
    "", ".", "..", "/", "//", f"/{NOWHERE}/x", f"//server/share/{NOWHERE}", f"../{NOWHERE}", f"a/../../{NOWHERE}",
    f"a/./{NOWHERE}", f"a//{NOWHERE}", f"{NOWHERE}/", f"./{NOWHERE}", f"C:/{NOWHERE}", f"C:\\{NOWHERE}",
    f"\\\\server\\{NOWHERE}", f"a\\..\\..\\{NOWHERE}", f"file:///{NOWHERE}/x", f"file:/{NOWHERE}/x",
    f"s3://bucket/{NOWHERE}", f"hdfs:{NOWHERE}", f"%2e%2e/{NOWHERE}", f"%2E%2E/%2e%2e/{NOWHERE}",
    f"%252e%252e/{NOWHERE}", f"%2f{NOWHERE}%2fx", f"..%2f{NOWHERE}", f"a%2f..%2f..%2f{NOWHERE}",
    f"..%5c{NOWHERE}", f"{NOWHERE}\x00.parquet",
    f"{NOWHERE}%00.parquet", f"a\n{NOWHERE}", f"~/{NOWHERE}", f"~root/{NOWHERE}", f"... /{NOWHERE}",
    "../" * 40 + f"{NOWHERE}/x", "x/" * 3000 + NOWHERE, NOWHERE * 400, "\ud800",
)  # fmt: skip


def paths(seed: int, count: int) -> Iterator[str]:
    """``FIXED``, and then others that are put together at random: ``count`` in all."""
    yield from FIXED[:count]
    draw = random.Random(seed)
    for _ in range(count - len(FIXED)):
        head = draw.choice(("", "", "", "/", "//", "\\\\", "file://", "s3://"))
        way = [*draw.choices(STEPS, k=draw.randint(0, 5)), draw.choice(_LAST)]
        yield head + draw.choice(("/", "/", "/", "//", "\\")).join(way)
