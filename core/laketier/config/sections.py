"""The common parts of job files and service files, which consist of sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import pydantic
from pydantic import BaseModel, ConfigDict
from pydantic_core import ErrorDetails, PydanticUndefined

from laketier.config.problems import together
from laketier.config.suggest import did_you_mean
from laketier.config.typed import KeyDoc, type_name
from laketier.spi import ConfigError


def dashed(name: str) -> str:
    """The spelling of a field's name as a key."""
    return name.replace("_", "-")


class Section(BaseModel):
    """A section. Unknown keys are errors, types are not guessed, and it is immutable."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=dashed)


_WANT_A_SECTION = ("dict_type", "model_type", "mapping_type")

_S = TypeVar("_S", bound=Section)


def typed_section(section: type[_S], values: Mapping[str, Any], *, origin: str) -> _S:
    """Type the values of a section.

    Raises:
        ConfigError: Values do not fit. The message names each key, and the nearest match of each unknown one.
    """
    try:
        return section.model_validate(values)
    except pydantic.ValidationError as error:
        problems = [_config_error(section, each, origin) for each in error.errors(include_url=False)]
        raise together(problems, origin=origin) from None


def _config_error(section: type[Section], first: ErrorDetails, origin: str) -> ConfigError:
    place = [str(part) for part in first["loc"]]
    key = ".".join(place)
    if first["type"] == "extra_forbidden":
        return ConfigError(f"unknown key {key!r}", where=origin, fix=did_you_mean(key, _known(section, place[:-1])))
    if first["type"] == "missing":
        return ConfigError(f"{key} must be set", where=origin, fix=_meant(section, place))
    why = first["msg"].removeprefix("Value error, ")
    shown = _shown(first["input"], first["type"])
    return ConfigError(f"{key} = {shown} does not fit", where=origin, why=why, fix=_meant(section, place))


def _shown(value: Any, trouble: str) -> str:
    """A value, unless it may hold a secret: of one from the environment (see `references`), and of a whole section that
    was mistyped, the kind alone."""
    if isinstance(value, dict):
        return "(keys and values)"
    if isinstance(value, list):
        return "(a list)"
    if isinstance(value, str) and trouble in _WANT_A_SECTION:
        return "(a text)"
    return repr(value)


def _meant(section: type[Section], place: list[str]) -> str:
    """What belongs at ``place``, or nearest above it."""
    for end in range(len(place), 0, -1):
        inner = _section_at(section, place[: end - 1])
        field = None if inner is None else inner.model_fields.get(place[end - 1].replace("-", "_"))
        if field is not None:
            described = field.description or "a section of its own; see the configuration reference"
            return f"It is: {described.rstrip('.')}."
    return "See the configuration reference."


def _known(section: type[Section], place: list[str]) -> list[str]:
    """The keys that may stand below ``place``."""
    inner = _section_at(section, place)
    if inner is None:
        return []
    prefix = "".join(f"{part}." for part in place)
    return [prefix + dashed(name) for name in inner.model_fields]


def _section_at(section: type[Section], place: list[str]) -> type[Section] | None:
    inner: type[Section] | None = section
    annotation: Any = section
    for part in place:
        if inner is None:
            # An item of a list, or an entry of a mapping: its section is what the annotation holds.
            inner = _section_in(annotation)
            continue
        found = inner.model_fields.get(part.replace("-", "_"))
        if found is None:
            return None
        annotation = found.annotation
        inner = annotation if _is_section(annotation) else _optional_section(annotation)
    return inner or _section_in(annotation)


def _optional_section(annotation: Any) -> type[Section] | None:
    return next(
        (kind for kind in get_args(annotation) if _is_section(kind) and get_origin(annotation) not in (dict, list)),
        None,
    )


def _section_in(annotation: Any) -> type[Section] | None:
    if _is_section(annotation):
        found: type[Section] = annotation
        return found
    return next((section for kind in get_args(annotation) if (section := _section_in(kind)) is not None), None)


def document_sections(section: type[Section], prefix: str = "") -> Iterator[KeyDoc]:
    """The rows of the configuration reference for a file's keys."""
    for name, field in section.model_fields.items():
        key = prefix + dashed(name)
        inner = _section_in(field.annotation)
        if inner is not None:
            shape: Any = get_origin(field.annotation)
            mark = ".<name>" if shape is dict else "[]" if shape is list else ""
            yield from document_sections(inner, f"{key}{mark}.")
            continue
        default = (
            "required" if field.is_required() else "" if field.default in (None, PydanticUndefined) else field.default
        )
        yield KeyDoc(key, _kind(field.annotation), str(default).lower(), field.description or "")


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def _kind(annotation: Any) -> str:
    choices = [kind for kind in get_args(annotation) if kind is not type(None)]
    if get_origin(annotation) is Literal:
        return " or ".join(choices)
    if get_origin(annotation) is dict:
        return "keys and values"
    if get_origin(annotation) is list:
        return "a list"
    if get_origin(annotation) is Annotated:
        return "a duration"
    return _kind(choices[0]) if choices else type_name(annotation)
