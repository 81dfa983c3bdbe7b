"""Parses the options of plugins: makes a pydantic model of each dataclass, as the SPI depends on no such library."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, PlainValidator, create_model

from laketier.config.parsing import STRIPPED, KeyDoc, Named, TextKeys, Unfit, dashed, parsed, reference, without_none
from laketier.spi import ConfigError, Passthrough, Secret

_ANY = "<key>"
"""The last part of the key of a `Passthrough` in the reference. The library defines it."""
LARGEST = 2**63 - 1
"""An integer that is greater, or less than its negative, is refused: no library of a format takes it."""
_FIELD = "option_"
"""The prefix of the model's fields, as an option may have the name of a method of pydantic's models."""


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
    model = _model_of(options_type)
    keys = [str(field.alias) for field in model.model_fields.values()]
    through = [key.removesuffix(_ANY) for key in keys if key.endswith(_ANY)]
    given: dict[str, Any] = {}
    for key, value in values.items():
        head = next((each for each in through if key.startswith(each)), None)
        if head is None:
            given[key] = value
        else:
            given.setdefault(head + _ANY, {})[key.removeprefix(head)] = str(value)
    typed = parsed(model, given, origin=origin, prefix=prefix)
    try:
        return options_type(**{name.removeprefix(_FIELD): getattr(typed, name) for name in typed.model_fields_set})
    except ConfigError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the options below {prefix} contradict each other", where=origin, why=str(error)) from error


def document(options_type: type, prefix: str) -> Iterator[KeyDoc]:
    """The rows of the configuration reference for an options dataclass."""
    return reference(_model_of(options_type), prefix)


@functools.cache
def _model_of(options_type: Any) -> type[TextKeys]:
    hints = typing.get_type_hints(options_type)
    fields: dict[str, Any] = {}
    for each in dataclasses.fields(options_type):
        key = dashed(each.name) + (f".{_ANY}" if hints[each.name] is Passthrough else "")
        told: dict[str, Any] = {"alias": key, "description": each.metadata.get("doc")}
        if each.default is not dataclasses.MISSING:
            told["default"] = each.default
        elif each.default_factory is not dataclasses.MISSING:
            told["default_factory"] = each.default_factory
        bounds = each.metadata.get("least"), each.metadata.get("most")
        fields[_FIELD + each.name] = (_from_text(hints[each.name], key, *bounds), Field(**told))
    return create_model(options_type.__name__, __base__=TextKeys, **fields)


def _from_text(kind: Any, key: str, least: float | None, most: float | None) -> Any:
    """An annotation of type ``kind`` that also takes text."""
    plain = without_none(kind)
    if plain is Passthrough:
        return Annotated[Passthrough, PlainValidator(Passthrough), Named("text")]
    if plain is Secret:
        return Annotated[kind, PlainValidator(lambda value: None if value is None else Secret(str(value)))]
    if isinstance(plain, type) and issubclass(plain, Enum):
        members = {str(member.value).lower(): member for member in plain}
        return Annotated[kind, BeforeValidator(lambda value: members.get(str(value).strip().lower(), value))]
    if plain is str:
        return kind
    greatest = LARGEST if plain is int and most is None else most
    if plain is int and key.endswith("bytes"):
        kind = Annotated[ByteSize if plain is kind else ByteSize | None, AfterValidator(_as_int)]

    def check(value: Any) -> Any:
        if least is not None and value is not None and not value >= least:  # a NaN is not
            raise Unfit("is too small", fix=f"Set it to {least} or more.", typed=value)
        if greatest is not None and value is not None and not value <= greatest:
            raise Unfit("is too large", fix=f"Set it to {greatest} or less.", typed=value)
        if plain is int and value is not None and value < -LARGEST:
            raise Unfit("is too small", fix=f"Set it to {-LARGEST} or more.", typed=value)
        return value

    return Annotated[kind, STRIPPED, AfterValidator(check)]


def _as_int(value: int | None) -> int | None:
    return None if value is None else int(value)
