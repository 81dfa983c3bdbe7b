"""The files of a new plugin: templates that lie in this package, with the names filled in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from enum import Enum
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

import laketier
from laketier.cli.new_plugin.names import Names
from laketier.spi import FORMAT_SPI_VERSION, SOURCE_SPI_VERSION, ConfigError, StorageError

_SUFFIX = ".tmpl"


class Kind(Enum):
    """What the new format stands on; or that it is a source."""

    MANIFEST = "manifest"
    TABLE_LIBRARY = "table-library"
    DATABASE = "database"
    SOURCE = "source"

    @property
    def noun(self) -> str:
        """What is made."""
        return "source" if self is Kind.SOURCE else "format"


FORMATS = tuple(kind for kind in Kind if kind is not Kind.SOURCE)
"""The kinds of formats."""

ABOUT = {
    Kind.MANIFEST: "Data files in Arrow's own file format, and manifests that name them "
    "(`laketier.kit.ManifestTable`). Change `check_types`, `Writer.new_file` and `Source.read` to those of "
    "your file format.",
    Kind.TABLE_LIBRARY: "Tables of a library with commits of its own. `library.py` only imitates one: put the calls of "
    "your library in its place, method by method.",
    Kind.DATABASE: "Rows in a SQL database, with the watermark in the transaction that makes them visible. "
    "`database.py` is for SQLite: change it, and the types in it, to those of your database.",
    Kind.SOURCE: "A log with offsets, whose records are JSON. `client.py` only imitates one, in a file of SQLite: put "
    "the calls of your client library in its place, method by method.",
}


_WHERE_A_FORMAT_IS = """\
      # And a format for the suite's rounds to write to: set LAKETIER_FORMAT.
      LAKETIER_FORMAT: ${{ vars.LAKETIER_FORMAT }}
"""
_WITHOUT_ROUNDS = "::warning::No rounds, see README.md."
_FORMAT_OF_ROUNDS = f"""\
      - run: test -n "$LAKETIER_FORMAT" || echo "{_WITHOUT_ROUNDS}"
      - run: test -z "$LAKETIER_FORMAT" || python -m pip install "$LAKETIER_FORMAT"
"""


def write_distribution(names: Names, kind: Kind, parent: Path) -> tuple[Path, list[str]]:
    """Make the folder of a distribution in ``parent``, and return it with the files in it. Nothing that exists is
    changed: raises `ConfigError`. What an error leaves is removed; raises `StorageError`."""
    folder = parent / names.distribution
    contents = {name: text.encode() for name, text in _filled(names, kind).items()}
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise ConfigError(
            "there is something of that name, and it was not changed",
            where=str(folder),
            fix="Choose another name, or another folder with --into.",
        ) from error
    except OSError as error:
        fix = "Make the folder first, or name another one with --into."
        raise StorageError("the plugin was not made", where=str(folder), why=str(error), fix=fix) from error
    try:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)  # made just now, by this command
        raise StorageError("the plugin was not made", where=str(folder), why=str(error), fix="Try again.") from error
    return folder, sorted(contents)


def _filled(names: Names, kind: Kind) -> Mapping[str, str]:
    values = {
        "name": names.name,
        "distribution": names.distribution,
        "package": names.package,
        "Name": names.class_prefix,
        "about": ABOUT[kind],
        "install_a_format": _FORMAT_OF_ROUNDS if kind is Kind.SOURCE else "",
        "where_a_format_is": _WHERE_A_FORMAT_IS if kind is Kind.SOURCE else "",
        "laketier": laketier.__version__,
        "spi_version": str(FORMAT_SPI_VERSION),
        "source_spi_version": str(SOURCE_SPI_VERSION),
    }
    templates = files("laketier.cli.new_plugin") / "templates"
    parts = dict.fromkeys(("common", kind.noun, kind.value))
    found = [each for part in parts for each in _files(templates / part)]
    return {
        path.replace("PACKAGE", names.package).replace("dot-", "."): Template(text).substitute(values)
        for path, text in found
    }


def _files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files(each, f"{prefix}{each.name}/")
        elif each.name.endswith(_SUFFIX):
            yield f"{prefix}{each.name.removesuffix(_SUFFIX)}", each.read_text(encoding="utf-8")
