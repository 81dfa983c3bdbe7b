"""What a table keeps of the options with which it was created, as properties of its own."""

from __future__ import annotations

from collections.abc import Mapping

from laketier.kit.partition import OddPartitionValues
from laketier.spi import ConfigError
from laketier_localfile.names import FILE_FORMAT, PARQUET
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.outside import OUTSIDE
from laketier_localfile.time_pattern import TIME_PATTERN


def refuse_other(options: LocalFileOptions, properties: Mapping[str, str], *, where: str) -> None:
    """Raise `ConfigError` when the options name something else than what a table with these properties keeps."""
    there, asked = properties.get(FILE_FORMAT, PARQUET), options.file_format
    if asked is not None and asked.value != there:
        raise ConfigError(
            f"lake.localfile.file-format is {asked.value}, and the table's files are {there}",
            where=where,
            why="a table has one file format, chosen when it is created",
            fix=f"Leave the option out or set it to {there}; for {asked.value}, tier into a new table.",
        )
    inside = OUTSIDE not in properties
    if options.partition_columns_in_files not in (None, inside):
        raise ConfigError(
            f"lake.localfile.partition-columns-in-files is {str(not inside).lower()}, and the table's files "
            f"{'hold' if inside else 'do not hold'} their partition columns",
            where=where,
            why="the files of a table are alike, as was chosen when it was created",
            fix="Leave the option out; for other files, tier into a new table.",
        )
    if not inside and options.odd_partition_values is OddPartitionValues.ACCEPT:
        raise ConfigError(
            "lake.localfile.odd-partition-values is accept, and the table's files do not hold their partition columns",
            where=where,
            why="the folder of an odd value is named by a digest, so readers of the files could not get it back",
            fix="Leave the option out: such rows are refused.",
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
