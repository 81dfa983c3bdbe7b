"""What a task that builds a part of an index may take of its host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IndexResources:
    """Limits of each task. All None: those of the library that builds.

    Attributes:
        workers: Tasks at a time at most.
        memory: Bytes that a part may take of its process, beside what a process holds that only opens the table. For
            kinds that are sorted: bytes that are collected before they are written out.
        partition_size: Bytes of text that become one partition of a full-text index. It is collected in memory.
        spill: A folder on a local disk of each host, for what a task writes out and reads again.
    """

    workers: int | None = None
    memory: int | None = None
    partition_size: int | None = None
    spill: str | None = None

    @property
    def needs_own_process(self) -> bool:
        """Whether they are set as variables of the process: then nothing else may run in it. So it is with any
        `LakeIndexBuilder.environment`, whatever the limits are."""
        return self.memory is not None or self.spill is not None


UNLIMITED = IndexResources()
"""Whatever the library takes by itself."""
