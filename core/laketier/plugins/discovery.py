"""From a format's name to its plugin, lazily: only the named plugin is imported."""

from __future__ import annotations

import difflib
import functools
import importlib.metadata
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pluggy

from laketier.spi import (
    SPI_VERSION,
    Feature,
    LakeStoragePlugin,
    PluginBroken,
    PluginConflict,
    PluginNotFound,
    SpiVersionMismatch,
)

GROUP = "laketier.formats"
"""The entry-point group. Name = the format's identifier; value = a module with a ``laketier_format`` hook."""

_PROJECT = "laketier"
hookspec = pluggy.HookspecMarker(_PROJECT)
hookimpl = pluggy.HookimplMarker(_PROJECT)


class FormatHooks:
    """The hooks that a plugin module may implement."""

    @hookspec(firstresult=True)
    def laketier_format(self) -> LakeStoragePlugin | None:
        """Return the format. Called once per process; must be cheap and import no engine."""


@dataclass(frozen=True)
class InstalledFormat:
    """A format that some distribution offers; not imported yet."""

    name: str
    distribution: str
    version: str
    module: str

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})"


def installed_formats() -> tuple[InstalledFormat, ...]:
    """All that is offered, sorted by name; from package metadata alone, nothing is imported."""
    found = set()
    for entry in importlib.metadata.entry_points(group=GROUP):
        distribution = entry.dist.name if entry.dist else "an unknown distribution"
        version = entry.dist.version if entry.dist else "?"
        found.add(InstalledFormat(entry.name, distribution, version, entry.value))
    return tuple(sorted(found, key=lambda offer: (offer.name, offer.distribution)))


def load_format(name: str) -> LakeStoragePlugin:
    """The plugin for ``lake.format = name``.

    Raises `PluginNotFound`, `PluginConflict` (two distributions), `PluginBroken` (with the cause chained) and
    `SpiVersionMismatch`.
    """
    offers = [offer for offer in installed_formats() if offer.name == name]
    if not offers:
        raise _not_found(name)
    if len(offers) > 1:
        both = " and ".join(f"{offer.distribution} {offer.version} ({offer.module})" for offer in offers)
        raise PluginConflict(
            f"two distributions offer the format {name!r}: {both}",
            fix=f"Uninstall one of them, for example `pip uninstall {offers[-1].distribution}`.",
        )
    return _load(offers[0])


@functools.cache
def _load(offer: InstalledFormat) -> LakeStoragePlugin:
    entry = importlib.metadata.EntryPoint(name=offer.name, value=offer.module, group=GROUP)
    try:
        module = entry.load()
        manager = pluggy.PluginManager(_PROJECT)
        manager.add_hookspecs(FormatHooks)
        manager.register(module)
        manager.check_pending()
        plugin: Any = manager.hook.laketier_format()
    except Exception as error:  # whatever the import of a module may raise
        raise _broken(offer, f"{type(error).__name__}: {error}") from error
    _check(offer, plugin)
    checked: LakeStoragePlugin = plugin
    return checked


def _check(offer: InstalledFormat, plugin: Any) -> None:
    version = getattr(plugin, "spi_version", None)
    if version is not None and version != SPI_VERSION:
        newer, older = ("the plugin", "laketier") if version > SPI_VERSION else ("laketier", "the plugin")
        raise SpiVersionMismatch(
            f"{offer} was written for SPI version {version}, this laketier has version {SPI_VERSION}",
            why=f"{newer} is newer than {older}",
            fix=f"Upgrade {older}: `pip install --upgrade {_PROJECT if older == 'laketier' else offer.distribution}`.",
        )
    if not isinstance(plugin, LakeStoragePlugin):
        raise _broken(offer, f"its hook laketier_format returned {type(plugin).__name__}, not a LakeStoragePlugin")
    if getattr(plugin, "identifier", None) != offer.name:
        raise _broken(
            offer, f"its identifier is {getattr(plugin, 'identifier', None)!r}, its entry point is named {offer.name!r}"
        )
    features: Mapping[Feature, Any] = getattr(plugin, "features", {})
    undeclared = [feature.value for feature in Feature if feature not in features]
    if undeclared:
        raise _broken(offer, f"it does not declare the features {', '.join(undeclared)}")
    if not hasattr(plugin, "delivery"):
        raise _broken(offer, "it does not declare its delivery level")


def _broken(offer: InstalledFormat, why: str) -> PluginBroken:
    return PluginBroken(
        f"the plugin for {offer} is installed, but can't be used",
        where=offer.module,
        why=why,
        fix=f"Reinstall it with what it needs: `pip install --force-reinstall {offer.distribution}`"
        if _checkout_plugin(offer.name) is None
        else f"Reinstall it with what it needs: `pip install --force-reinstall {_checkout_plugin(offer.name)}`.",
    )


def _not_found(name: str) -> PluginNotFound:
    offers = installed_formats()
    advice = []
    near = difflib.get_close_matches(name, [offer.name for offer in offers], n=1, cutoff=0.5)
    if near:
        advice.append(f"Did you mean {near[0]!r}?")
    folder = _checkout_plugin(name)
    if folder is not None:
        advice.append(f"It is in this checkout: `pip install {folder}` (or `make setup` for all).")
    installed = ", ".join(map(str, offers)) or "none"
    advice.append(f"Installed: {installed}.")
    if folder is None and not near:
        advice.append("Install the distribution that offers it, in the environment that runs this process.")
    return PluginNotFound(f"no plugin for lake.format = {name!r} is installed", fix=" ".join(advice))


def _checkout_plugin(name: str) -> str | None:
    """``./plugins/<folder>`` when this laketier runs from a checkout that holds a plugin of that name."""
    root = Path(__file__).resolve().parents[3]
    for project in sorted(root.glob("plugins/*/pyproject.toml")):
        text = project.read_text(encoding="utf-8")
        section = text.partition(f'[project.entry-points."{GROUP}"]')[2].partition("\n[")[0]
        if re.search(rf"^\"?{re.escape(name)}\"?\s*=", section, re.MULTILINE):
            return f"./plugins/{project.parent.name}"
    return None
