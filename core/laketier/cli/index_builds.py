"""Building an index from the command line: the options of a build, and its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from laketier.cli.index_shown import index_progress, print_index
from laketier.cli.lakes import MOST
from laketier.cli.option_groups import spread
from laketier.config.sizes import size_of
from laketier.maintenance.index_builds import (
    BuildParts,
    IndexProgress,
    build_here,
    build_in_processes,
    build_index,
    default_processes,
)
from laketier.spi import ConfigError, IndexMode, IndexResources, IndexSpec, LakeIndexer

_PARTS_PER_PROCESS = 4

Processes = Annotated[
    int | None,
    typer.Option(
        "--processes", min=1, max=MOST, help="Build parts in so many processes. 1: in this one. All cores by default."
    ),
]
Parts = Annotated[
    int | None, typer.Option("--parts", min=1, max=MOST, help="Cut the build into so many parts at most.")
]


@dataclass(frozen=True)
class BuildOptions:
    """The options by which a command is told how to build an index. For `takes_build`."""

    processes: Processes = None
    parts: Parts = None
    memory: Annotated[str | None, typer.Option("--memory", help="What a part may take of its process: 512MiB.")] = None
    partition_size: Annotated[
        str | None,
        typer.Option("--partition-size", help="So much text becomes a partition of a full-text index: 256MiB."),
    ] = None
    spill: Annotated[
        str | None, typer.Option("--spill", help="A folder for what processes write out and read again.")
    ] = None
    max_segments: Annotated[
        int | None,
        typer.Option("--max-segments", min=1, max=MOST, help="Merge the index where a query would have to ask more."),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Use the parts that a build which was killed had finished.")
    ] = True

    @property
    def resources(self) -> IndexResources:
        """What each part may take. Raises `ConfigError` for a text that is no size."""
        memory, partition = _size("--memory", self.memory), _size("--partition-size", self.partition_size)
        return IndexResources(None, memory, partition, self.spill)


def takes_build(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command have one parameter of type `BuildOptions`, as `takes_lake` does of `LakeOptions`."""
    return spread(command, BuildOptions)


def most_parts(processes: int, parts: int | None) -> int:
    """Into how many parts a build is cut at most, for so many processes."""
    return parts or processes * _PARTS_PER_PROCESS


def parts_built_by(processes: int) -> BuildParts:
    """The way to build parts in so many processes."""
    return build_here if processes == 1 else build_in_processes(processes)


def build_and_print(
    indexer: LakeIndexer, spec: IndexSpec, mode: IndexMode, options: BuildOptions, *, json: bool
) -> None:
    """Build an index, tell of each part that is done, and print the index. Raises as `build_index`."""
    resources = options.resources
    processes = options.processes or default_processes()
    memory: list[int] = []
    taken: list[int] = []
    kept = 0
    with index_progress() as told:

        def also_kept(done: IndexProgress) -> None:
            nonlocal kept
            told(done)
            memory.extend(done.memory[-1:])
            taken.extend(done.taken[-1:])
            kept = max(kept, done.parts_kept)

        built = build_index(
            indexer,
            spec,
            mode,
            max_parts=most_parts(processes, options.parts),
            build=parts_built_by(processes),
            told=also_kept,
            resume=options.resume,
            resources=resources,
            max_segments=options.max_segments,
        )
    print_index(built, json=json, peak_memory_of_parts=memory, memory_taken_by_parts=taken, parts_kept=kept)


def _size(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else size_of(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text!r} is no size", fix=f"{str(error).capitalize()}.") from error
