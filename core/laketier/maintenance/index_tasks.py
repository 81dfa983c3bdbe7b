"""What a task does around a builder: it gives it a place to spill to, and tells how much memory its process held."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from laketier.kit import failpoint
from laketier.spi import BuiltIndexPart, ConfigError, IndexPart, IndexResources, LakeIndexBuilder

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_TEMPORARY = "TMPDIR"

PART_BEGUN, PART_DONE = "index.part_begun", "index.part_done"
"""Failpoints of the task: before its part is built, and after, before the driver knows."""


def build_part(builder: LakeIndexBuilder, part: IndexPart, resources: IndexResources) -> BuiltIndexPart:
    """Build a part. Executor.

    Args:
        builder: The builder of the plan.
        part: The part.
        resources: Those of the plan. Where they need a process of their own, this is one.

    Returns:
        What was built, with the memory that the process held.

    Raises:
        ConfigError: The folder to spill to is none on this host.
        TableError: As `LakeIndexBuilder.build`.
    """
    _forget_peak()
    failpoint(PART_BEGUN)
    with _spilling_to(resources.spill):
        built = builder.build(part)
    failpoint(PART_DONE)
    return replace(built, peak_memory=_peak())


@contextmanager
def _spilling_to(folder: str | None) -> Iterator[None]:
    """What libraries write to the system's folder for temporary files goes to one of its own below ``folder``, which is
    deleted with all in it."""
    if folder is None:
        yield
        return
    try:
        made = tempfile.TemporaryDirectory(prefix="laketier-index-", dir=Path(folder).absolute())
    except OSError as error:
        raise ConfigError(
            f"{folder} can't be spilled to",
            where="spill",
            why=f"{error.strerror or error}",
            fix="Name a folder that is there on each host that builds parts.",
        ) from error
    before = os.environ.get(_TEMPORARY)
    with made as own:
        os.environ[_TEMPORARY] = own
        try:
            yield
        finally:
            if before is None:
                del os.environ[_TEMPORARY]
            else:
                os.environ[_TEMPORARY] = before


def _forget_peak() -> None:
    with suppress(OSError):  # no Linux, or a container that forbids it: then the peak is that of the process's life
        _FORGET.write_text("5")


def _peak() -> int:
    """The most bytes of memory that this process has held since `_forget_peak`."""
    with suppress(OSError, ValueError, IndexError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
