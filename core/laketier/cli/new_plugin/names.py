"""The names of a new plugin: of its format or source, distribution and package. Refused where they are taken."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from dataclasses import dataclass

import yaml

from laketier.config.lake import LakeKeys
from laketier.config.parsing import dashed
from laketier.registry import format_names, installed_sources
from laketier.spi import ConfigError

_FORMAT = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
_LONGEST = 40
_PROJECT = "laketier"
_OTHER = "Choose another name."


@dataclass(frozen=True)
class Names:
    """All names follow from ``name``: that of a format, or of what else ``noun`` says."""

    name: str
    noun: str = "format"

    @property
    def distribution(self) -> str:
        """The name for pip, and of the folder."""
        return f"{_PROJECT}-{self.name}"

    @property
    def package(self) -> str:
        """The name for ``import``."""
        return f"{self.name.replace('-', '_')}_{'lake' if self.noun == 'format' else 'log'}"

    @property
    def class_prefix(self) -> str:
        """The beginning of the names of classes."""
        return "".join(part.capitalize() for part in self.name.split("-"))


def names_of(name: str, noun: str = "format") -> Names:
    """Check the name of a format that is to be made, or of a source. Raises `ConfigError`, which says what is wrong."""
    what = f"{name!r} can't be the name of a {noun}"
    if not _FORMAT.match(name) or len(name) > _LONGEST:
        likely = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")[:_LONGEST].strip("-")
        raise ConfigError(
            what,
            why=f"it needs a lower-case letter, then lower-case letters and digits, with single hyphens in between, "
            f"and {_LONGEST} characters at most",
            fix=f"Try {likely!r}." if likely else _OTHER,
        )
    names = Names(name, noun)
    is_format = noun == "format"
    if not isinstance(yaml.safe_load(name), str):
        key = "lake.format" if is_format else "type"
        why = f"a file in YAML that says `{key}: {name}` means no text by it"
        raise ConfigError(what, why=why, fix=_OTHER)
    if is_format and name in {dashed(key) for key in LakeKeys.model_fields}:
        why = f"lake.{name} is a key of laketier's own, and lake.{name}.* would be the options of the format"
        raise ConfigError(what, why=why, fix=_OTHER)
    if name in (format_names() if is_format else {each.name for each in installed_sources()}):
        listing = " `laketier formats` lists those in use." if is_format else ""
        raise ConfigError(f"a {noun} {name!r} is installed already", fix=f"{_OTHER}{listing}")
    if name in (importlib.metadata.metadata(_PROJECT).get_all("Provides-Extra") or ()) or _installed(names):
        raise ConfigError(
            what,
            why=f"the name {names.distribution} of its distribution belongs to laketier or is installed already",
            fix=_OTHER,
        )
    if importlib.util.find_spec(names.package) is not None:
        why = f"its package {names.package} would hide another one of that name, which can be imported here"
        raise ConfigError(what, why=why, fix=_OTHER)
    return names


def _installed(names: Names) -> bool:
    try:
        importlib.metadata.distribution(names.distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
