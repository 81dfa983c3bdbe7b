"""Replaces ``${NAME}`` in the values of a file by environment variables, so that the file need not contain secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from laketier.config.suggest import nearest
from laketier.spi import ConfigError

_DEFAULT = re.compile(r"(?<!\$)(?:\$\$)*\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*):?[-=?+][^}]*\}")
"""As shells and Compose write a default."""
_REFERENCE = re.compile(r"\$(?:(?P<literal>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\})")


class FromEnvironment(str):
    """A text that contains an environment variable. It is often a secret, so no error shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(a text from the environment)"


def resolved(document: Any, *, where: str, environment: Mapping[str, str] | None = None) -> Any:
    """Replace each ``${NAME}`` in the texts of a document, and each ``$$`` by ``$``. Keys stay as they are.

    Args:
        document: Mappings, lists and scalars.
        where: The file, for messages.
        environment: The environment. None for the process's own.

    Returns:
        The document with its references replaced.

    Raises:
        ConfigError: A variable is not set. The message names the key.
    """
    return _resolved(document, where, "", os.environ if environment is None else environment)


def _resolved(value: Any, where: str, key: str, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            name: _resolved(each, where, f"{key}.{name}" if key else str(name), environment)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_resolved(each, where, f"{key}.{index}", environment) for index, each in enumerate(value)]
    if not isinstance(value, str) or "$" not in value:
        return value

    if (shell := _DEFAULT.search(value)) is not None:
        raise ConfigError(
            f"{key} gives the environment variable {shell['name']} a default, as shells do",
            where=where,
            why="it would stand there as it is written",
            fix=f"Write ${{{shell['name']}}}, and set the variable; or write $$ for a dollar sign.",
        )

    def replacement(match: re.Match[str]) -> str:
        if match["literal"]:
            return "$"
        name = match["name"]
        if name not in environment:
            near = nearest(name, environment)
            raise ConfigError(
                f"{key} refers to the environment variable {name}, which is not set",
                where=where,
                fix=(f"Did you mean {near}? " if near else "") + "Set it, or write $$ for a dollar sign.",
            )
        return environment[name]

    found = _REFERENCE.sub(replacement, value)
    return FromEnvironment(found) if any(match["name"] for match in _REFERENCE.finditer(value)) else found
