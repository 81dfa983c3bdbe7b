"""What a table keeps of the options with which it was created, as properties of its own."""

from __future__ import annotations

from collections.abc import Mapping

from laketier.spi import ConfigError
from laketier_localfile.names import FILE_FORMAT, PARQUET
from laketier_localfile.options import FileFormatName, LocalFileOptions
from laketier_localfile.time_pattern import TIME_PATTERN


def refuse_other(options: LocalFileOptions, properties: Mapping[str, str], *, where: str) -> None:
    """Raise `ConfigError` when the options name something else than what a table with these properties keeps."""
    there, asked = properties.get(FILE_FORMAT, PARQUET), options.file_format
    if asked is not None and asked is not FileFormatName(there):
        raise ConfigError(
            f"lake.localfile.file-format is {asked.value}, and the table's files are {there}",
            where=where,
            why="a table has one file format, chosen when it is created",
            fix=f"Leave the option out or set it to {there}; for {asked.value}, tier into a new table.",
        )
    pattern = properties.get(TIME_PATTERN)
    if options.time_pattern not in (None, pattern):
        named = "has none" if pattern is None else f"is named by {pattern!r}"
        raise ConfigError(
            f"lake.localfile.time-pattern is {options.time_pattern!r}, and the table {named}",
            where=where,
            why="a table has one pattern of folders, chosen when it is created",
            fix="Leave the option out; for other folders, tier into a new table.",
        )
