"""Turns text into typed values: one parser for the core's keys and for the options of all plugins."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import pydantic

from laketier.config.suggest import did_you_mean
from laketier.spi import ConfigError, Passthrough, Secret


@dataclasses.dataclass(frozen=True)
class KeyDoc:
    """One row of the configuration reference."""

    key: str
    type: str
    default: str
    doc: str


def key_of(field_name: str) -> str:
    """``target_file_rows`` → ``target-file-rows``."""
    return field_name.replace("_", "-")


def parse_options(options_type: type, values: Mapping[str, Any], *, prefix: str, origin: str) -> Any:
    """Make the options of a plugin from its keys. Driver.

    Args:
        options_type: The class of the options, see `laketier.spi.options`.
        values: Keys, without ``prefix``, and values.
        prefix: The prefix of the keys, for messages.
        origin: Where the values come from, for messages.

    Returns:
        An instance of ``options_type``.

    Raises:
        ConfigError: A key is unknown (the message names the nearest match), or a value is ill-typed or less than the
            option's least value.
    """
    fields = {key_of(field.name): field for field in dataclasses.fields(options_type)}
    hints = typing.get_type_hints(options_type)
    through = [key for key, field in fields.items() if hints[field.name] is Passthrough]
    passed: dict[str, dict[str, str]] = {key: {} for key in through}
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        head = next((name for name in through if key.startswith(f"{name}.")), None)
        if head is not None:
            passed[head][key[len(head) + 1 :]] = str(value)
        elif key in fields and key not in through:
            name = fields[key].name
            arguments[name] = parse_value(f"{prefix}{key}", hints[name], value, origin=origin)
            _refuse_less(f"{prefix}{key}", arguments[name], fields[key].metadata.get("least"), origin=origin)
        else:
            spelled = [*(k for k in fields if k not in through), *(f"{k}.<key>" for k in through)]
            raise ConfigError(
                f"unknown key {prefix + key!r}",
                where=origin,
                fix=did_you_mean(prefix + key, (prefix + k for k in spelled)),
            )
    for key, entries in passed.items():
        if entries:
            arguments[fields[key].name] = Passthrough(entries)
    try:
        return options_type(**arguments)
    except (TypeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"the options below {prefix} contradict each other", where=origin, why=str(error)) from error


def parse_value(key: str, kind: Any, value: Any, *, origin: str) -> Any:
    """Turn a value into a type.

    Args:
        key: The key, for messages.
        kind: The annotated type.
        value: Text, or a value of YAML's own types.
        origin: Where the value comes from, for messages.

    Returns:
        The typed value.

    Raises:
        ConfigError: The value does not fit. The message never quotes a secret.
    """
    plain = _without_none(kind)
    if plain is Secret:
        return Secret(str(value))
    shown = repr(value)
    if isinstance(value, str) and plain is not str:
        value = value.strip()
    if isinstance(plain, type) and issubclass(plain, Enum):
        return _parse_enum(key, plain, value, shown, origin)
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)
    try:
        if plain is int and key.endswith("bytes") and isinstance(value, str):
            return int(pydantic.TypeAdapter(pydantic.ByteSize).validate_python(value))
        if plain is str and isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        return adapter.validate_python(value)
    except pydantic.ValidationError as error:
        raise ConfigError(
            f"{key} = {shown} is not {type_name(kind)}", where=origin, why=error.errors()[0]["msg"].lower()
        ) from None


def _refuse_less(key: str, value: Any, least: float | None, *, origin: str) -> None:
    if least is not None and value is not None and not value >= least:  # a NaN is not
        raise ConfigError(f"{key} = {value} is too small", where=origin, fix=f"Set it to {least} or more.")


def _parse_enum(key: str, kind: type[Enum], value: Any, shown: str, origin: str) -> Enum:
    members = {str(member.value).lower(): member for member in kind}
    member = members.get(str(value).lower())
    if member is None:
        raise ConfigError(f"{key} = {shown} is not one of {', '.join(members)}", where=origin)
    return member


def _without_none(kind: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return next(choice for choice in typing.get_args(kind) if choice is not type(None))
    return kind


def type_name(kind: Any) -> str:
    """The name of a type for users: ``an integer``, ``true or false``, …"""
    kind = _without_none(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(str(member.value) for member in kind)
    names = {int: "an integer", float: "a number", bool: "true or false", str: "text", Secret: "secret text"}
    return names.get(kind, getattr(kind, "__name__", str(kind)))


def document(options_type: type, prefix: str) -> Iterator[KeyDoc]:
    """The rows of the configuration reference for an options dataclass."""
    hints = typing.get_type_hints(options_type)
    for field in dataclasses.fields(options_type):
        kind = hints[field.name]
        key = prefix + key_of(field.name)
        if kind is Passthrough:
            yield KeyDoc(f"{key}.<key>", "text", "", field.metadata.get("doc", ""))
            continue
        yield KeyDoc(key, type_name(kind), _shown(field.default), field.metadata.get("doc", ""))


def _shown(default: Any) -> str:
    match default:
        case None | dataclasses.MISSING:
            return ""
        case bool():
            return "true" if default else "false"
        case Enum():
            return str(default.value)
    return str(default)
