"""Finds the plugin of a format or a source by its name, lazily: imports only the named plugin."""

from __future__ import annotations

import difflib
import functools
import importlib.metadata
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from laketier.spi import (
    FORMAT_SPI_VERSIONS,
    SOURCE_SPI_VERSIONS,
    Feature,
    LakeStoragePlugin,
    LogSourcePlugin,
    PluginBroken,
    PluginConflict,
    PluginNotFound,
    SpiVersionMismatch,
    Support,
)
from laketier.spi.versions import UNDECLARED

_PROJECT = "laketier"
hookspec = pluggy.HookspecMarker(_PROJECT)
hookimpl = pluggy.HookimplMarker(_PROJECT)


class FormatHooks:
    """The hooks of a format's plugin module."""

    @hookspec(firstresult=True)
    def laketier_format(self) -> LakeStoragePlugin | None:
        """Return the format. Called once per process. It must be cheap and import no engine."""


class SourceHooks:
    """The hooks of a source's plugin module."""

    @hookspec(firstresult=True)
    def laketier_source(self) -> LogSourcePlugin | None:
        """Return the kind of source. Called once per process. It must be cheap and import no client library."""


@dataclass(frozen=True)
class PluginGroup:
    """A group of entry points. The name of an entry point is the plugin's identifier, its value the module with the
    hook."""

    name: str
    hook: str
    hooks: type
    kind: type
    noun: str
    key: str
    """The setting by which the user named the plugin."""
    versions: range
    """The accepted versions of the SPI."""
    guide: str
    """The page that tells how the versions differ."""


FORMATS = PluginGroup(
    "laketier.formats",
    "laketier_format",
    FormatHooks,
    LakeStoragePlugin,
    "format",
    "lake.format = {name!r}",
    FORMAT_SPI_VERSIONS,
    "docs/authors/guide.md",
)
SOURCES = PluginGroup(
    "laketier.sources",
    "laketier_source",
    SourceHooks,
    LogSourcePlugin,
    "source",
    "a source of type {name!r}",
    SOURCE_SPI_VERSIONS,
    "docs/authors/sources.md",
)


@dataclass(frozen=True)
class InstalledPlugin:
    """A format or source of an installed distribution. Not imported yet."""

    name: str
    distribution: str
    version: str
    module: str
    group: PluginGroup

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})"


def installed_formats() -> tuple[InstalledPlugin, ...]:
    """List all installed formats, sorted by name. Reads package metadata, and imports nothing."""
    return _installed(FORMATS)


def installed_sources() -> tuple[InstalledPlugin, ...]:
    """List all installed kinds of source, sorted by name. Reads package metadata, and imports nothing."""
    return _installed(SOURCES)


def load_format(name: str) -> LakeStoragePlugin:
    """Load the plugin of a format.

    Args:
        name: The value of ``lake.format``.

    Returns:
        The plugin.

    Raises:
        PluginNotFound: No installed distribution has the format.
        PluginConflict: Two installed distributions have it.
        PluginBroken: An import failed, or the plugin breaks the contract. The cause is chained.
        SpiVersionMismatch: The plugin was written for a version of the SPI that is not accepted.
    """
    plugin: LakeStoragePlugin = _load(_only(FORMATS, name))
    return plugin


def load_source(name: str) -> LogSourcePlugin:
    """Load the plugin of a kind of source.

    Args:
        name: The value of ``type``.

    Returns:
        The plugin.

    Raises:
        PluginError: As `load_format`.
    """
    plugin: LogSourcePlugin = _load(_only(SOURCES, name))
    return plugin


def _installed(group: PluginGroup) -> tuple[InstalledPlugin, ...]:
    """The metadata of all distributions is read once, and again when `sys.path` or a folder on it has changed: it takes
    longer than all else that a round does before it opens its table."""
    return _listed(group, tuple((entry, _changed(entry)) for entry in sys.path))


def _changed(entry: str) -> int | None:
    """When something was last put into a folder of `sys.path`, or taken out of it. None where there is no such one."""
    try:
        return Path(entry).stat().st_mtime_ns
    except (OSError, ValueError):
        return None


@functools.lru_cache(maxsize=8)
def _listed(group: PluginGroup, path: tuple[tuple[str, int | None], ...]) -> tuple[InstalledPlugin, ...]:  # noqa: ARG001
    found = set()
    for entry in importlib.metadata.entry_points(group=group.name):
        distribution = entry.dist.name if entry.dist else "an unknown distribution"
        version = entry.dist.version if entry.dist else "?"
        found.add(InstalledPlugin(entry.name, distribution, version, entry.value, group))
    return tuple(sorted(found, key=lambda offer: (offer.name, offer.distribution)))


def _only(group: PluginGroup, name: str) -> InstalledPlugin:
    offers = [offer for offer in _installed(group) if offer.name == name]
    if not offers:
        raise _not_found(group, name)
    if len(offers) > 1:
        both = " and ".join(f"{offer.distribution} {offer.version} ({offer.module})" for offer in offers)
        raise PluginConflict(
            f"two distributions offer the {group.noun} {name!r}: {both}",
            fix=f"Uninstall one of them, for example `pip uninstall {offers[-1].distribution}`.",
        )
    return offers[0]


@functools.cache
def _load(offer: InstalledPlugin) -> Any:
    entry = importlib.metadata.EntryPoint(name=offer.name, value=offer.module, group=offer.group.name)
    try:
        module = entry.load()
        manager = pluggy.PluginManager(_PROJECT)
        manager.add_hookspecs(offer.group.hooks)
        manager.register(module)
        manager.check_pending()
        plugin: Any = getattr(manager.hook, offer.group.hook)()
    except Exception as error:  # whatever the import of a module may raise
        lacking = _lacking(error)
        if lacking is not None:
            raise _of_another_version(offer, lacking) from error
        raise _broken(offer, f"{type(error).__name__}: {error}") from error
    _check(offer, plugin)
    return plugin


def _check(offer: InstalledPlugin, plugin: Any) -> None:
    group = offer.group
    if not isinstance(plugin, group.kind):
        raise _broken(offer, f"its hook {group.hook} returned {type(plugin).__name__}, not a {group.kind.__name__}")
    _check_version(offer, plugin)
    if getattr(plugin, "identifier", None) != offer.name:
        raise _broken(
            offer, f"its identifier is {getattr(plugin, 'identifier', None)!r}, its entry point is named {offer.name!r}"
        )
    if group is FORMATS:
        _check_format(offer, plugin)


def _check_version(offer: InstalledPlugin, plugin: Any) -> None:
    group, version = offer.group, getattr(plugin, "spi_version", UNDECLARED)
    if type(version) is not int:
        raise _broken(offer, f"its spi_version is {version!r}, not a whole number")
    if version in group.versions:
        return
    named = hasattr(plugin, "spi_version")
    said = f"was written for version {version}" if named else f"names no version, so it is of version {version},"
    raise SpiVersionMismatch(
        f"{offer} {said} of the SPI of {group.noun}s, and this laketier accepts {_told(group.versions)}",
        where=offer.module,
        why=f"{'the plugin' if version >= group.versions.stop else 'laketier'} is the newer of the two",
        fix=_change(offer, version),
    )


def _told(versions: range) -> str:
    return f"version {versions[0]}" if len(versions) == 1 else f"versions {versions[0]} to {versions[-1]}"


def _change(offer: InstalledPlugin, version: int) -> str:
    """What to do about a version out of range: for its user, and for its author."""
    versions = offer.group.versions
    if version >= versions.stop:
        return f"Upgrade laketier: `pip install --upgrade {_PROJECT}`; or install an older {offer.distribution}."
    return (
        f'Upgrade the plugin: `pip install --upgrade {offer.distribution}`. Its author follows "Versions" in '
        f"{offer.group.guide}, and then sets `spi_version = {versions[-1]}` in the plugin's class."
    )


def _lacking(error: Exception) -> str | None:
    """What of laketier the code of a plugin asks for that is not there, as in another version of the SPI."""
    if isinstance(error, ImportError) and _is_ours(error.name):
        return str(error)
    if isinstance(error, AttributeError) and error.obj is not None:
        owner = error.obj if isinstance(error.obj, ModuleType | type) else type(error.obj)
        if _is_ours(owner.__name__ if isinstance(owner, ModuleType) else owner.__module__):
            return f"{owner.__name__} has no {error.name}"
    return None


def _is_ours(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] == _PROJECT


def _of_another_version(offer: InstalledPlugin, lacking: str) -> SpiVersionMismatch:
    group = offer.group
    return SpiVersionMismatch(
        f"{offer} was written for another version of the SPI of {group.noun}s, "
        f"and this laketier accepts {_told(group.versions)}",
        where=offer.module,
        why=f"it uses names that this laketier does not have: {lacking}",
        fix=f"Upgrade whichever is older: `pip install --upgrade {offer.distribution}`, or "
        f'`pip install --upgrade {_PROJECT}`. Its author follows "Versions" in {group.guide}.',
    )


def _check_format(offer: InstalledPlugin, plugin: Any) -> None:
    features = getattr(plugin, "features", None)
    if not isinstance(features, Mapping):
        raise _broken(offer, "it does not declare its features: a mapping of features to their support is needed")
    for name, support in features.items():
        if not isinstance(name, Feature | str) or not isinstance(support, Support):
            raise _broken(offer, f"it declares the feature {name!r} as {support!r}: give FULL, or unsupported(reason)")
    twice = [feature.value for feature in Feature if feature in features and feature.value in features]
    if twice:
        raise _broken(offer, f"it names features twice, as Feature and as text: {', '.join(twice)}")
    if not hasattr(plugin, "delivery"):
        raise _broken(offer, "it does not declare its delivery level")


def _broken(offer: InstalledPlugin, why: str) -> PluginBroken:
    what = _checkout_plugin(offer.group, offer.name) or offer.distribution
    return PluginBroken(
        f"the plugin for {offer} is installed, but can't be used",
        where=offer.module,
        why=why,
        fix=f"Reinstall it with what it needs: `pip install --force-reinstall {what}`.",
    )


def _not_found(group: PluginGroup, name: str) -> PluginNotFound:
    offers = _installed(group)
    advice = []
    near = difflib.get_close_matches(name, [offer.name for offer in offers], n=1, cutoff=0.5)
    if near:
        advice.append(f"Did you mean {near[0]!r}?")
    folder = _checkout_plugin(group, name)
    if folder is not None:
        advice.append(f"It is in this checkout: `pip install {folder}` (or `make setup` for all).")
    installed = ", ".join(map(str, offers)) or "none"
    advice.append(f"Installed: {installed}.")
    if folder is None and not near:
        advice.append("Install the distribution that offers it, in the environment that runs this process.")
    return PluginNotFound(f"no plugin for {group.key.format(name=name)} is installed", fix=" ".join(advice))


def _checkout_plugin(group: PluginGroup, name: str) -> str | None:
    """``./plugins/<folder>`` when this laketier runs from a checkout that holds a plugin of that name."""
    root = Path(__file__).resolve().parents[3]
    for project in sorted(root.glob("plugins/*/pyproject.toml")):
        text = project.read_text(encoding="utf-8")
        section = text.partition(f'[project.entry-points."{group.name}"]')[2].partition("\n[")[0]
        if re.search(rf"^\"?{re.escape(name)}\"?\s*=", section, re.MULTILINE):
            return f"./plugins/{project.parent.name}"
    return None
