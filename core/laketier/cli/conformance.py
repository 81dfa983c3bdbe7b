"""``laketier conformance FORMAT``, or ``--source NAME``: run the conformance suite on an installed plugin."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from laketier.cli.shown import say
from laketier.registry import load_format, load_source
from laketier.spi import ConfigError

_HANGS_SECONDS = 300
EPILOG = "Example: [bold]laketier conformance my-format --report report.json -- -x[/]"


class ConformanceCommand(TyperCommand):
    """Nothing after ``--`` is a format: with --source it would be the first option of pytest."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ours = args[: args.index("--")] if "--" in args else args
        super().parse_args(ctx, list(ours))
        ctx.args = [*ctx.args, *args[len(ours) + 1 :]]
        return list(ctx.args)


@dataclass(frozen=True)
class _Suite:
    """A suite, by its package, and what its options begin with. ``noun``: what it proves."""

    package: str
    prefix: str
    noun: str

    def option(self, name: str) -> str:
        return f"--{self.prefix}-{name}"


_OF_FORMATS = _Suite("laketier_conformance", "lake", "format")
_OF_SOURCES = _Suite("laketier_source_conformance", "log", "source")


def conformance(
    context: typer.Context,
    format: Annotated[str | None, typer.Argument(help="The format, as in lake.format.", show_default=False)] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Prove this source instead, by its type in a service file.", show_default=False),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the JSON report here.", show_default=False)] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the report here to look at, in HTML.", show_default=False)
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(
            help="Run this test alone, by its name in the report, or the tests of this file, as test_types.py; may "
            "be given again.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Prove a format, or with --source a source: the whole suite in pytest, with a verdict: conformant,
    conformant-with-unseen-effects (of a format that has some which the suite can't decide on),
    conformant-without-effects (where the system does not let the suite see each effect of a process), partial or fail.
    What follows `--` goes to pytest. Exit code 0 means one of the first three; with --test that these tests ran and
    none failed, which is no verdict."""
    suite, name = _chosen(format, source)
    for own, ours in (
        (suite.option(suite.noun), "the format" if suite is _OF_FORMATS else "--source NAME"),
        (suite.option("report"), "--report FILE"),
        (suite.option("page"), "--page FILE"),
    ):
        if any(word.startswith(own) for word in context.args):
            raise ConfigError(f"{own} is this command's own", fix=f"Give {ours} before the --.")
    if importlib.util.find_spec("pytest") is None:
        raise ConfigError("the conformance suite needs pytest", fix="Install laketier's extra `conformance`.")
    # By name, as plugins may not be loaded by themselves (PYTEST_DISABLE_PLUGIN_AUTOLOAD).
    command = [sys.executable, "-m", "pytest", "-p", suite.package, "--pyargs", suite.package]
    command += [f"{suite.option(suite.noun)}={name}", f"{suite.option('command')}={os.getpid()}"]
    with TemporaryDirectory(prefix="laketier-conformance-") as folder:
        # A process that a plugin ended, or that was asked for a list only, ends with 0 as well.
        written = _named(report or Path(folder, "report.json"), name)
        _remove(written)
        command += [f"{suite.option('report')}={written}", *(f"{suite.option('test')}={each}" for each in test or ())]
        command += [] if page is None else [f"{suite.option('page')}={_named(page, name)}"]
        # A test that hangs is told with the line that it hangs in.
        underway = Path(folder, "underway")
        command += [f"{suite.option('underway')}={underway}", "-o", f"faulthandler_timeout={_HANGS_SECONDS}"]
        code = _code_of([*command, *context.args])
        told = json.loads(written.read_bytes()) if written.exists() else {}
        began = underway.read_text(encoding="utf-8").splitlines() if underway.exists() else []
    if not told and began:
        where, again = began
        say("", err=True)  # after pytest's last line, which has no end
        say(f"laketier: {_ended(code)} in {where}: a plugin never ends the process that it works in", err=True)
        say(f"again  {again}", err=True)
        code = 1
    elif code == 0 and not told.get("as_asked"):
        say(f"laketier: the run ended without the verdict conformant (it is {told.get('verdict', 'none')})", err=True)
        code = 1
    raise typer.Exit(code)


def _chosen(format: str | None, source: str | None) -> tuple[_Suite, str]:
    """The suite, and the name of what it proves, which is installed."""
    if (format is None) == (source is None):
        raise ConfigError(
            "no plugin is named" if format is None else f"the format {format!r} and the source {source!r} are named",
            why="a conformance run proves one plugin",
            fix="Give the name of a format, or --source and that of a source, and what is pytest's after `--`.",
        )
    if source is not None:
        load_source(source)
        return _OF_SOURCES, source
    assert format is not None
    load_format(format)
    return _OF_FORMATS, format


def _named(file: Path, format: str) -> Path:
    """As the suite reads the option: `{format}` in it stands for the format."""
    return Path(str(file).replace("{format}", format)).absolute()


def _remove(report: Path) -> None:
    """One of an earlier run would be taken for this one's."""
    try:
        report.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"no report can be written to {report}",
            why=str(error.strerror or error),
            fix="Give --report a file in a folder that you may write to.",
        ) from error


def _ended(code: int) -> str:
    """How a process ended that wrote no report, by its code as in `subprocess.Popen.returncode`."""
    signals = {-each.value: each.name for each in signal.Signals}
    return (
        f"the process ended by {signals.get(code, f'signal {-code}')}" if code < 0 else f"the process ended with {code}"
    )


def _code_of(command: list[str]) -> int:
    """Run pytest to its end. A terminal sends an interrupt to both: pytest ends its tests then and writes the report,
    however long that takes. A second one kills it. Who ends this process alone, as a CI does, interrupts pytest with
    it: it would go on for minutes, and write its report over that of the next run."""
    ended: list[int] = []
    # What is installed is tested: `-m` alone would import from the folder first, whatever lies in it by a name of a
    # package or of Python's own modules.
    with subprocess.Popen(command, env={**os.environ, "PYTHONSAFEPATH": "1"}) as running:

        def interrupt(number: int, _: object) -> None:
            ended.append(number)
            running.terminate()  # which it takes for an interrupt (`outlived`)

        with _instead(interrupt):
            try:
                code = running.wait()
            except KeyboardInterrupt:
                running.wait()
                raise
            finally:
                running.kill()
    return 128 + ended[0] if ended else code


@contextmanager
def _instead(interrupt: Callable[[int, object], None]) -> Iterator[None]:
    """What ends a process ends it not, and is answered by ``interrupt``. What is ignored stays so, as under nohup."""
    ends = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    usual = [number for number in ends if signal.getsignal(number) is signal.SIG_DFL]
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        usual = []
    for number in usual:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)
