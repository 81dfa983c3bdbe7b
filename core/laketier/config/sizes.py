"""Sizes, as files and commands write them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ByteSize, TypeAdapter, ValidationError

from laketier.config.parsing import Named

_SIZE = TypeAdapter(ByteSize)


def size_of(value: Any) -> int:
    """``512 MiB``, ``1.5GB`` or a number of bytes, in bytes. Raises `ValueError`."""
    try:
        size = int(_SIZE.validate_python(value if type(value) is int else str(value).strip()))
    except ValidationError:
        size = 0
    if size < 1 or isinstance(value, bool):
        raise ValueError("write a size, for example 512 MiB or 2 GB")
    return size


Size = Annotated[int, BeforeValidator(size_of), Named("a size")]
"""Bytes, written as a number, with a unit or without."""
