"""Options that the commands share, and what they say about them."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from laketier.cli.option_groups import spread
from laketier.config.origins import gathered
from laketier.registry import Lake, complete_commands, configure, open_lake
from laketier.spi import ConfigError, LaketierError, TableInfo
from laketier.spi.redaction import is_secret, redacted

MOST = 2**63 - 1
"""The largest number that an option takes: formats, Arrow and databases count in 64 bits."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


@dataclass(frozen=True)
class LakeOptions:
    """The argument and the options by which a command is told a lake and a table. For `takes_lake`."""

    table: Annotated[str | None, typer.Argument(help="The table, as database.table.", show_default=False)] = None
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="A YAML file with `lake:` keys.", show_default=False)
    ] = None
    format: Annotated[str | None, typer.Option("--format", "-f", help="lake.format", show_default=False)] = None
    warehouse: Annotated[str | None, typer.Option("--warehouse", "-w", help="lake.warehouse", show_default=False)] = (
        None
    )
    set: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", help="Any other key: KEY=VALUE. May be repeated.", show_default=False),
    ] = None

    def opened(self) -> tuple[Lake, TableInfo]:
        """The lake and the table. Raises `ConfigError`, `PluginError` and `TableNotFound`."""
        config = configure(self._values(), file=self.config, origin="the command line")
        lake = open_lake(config)
        return lake, lake.load_table()

    def complete(self, error: LaketierError) -> None:
        """Give the commands that an error names this table and these options."""
        try:
            complete_commands(error, configure(self._values(), file=self.config, origin="the command line"))
        except ConfigError:
            return  # there is no table to name

    def opened_lake(self) -> Lake:
        """The lake, whether or not a table is named. Raises `ConfigError` and `PluginError`."""
        required = ("lake.format", "lake.warehouse")
        return open_lake(configure(self._values(), file=self.config, origin="the command line", require=required))

    def names_table(self) -> bool:
        """Whether a table is named, by the argument or in any other way. Raises `ConfigError`."""
        if self.table is not None:
            return True
        return any(key.lower() == "lake.table" for key in gathered(self._values(), file=self.config)[0])

    @property
    def words(self) -> str:
        """The options that name the same table for another command, as a shell reads them. Secrets are left out."""
        words = [] if self.table is None else [self.table]
        for flag, value in (("-c", self.config), ("-f", self.format), ("-w", self.warehouse)):
            words += [] if value is None else [flag, redacted(str(value))]
        for item in self.set or []:
            key, _, value = item.partition("=")
            words += ["-s", f"{key}={'***' if is_secret(key) else redacted(value)}"]
        return shlex.join(words)

    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = dict(keys_of(self.set))
        named = {"lake.table": self.table, "lake.format": self.format, "lake.warehouse": self.warehouse}
        return values | {key: value for key, value in named.items() if value is not None}


def keys_of(given: list[str] | None) -> dict[str, str]:
    """Undo ``--set``."""
    values = {}
    for item in given or []:
        key, equals, value = item.partition("=")
        if not equals:
            raise ConfigError(f"--set {item!r} is not KEY=VALUE", fix="For example --set lake.snapshot-id=12.")
        values[key.strip()] = value
    return values


def takes_lake(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command have one parameter of type `LakeOptions`::

        @app.command()
        @takes_lake
        def status(options: LakeOptions, json: Json = False) -> None:
            lake, info = options.opened()

    The rest is as `spread` says. An error names its ways out with this table and these options.
    """

    @functools.wraps(command)
    def completing(**given: Any) -> None:
        try:
            command(**given)
        except LaketierError as error:
            next(each for each in given.values() if isinstance(each, LakeOptions)).complete(error)
            raise

    return spread(completing, LakeOptions)
