"""The ``laketier`` command: its groups, its errors, its exit codes.

Exit codes: 0 done; 1 a failure from below; 2 something to mend in the call, the configuration or the installation;
3 the protocol refused (nothing was published); 4 an outcome that could not be found out, or a commit that did not
begin; 75 `serve` could not begin, as the server of its state does not answer; 130 interrupted. A commit that did not
begin for what a person has to mend has the code of that, 2 or 3.
"""

from __future__ import annotations

import atexit
import logging
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.rich_utils import rich_format_error

import laketier
from laketier.cli import (
    adopt,
    cache,
    conformance,
    dead_letter,
    demo,
    doctor,
    formats,
    index,
    maintain,
    new_plugin,
    pipeline,
    run,
    schema,
    search,
    serve,
    service,
    table,
)
from laketier.cli.shown import (
    ShownConsole,
    ShownLines,
    end_errors,
    error_document,
    failure_document,
    fill_closed,
    say,
    say_failure,
    usage_document,
)
from laketier.spi import (
    CommitError,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    LaketierError,
    NotBegun,
    PluginError,
    Refused,
    TableError,
)

# typer has no public name for all errors of a call; this is the base of the one that it has.
_UsageError: Any = typer.BadParameter.__base__

_INTERRUPTED = 130

app = typer.Typer(
    name="laketier",
    help="Any lake format from PySpark, exactly once.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="adopt", epilog=adopt.EPILOG)(adopt.adopt)
app.command(name="demo", epilog=demo.EPILOG)(demo.demo)
app.command(name="formats", epilog=formats.EPILOG)(formats.formats)
app.command(name="run", epilog=run.EPILOG)(run.run)
app.command(name="serve", epilog=serve.EPILOG)(serve.serve)
app.command(name="read", epilog=table.READ_EPILOG)(table.read)
app.command(name="search", epilog=search.EPILOG)(search.search)
app.command(name="status", epilog=table.STATUS_EPILOG)(table.status)
app.command(name="history", epilog=table.HISTORY_EPILOG)(table.history)
app.command(name="new-plugin", epilog=new_plugin.EPILOG)(new_plugin.new_plugin)
app.command(name="doctor", epilog=doctor.EPILOG)(doctor.doctor)
app.command(
    name="conformance",
    cls=conformance.ConformanceCommand,
    epilog=conformance.EPILOG,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(conformance.conformance)
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(schema.app, name="schema")
app.add_typer(maintain.app, name="maintain")
app.add_typer(index.app, name="index")
app.add_typer(cache.app, name="cache")
app.add_typer(service.app, name="service")
app.add_typer(dead_letter.app, name="dead-letter")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log each step, with pipeline and epoch.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        say(f"laketier {laketier.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(2)
    _log_to_stderr(logging.INFO if verbose else logging.WARNING)


def _log_to_stderr(level: int) -> None:
    """Does nothing where there is a log already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ShownLines("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    if level > logging.INFO:
        handler.addFilter(_is_told_once)
    logging.basicConfig(level=level, handlers=[handler])


def _is_told_once(record: logging.LogRecord) -> bool:
    """Not what py4j logs of a request to the JVM, with pages of its frames, and then raises: whoever gets the error
    tells it. After Ctrl-C it would stand before the one word that says what happened."""
    return not (record.module == "java_gateway" and "while sending command" in record.msg)


def exit_code(error: LaketierError) -> int:
    """The exit code of an error, see the module's docstring."""
    match error:
        case CorruptTable():  # also where a round was refused for it
            return 2
        case Refused():
            return 3
        case NotBegun(__cause__=LaketierError() as cause) if (code := exit_code(cause)) in (2, 3):
            return code
        case CommitError():
            return 4
        case ConfigError() | PluginError() | TableError() | FeatureNotSupported():
            return 2
    return 1


def main() -> None:
    """The console script."""
    fill_closed()
    atexit.register(end_errors)
    console = ShownConsole(stderr=True, soft_wrap=True)
    as_json = "--json" in sys.argv[1:]
    try:
        code = app(prog_name="laketier", standalone_mode=False)
        if code == _INTERRUPTED:  # which typer makes of Ctrl-C within a command, without a word
            raise KeyboardInterrupt
    except _UsageError as error:
        if as_json:
            say_failure(usage_document(error))
        with suppress(OSError):
            rich_format_error(error)
        sys.exit(error.exit_code)
    except typer.Abort:
        if as_json:
            say_failure(failure_document("Aborted", "the question was not answered with yes", 1, "Ask with --yes."))
        console.print("[yellow]aborted[/]")
        sys.exit(1)
    except LaketierError as error:
        if as_json:
            say_failure(error_document(error, exit_code(error)))
        console.print(f"[bold red]{type(error).__name__}[/] {escape(str(error))}")
        if logging.getLogger().isEnabledFor(logging.INFO):
            logging.getLogger("laketier").info("the traceback of the error", exc_info=error)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        if as_json:
            say_failure(failure_document("Interrupted", "interrupted", _INTERRUPTED))
        console.print("[yellow]interrupted[/]")
        sys.exit(_INTERRUPTED)
    except (BrokenPipeError, SystemExit):
        raise
    except BaseException as error:  # a panic of a library in Rust is no `Exception`
        if as_json:
            say_failure(failure_document(type(error).__name__, str(error) or type(error).__name__, 1))
        # Not to Python: it would write the traceback with the secrets in it.
        _log_to_stderr(logging.WARNING)
        logging.getLogger("laketier").critical(
            "an error that laketier did not expect; please report it", exc_info=error
        )
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)
