"""Options that several commands share, as one dataclass: a field for each."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any


def spread(command: Callable[..., None], group: type[Any]) -> Callable[..., None]:
    """Let a command have one parameter of type ``group``. To typer it has the fields of that dataclass in the
    parameter's place, as options of its own. A parameter that comes after one with a default needs a ``*`` before them,
    as in any function. Raises `TypeError` where no parameter, or more than one, has that type."""
    # typer takes annotations as the signature has them, and their names mean something only in the command's module.
    signature = inspect.signature(command, eval_str=True)
    taking = [name for name, parameter in signature.parameters.items() if parameter.annotation is group]
    if len(taking) != 1:
        raise TypeError(f"{command.__qualname__} needs one parameter of type {group.__name__}, and has {len(taking)}")
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        options = inspect.signature(group, eval_str=True).parameters.values() if name in taking else [parameter]
        # typer calls by name, and only so may a required option stand behind the table, which has a default.
        parameters += [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        together = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given, **{taking[0]: together})

    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    with_options.__dict__["__signature__"] = signature.replace(parameters=parameters)
    return with_options
