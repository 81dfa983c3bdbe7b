"""The file formats that there are, and which one a table has."""

from __future__ import annotations

from collections.abc import Mapping

from laketier.spi import ConfigError
from laketier_localfile.file_formats.arrow_ipc import ArrowIpc
from laketier_localfile.file_formats.csv import Csv
from laketier_localfile.file_formats.interface import FileFormat
from laketier_localfile.file_formats.json_lines import JsonLines
from laketier_localfile.file_formats.parquet import Parquet
from laketier_localfile.file_formats.vortex import Vortex
from laketier_localfile.names import FILE_FORMAT, PARQUET

KNOWN: Mapping[str, FileFormat] = {one.name: one for one in (Parquet(), JsonLines(), Csv(), ArrowIpc(), Vortex())}


def file_format(name: str, *, where: str | None = None) -> FileFormat:
    """The file format ``name``. Raises `ConfigError` for one that this version does not know."""
    try:
        return KNOWN[name]
    except KeyError:
        raise ConfigError(
            f"{FILE_FORMAT} = {name!r} is none of {', '.join(KNOWN)}",
            where=where,
            fix="Use a newer laketier-localfile.",
        ) from None


def of_name(path: str) -> FileFormat | None:
    """The file format that the name of a file tells, ours or another's."""
    return next((one for one in KNOWN.values() if path.endswith(one.lying_suffixes)), None)


def of_table(properties: Mapping[str, str], *, where: str | None = None) -> FileFormat:
    """The file format of a table with these properties. Raises `ConfigError`."""
    return file_format(properties.get(FILE_FORMAT, PARQUET), where=where)
