"""The file in which a user keeps the schema of a topic's values."""

from __future__ import annotations

from pathlib import Path

from laketier.spi import ConfigError


def read_schema_file(topic: str, path: str) -> bytes:
    """Raises `ConfigError`."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"schema-file {path!r} can't be read", where=topic, why=str(error.strerror).lower()) from None
