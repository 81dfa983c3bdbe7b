"""Completes the commands that an error names, so that they can be copied into a shell.

Code that refuses a round knows neither the table's location nor the options that reach it. The entry points of the
framework know both, and complete the errors that they pass on.
"""

from __future__ import annotations

import re
import shlex
import typing
from collections.abc import Iterator
from contextlib import contextmanager

from laketier.config import LakeConfig
from laketier.registry.discovery import load_format
from laketier.spi import FeatureNotSupported, LaketierError, Secret, Token
from laketier.spi.redaction import HIDDEN, redacted

_COMMAND = re.compile(
    r"`laketier (?P<name>pipeline (?:show|adopt|rewind|forget|rename)|maintain orphans|history)(?P<given>(?: [^`]*)?)`"
)
_HARMLESS = frozenset({"type", "uri", "warehouse", "endpoint", "region", "name"})
"""What libraries call settings that hold no secret, except within a URL."""


@contextmanager
def naming_commands(config: LakeConfig, token: Token | None = None) -> Iterator[None]:
    """Complete the commands of errors that are raised within the block."""
    try:
        yield
    except LaketierError as error:
        complete_commands(error, config, token)
        raise


@contextmanager
def naming_format(format: str) -> Iterator[None]:
    """Add the name of the format to a `FeatureNotSupported` that is raised within the block."""
    try:
        yield
    except FeatureNotSupported as error:
        error.name_format(format)
        raise


def complete_commands(error: LaketierError, config: LakeConfig, token: Token | None = None) -> None:
    """Complete each command in the ``fix`` of an error. A value that may be a secret is shown as ``***``. A command
    that names a table already stays as it is. A `FeatureNotSupported` without a format gets this one's name.

    Args:
        error: The error, which is changed.
        config: The table: commands get its name, the options that reach it, and the pipeline.
        token: The round: commands also get its run, and its epoch where they name none.
    """
    if isinstance(error, FeatureNotSupported):
        error.name_format(config.format)
    if error.fix is not None:
        error.fix = _COMMAND.sub(lambda match: _complete(match, config, token), error.fix)


def _complete(match: re.Match[str], config: LakeConfig, token: Token | None) -> str:
    name, given = match["name"], match["given"].split()
    if given and not given[0].startswith("-"):
        return match[0]
    words = ["laketier", *name.split(), str(config.table), "-f", config.format, "-w", redacted(config.warehouse)]
    for key, value in sorted(_options(config).items()):
        words += ["-s", f"lake.{config.format}.{key}={value}"]
    pipeline = config.pipeline if token is None else token.pipeline
    if name.startswith("pipeline") and "-p" not in given and pipeline is not None:
        words += ["-p", pipeline]
    if name == "pipeline adopt" and not {"--run", "--checkpoint"} & set(given) and token is not None:
        words += ["--run", token.run]
    if name in ("pipeline adopt", "pipeline rewind") and "--epoch" not in given:
        given += ["--epoch", "EPOCH"]
    return f"`{' '.join([*map(shlex.quote, words), *given])}`"


def _options(config: LakeConfig) -> dict[str, str]:
    """The format's own options as text. A value is shown where its type, or its name in a library, says that it is no
    secret."""
    if not config.format_options:
        return {}
    try:
        hints = typing.get_type_hints(load_format(config.format).options_type)
    except LaketierError:
        hints = {}
    kinds = {name.replace("_", "-"): kind for name, kind in hints.items()}

    def is_shown(key: str) -> bool:
        if key in kinds:
            return kinds[key] is not Secret and Secret not in typing.get_args(kinds[key])
        return key.rpartition(".")[2].lower() in _HARMLESS

    return {key: redacted(value) if is_shown(key) else HIDDEN for key, value in config.format_options.items()}
