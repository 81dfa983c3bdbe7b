"""The names of a new plugin: of its format, distribution and package. Refused where something has them already."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from dataclasses import dataclass

import yaml

from laketier.config.lake import LakeKeys
from laketier.config.parsing import dashed
from laketier.registry import format_names
from laketier.spi import ConfigError

_FORMAT = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
_LONGEST = 40
_PROJECT = "laketier"
_OTHER = "Choose another name."


@dataclass(frozen=True)
class Names:
    """All names follow from the format's."""

    format: str

    @property
    def distribution(self) -> str:
        """The name for pip, and of the folder."""
        return f"{_PROJECT}-{self.format}"

    @property
    def package(self) -> str:
        """The name for ``import``."""
        return f"{self.format.replace('-', '_')}_lake"

    @property
    def class_prefix(self) -> str:
        """The beginning of the names of classes."""
        return "".join(part.capitalize() for part in self.format.split("-"))


def names_of(format: str) -> Names:
    """Check the name of a format that is to be made. Raises `ConfigError`, which says what is wrong with it."""
    if not _FORMAT.match(format) or len(format) > _LONGEST:
        likely = re.sub(r"[^a-z0-9]+", "-", format.lower()).strip("-0123456789")[:_LONGEST].strip("-")
        raise ConfigError(
            f"{format!r} can't be the name of a format",
            why=f"it needs a lower-case letter, then lower-case letters and digits, with single hyphens in between, "
            f"and {_LONGEST} characters at most",
            fix=f"Try {likely!r}." if likely else _OTHER,
        )
    names = Names(format)
    if not isinstance(yaml.safe_load(format), str):
        why = f"a file in YAML that says `lake.format: {format}` means no text by it"
        raise ConfigError(f"{format!r} can't be the name of a format", why=why, fix=_OTHER)
    if format in {dashed(name) for name in LakeKeys.model_fields}:
        why = f"lake.{format} is a key of laketier's own, and lake.{format}.* would be the options of the format"
        raise ConfigError(f"{format!r} can't be the name of a format", why=why, fix=_OTHER)
    if format in format_names():
        raise ConfigError(
            f"a format {format!r} is installed already", fix=f"{_OTHER} `laketier formats` lists those in use."
        )
    if format in (importlib.metadata.metadata(_PROJECT).get_all("Provides-Extra") or ()) or _installed(names):
        raise ConfigError(
            f"{format!r} can't be the name of a format",
            why=f"the name {names.distribution} of its distribution belongs to laketier or is installed already",
            fix=_OTHER,
        )
    if importlib.util.find_spec(names.package) is not None:
        why = f"its package {names.package} would hide another one of that name, which can be imported here"
        raise ConfigError(f"{format!r} can't be the name of a format", why=why, fix=_OTHER)
    return names


def _installed(names: Names) -> bool:
    try:
        importlib.metadata.distribution(names.distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
