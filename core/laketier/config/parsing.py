"""Parses all configuration: keys are fields of pydantic models, and all misfits become errors of one form."""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ByteSize, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from laketier.config.problems import together
from laketier.config.references import FromEnvironment
from laketier.config.suggest import did_you_mean, is_near_miss
from laketier.spi import ConfigError, Secret
from laketier.spi.redaction import HIDDEN, is_secret, redacted


def dashed(name: str) -> str:
    """The spelling of a field's name as a key: ``target_file_rows`` → ``target-file-rows``."""
    return name.replace("_", "-")


class Keys(BaseModel):
    """A group of keys. Unknown keys are errors, it is immutable, and pydantic's own errors show no values."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=dashed, hide_input_in_errors=True)


class Section(Keys):
    """Keys of a YAML file. YAML has types, so none is guessed."""

    model_config = ConfigDict(strict=True)


class TextKeys(Keys):
    """Keys whose values may be text, as in Spark's options and in the environment."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


def _stripped(value: Any) -> Any:
    """Keeps the type: no error shows a `FromEnvironment`."""
    return type(value)(value.strip()) if isinstance(value, str) else value


STRIPPED = BeforeValidator(_stripped)
"""For an annotation: strips blanks around the value."""


@dataclass(frozen=True)
class Named:
    """For an annotation: the name of the type in the reference and in errors, such as ``a duration``."""

    name: str


class Unfit(ValueError):
    """Raised by validators. ``what`` follows the key and its value in the message. ``typed`` replaces the value as
    it was written."""

    def __init__(self, what: str, *, why: str | None = None, fix: str | None = None, typed: object = None) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.typed = typed


_K = TypeVar("_K", bound=Keys)


def parsed(model: type[_K], values: Mapping[str, Any], *, origin: str, prefix: str = "") -> _K:
    """Type values.

    Args:
        model: The model of the keys.
        values: Keys, without ``prefix``, and values.
        origin: Where the values come from, for messages.
        prefix: The prefix of the keys, for messages.

    Returns:
        The model with its values.

    Raises:
        ConfigError: Values do not fit. The message names each key, and the nearest match of each unknown one.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False)
    problems = [_problem(model, each, origin, prefix) for each in found]
    raise together(problems, origin=origin)


def own_options(model: type[Keys], values: Mapping[str, Any], foreign: Collection[str]) -> dict[str, Any]:
    """Select the options that concern a model. Names are case-insensitive.

    Args:
        model: The model of the keys.
        values: The options, as an engine hands them on.
        foreign: Keys of the engine, with a trailing ``*`` for a prefix. One that is nearly a key of the model counts as
            a misspelt one.

    Returns:
        The keys of the model, as it spells them, and unknown ones as they are.
    """
    spelled = {_alias(name, field).lower(): _alias(name, field) for name, field in model.model_fields.items()}
    return {
        spelled.get(key.lower(), key): value
        for key, value in values.items()
        if key.lower() in spelled or is_near_miss(key, spelled) or not _is_foreign(key.lower(), foreign)
    }


def _is_foreign(key: str, foreign: Collection[str]) -> bool:
    return any(key == name or (name.endswith("*") and key.startswith(name[:-1])) for name in foreign)


def _problem(model: type[Keys], first: ErrorDetails, origin: str, prefix: str) -> ConfigError:
    place = [str(part) for part in first["loc"]]
    key = prefix + ".".join(place)
    if first["type"] == "extra_forbidden":
        known = [prefix + each for each in _known(model, place[:-1])]
        return ConfigError(f"unknown key {key!r}", where=origin, fix=did_you_mean(key, known))
    field = _field_at(model, place)
    if first["type"] == "missing":
        return ConfigError(f"{key} must be set", where=origin, fix=_meant(model, place))
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ConfigError) and not isinstance(first["input"], FromEnvironment):
        return ConfigError(cause.what, where=cause.where or f"{origin}, {key}", why=cause.why, fix=cause.fix)
    if isinstance(cause, Unfit):
        typed = first["input"] if cause.typed is None else cause.typed
        shown = _shown(typed, first["type"] if cause.typed is None else "", place)
        return ConfigError(f"{key} = {shown} {cause.what}", where=origin, why=cause.why, fix=cause.fix)
    what = "does not fit" if field is None else _what(field.annotation, field, first["type"])
    is_told = isinstance(cause, ConfigError) or first["type"] in _CHOICES
    why = None if is_told else first["msg"].removeprefix("Value error, ")
    shown = _shown(first["input"], first["type"], place)
    return ConfigError(f"{key} = {shown} {what}", where=origin, why=why and why[:1].lower() + why[1:],
                       fix=_meant(model, place))  # fmt: skip


_CHOICES = ("enum", "literal_error")
_LONGEST_SHOWN = 200
_TYPES = ("bool", "int", "float", "string", "byte")


def _what(annotation: Any, field: FieldInfo, trouble: str) -> str:
    if trouble in _CHOICES:
        return f"is not one of {type_name(annotation, field).replace(' or ', ', ')}"
    is_plain = _plain(annotation) in _NAMES and trouble.startswith(_TYPES)
    return f"is not {type_name(annotation, field)}" if is_plain else "does not fit"


def _shown(value: Any, trouble: str, place: list[str]) -> str:
    """The value, or its kind alone where it may hold a secret: a whole section, or a `FromEnvironment`. Of a key that
    is named like a secret, nothing."""
    if place and is_secret(place[-1]):
        return HIDDEN
    if isinstance(value, dict):
        return "(keys and values)"
    if isinstance(value, list):
        return "(a list)"
    if isinstance(value, str) and trouble in ("dict_type", "model_type", "mapping_type"):
        return "(a text)"
    shown = redacted(repr(value))  # here, as nothing knows half a secret for one
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}… ({len(shown):,} letters)"


def _meant(model: type[Keys], place: list[str]) -> str:
    """The description of the key at ``place``, or of the nearest one above it."""
    for end in range(len(place), 0, -1):
        field = _field_at(model, place[:end])
        if field is not None:
            described = field.description or "a section of its own; see the configuration reference"
            return f"It is: {described.rstrip('.')}."
    return "See the configuration reference."


def _known(model: type[Keys], place: list[str]) -> list[str]:
    """The keys that may stand below ``place``."""
    inner = _model_at(model, place)
    if inner is None:
        return []
    prefix = "".join(f"{part}." for part in place)
    return [prefix + _alias(name, field) for name, field in inner.model_fields.items()]


def _field_at(model: type[Keys], place: list[str]) -> FieldInfo | None:
    inner = _model_at(model, place[:-1])
    return None if inner is None else _fields(inner).get(place[-1])


def _model_at(model: type[Keys], place: list[str]) -> type[Keys] | None:
    inner: type[Keys] | None = model
    annotation: Any = model
    for part in place:
        if inner is None:
            # An item of a list, or an entry of a mapping: its model is what the annotation holds.
            inner = model_in(annotation)
            continue
        found = _fields(inner).get(part)
        if found is None:
            return None
        annotation = found.annotation
        inner = None if get_origin(annotation) in (dict, list) else model_in(annotation)
    return inner or model_in(annotation)


def _fields(model: type[Keys]) -> dict[str, FieldInfo]:
    return {_alias(name, field): field for name, field in model.model_fields.items()}


def _alias(name: str, field: FieldInfo) -> str:
    return field.alias or dashed(name)


def model_in(annotation: Any) -> type[Keys] | None:
    """The model in an annotation, or None."""
    if isinstance(annotation, type) and issubclass(annotation, Keys):
        return annotation
    return next((model for kind in get_args(annotation) if (model := model_in(kind)) is not None), None)


def without_none(kind: Any) -> Any:
    """An annotation without ``None``."""
    if get_origin(kind) in (typing.Union, types.UnionType):
        return next(choice for choice in get_args(kind) if choice is not type(None))
    return kind


def _plain(kind: Any) -> Any:
    """The bare type of an annotation."""
    kind = without_none(kind)
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


_NAMES: dict[Any, str] = {
    int: "an integer",
    ByteSize: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    Secret: "secret text",
    dict: "keys and values",
    list: "a list",
    tuple: "a list",
}


def type_name(kind: Any, field: FieldInfo | None = None) -> str:
    """The name of a type for users: ``an integer``, ``true or false``, …"""
    kind = without_none(kind)
    named = [each.name for each in (*(field.metadata if field else ()), *get_args(kind)) if isinstance(each, Named)]
    if named:
        return named[0]
    if get_origin(kind) is Annotated:
        return type_name(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(str(member.value) for member in kind)
    return _NAMES.get(get_origin(kind) or kind) or str(getattr(kind, "__name__", kind))


@dataclass(frozen=True)
class KeyDoc:
    """One row of the configuration reference."""

    key: str
    type: str
    default: str
    doc: str


def reference(model: type[Keys], prefix: str = "") -> Iterator[KeyDoc]:
    """The rows of the configuration reference for a model's keys."""
    for name, field in model.model_fields.items():
        key = prefix + _alias(name, field)
        inner = model_in(field.annotation)
        if inner is not None:
            shape: Any = get_origin(field.annotation)
            mark = ".<name>" if shape is dict else "[]" if shape is list else ""
            yield from reference(inner, f"{key}{mark}.")
            continue
        default = "required" if field.is_required() else _default(field.default)
        yield KeyDoc(key, type_name(field.annotation, field), default, field.description or "")


def _default(value: Any) -> str:
    if value in (None, ()) or value is PydanticUndefined:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value.value if isinstance(value, Enum) else value)
