"""``python -m benchmarks [SECTION ...]``: comparisons in one run, as tables and, with --json, as a file."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import psutil
from rich.console import Console

from benchmarks import dataset, lakes
from benchmarks.report import Section, save, show

SECTIONS = ("lanes", "microbatch", "commit", "small-epochs", "open-files", "file-formats", "arrow", "read")
_BARE = {"commit", "small-epochs", "open-files", "file-formats"}
_PACKAGES = ("pyspark", "pyarrow", "pylance", "pyiceberg", "deltalake")


def main() -> None:
    """Run the sections asked for, or all of them."""
    arguments = _parser().parse_args()
    console = Console(width=None if Console().is_terminal else 150)
    progress = Console(stderr=True)
    work: Path = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    wanted = arguments.sections or SECTIONS
    formats = lakes.installed(arguments.formats)
    sections: list[Section] = []

    def say(text: str) -> None:
        progress.print(f"  {text}", style="dim", highlight=False)

    def finished(*done: Section) -> None:
        for section in done:
            sections.append(section)
            show(section, console)
        if arguments.json:
            save(sections, _about(arguments), arguments.json)

    if "commit" in wanted:
        from benchmarks import commit

        finished(commit.run(formats, arguments.epochs, work, say))
    if "small-epochs" in wanted:
        from benchmarks import small_epochs

        finished(small_epochs.run(arguments.epochs, work, say))
    if "open-files" in wanted:
        from benchmarks import open_files

        finished(open_files.run(arguments.epochs, work, say))
    if "file-formats" in wanted:
        from benchmarks import file_formats

        finished(*file_formats.run(min(arguments.rows, 4_000_000), arguments.repetitions, work, say))
    if set(wanted) - _BARE:
        _on_spark(arguments, wanted, formats, work, say, finished)


def _on_spark(
    arguments: argparse.Namespace,
    wanted: tuple[str, ...],
    formats: list[str],
    work: Path,
    say: Callable[[str], None],
    finished: Callable[..., None],
) -> None:
    from benchmarks import arrow, lanes, microbatch, read
    from benchmarks.session import spark_session

    source = work
    if set(wanted) & {"lanes", "arrow", "read"}:
        say(f"input: {arguments.rows:,} rows")
        source = dataset.folder_of(arguments.rows, work)
    scratch = work / "scratch"
    repetitions = arguments.repetitions
    with ExitStack() as stack:
        spark = stack.enter_context(spark_session(work, arguments.profile and arguments.profile.resolve()))
        if "arrow" in wanted:
            finished(arrow.run(spark, source, repetitions, scratch, say))
        if "lanes" in wanted:
            finished(lanes.run(spark, formats, source, repetitions, scratch, say))
        if "microbatch" in wanted:
            finished(microbatch.run(spark, formats, arguments.batches, scratch, say))
        if "read" in wanted:
            finished(*read.run(spark, formats, source, repetitions, scratch, say))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--rows", type=int, default=32_000_000, help="rows of the batch sections (32,000,000)")
    parser.add_argument("--repetitions", type=int, default=5, help="measured runs of each case (5)")
    parser.add_argument(
        "--epochs", type=int, default=1_000, help="epochs of the sections commit, small-epochs and open-files (1,000)"
    )
    parser.add_argument("--batches", type=int, default=40, help="batches per visit of the microbatch section (40)")
    parser.add_argument("--formats", nargs="+", help="only these formats")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument(
        "--work", type=Path, default=Path("build/bench"), help="where input and tables go (build/bench)"
    )
    parser.add_argument("--profile", type=Path, help="record the JVM with Java Flight Recorder into this .jfr file")
    return parser


def _about(arguments: argparse.Namespace) -> dict[str, object]:
    return {
        "rows": arguments.rows,
        "repetitions": arguments.repetitions,
        "python": platform.python_version(),
        "cores": psutil.cpu_count(),
        "load": round(psutil.getloadavg()[0], 2),
        "packages": {name: version(name) for name in _PACKAGES},
    }


if __name__ == "__main__":
    main()
