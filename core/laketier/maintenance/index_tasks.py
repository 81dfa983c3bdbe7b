"""What a task does around a builder: it gives it a place to spill to, and tells how much memory its process held."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from laketier.kit import failpoint
from laketier.kit.allocator import give_back_memory
from laketier.spi import BuiltIndexPart, ConfigError, IndexPart, IndexResources, LakeIndexBuilder

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_NOW, _PEAK = "VmRSS:", "VmHWM:"
_TEMPORARY = "TMPDIR"
_least: dict[int, int] = {}
"""What this process, by its id, held at the least before a part: what an earlier part left is no part of its base."""

PART_BEGUN, PART_DONE = "index.part_begun", "index.part_done"
"""Failpoints of the task: before its part is built, and after, before the driver knows."""


def needs_own_process(builder: LakeIndexBuilder, resources: IndexResources) -> bool:
    """Whether `build_part` sets variables of its process, which others in it would see, and would find changed."""
    return resources.needs_own_process or bool(builder.environment)


def build_part(builder: LakeIndexBuilder, part: IndexPart, resources: IndexResources) -> BuiltIndexPart:
    """Build a part. Executor.

    Args:
        builder: The builder of the plan.
        part: The part.
        resources: Those of the plan. Where it `needs_own_process`, this is one.

    Returns:
        What was built, with the memory that the process held.

    Raises:
        ConfigError: The folder to spill to is none on this host.
        TableError: As `LakeIndexBuilder.build`.
    """
    # Without variables of its own the process may be one that works for others, too.
    if resources.memory is not None and builder.environment:
        give_back_memory()
    with _variables(builder.environment), _spilling_to(resources.spill):
        builder.warm_up()
        base = _forget_peak()
        failpoint(PART_BEGUN)
        built = builder.build(part)
    failpoint(PART_DONE)
    return replace(built, peak_memory=_resident(_PEAK), base_memory=base)


@contextmanager
def _variables(wanted: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
    with made as own, _variables({_TEMPORARY: own}):
        yield


def _forget_peak() -> int:
    """Count the peak from now. Returns the bytes that the process holds, or held before an earlier part; 0 where the
    peak is that of its whole life."""
    try:
        _FORGET.write_text("5")
    except OSError:  # no Linux, or a container that forbids it
        return 0
    process, now = os.getpid(), _resident(_NOW)
    _least[process] = min(now, _least.get(process, now))
    return _least[process]


def _resident(what: str) -> int:
    """The bytes of memory that this process holds, or has held at most since `_forget_peak`."""
    with suppress(OSError, ValueError, IndexError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
