"""Hostile paths, for tests of what takes paths from outside. From a seed, so that a failure can be run again."""

from __future__ import annotations

import random
from collections.abc import Iterator

PIECES = (
    "..", ".", "", "...", ".. ", "a", "data", "region=eu", "etc", "passwd", "~", "~root", "%2e%2e", "%2E.", ".%2e",
    "%252e%252e", "%2f", "%2fetc", "a%2f..%2f..", "..%5c..", "%5c", "\\", "..\\..", "C:", "C:\\x", "c:x", "file:",
    "file:etc", "s3:", "\x00", "a\x00b", "%00", "\n", "\x7f", "a\nb", "k=%2e%2e", "\ud800", "x" * 300, "é", "\u2025",
    "con", " ", "_delta_log", "__in_progress", "metadata", "part-0.parquet", "canary",
)  # fmt: skip
"""What names of files are made of by who wants to be somewhere else, and by who does not."""

FIXED = (
    "", ".", "..", "/", "//", "/laketier-nowhere/x", "//server/share/x", "../x", "a/../../x", "a/./b", "a//b", "a/", "./a",
    "C:/Windows/x", "C:\\Windows\\x", "\\\\server\\share", "a\\..\\..\\x", "file:///laketier-nowhere/x", "file:/laketier-nowhere/x",
    "s3://bucket/x", "hdfs:x", "%2e%2e/x", "%2E%2E/%2e%2e/x", "%252e%252e/x", "%2fetc%2fpasswd", "..%2fx",
    "a%2f..%2f..%2fx", "..%5cx", "x\x00.parquet", "x%00.parquet", "a\nb", "~/x", "~root/x", "... /x",
    "../" * 40 + "etc/x", "x/" * 3000 + "y", "x" * 5000, "\ud800",
)  # fmt: skip


def paths(seed: int, count: int) -> Iterator[str]:
    """``FIXED``, and then others that are put together at random: ``count`` in all."""
    yield from FIXED[:count]
    draw = random.Random(seed)
    for _ in range(count - len(FIXED)):
        head = draw.choice(("", "", "", "/", "//", "\\\\", "file://", "s3://"))
        yield head + draw.choice(("/", "/", "/", "//", "\\")).join(draw.choices(PIECES, k=draw.randint(1, 6)))
