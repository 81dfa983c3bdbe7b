"""Checks a loaded plugin against the contract, and makes the errors of one that can't be used."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

from laketier.registry.groups import FORMATS, PROJECT, InstalledPlugin, PluginGroup
from laketier.registry.pages import page
from laketier.spi import DeliveryLevel, Feature, PluginBroken, SpiVersionMismatch, Support
from laketier.spi.versions import UNDECLARED


def check(offer: InstalledPlugin, plugin: Any) -> None:
    """Raise `PluginBroken` or `SpiVersionMismatch` for a plugin that breaks the contract of its group."""
    group = offer.group
    if plugin is None:
        raise broken(offer, f"its module has no function {group.hook} with the mark @hookimpl, or it returns nothing")
    if not isinstance(plugin, group.kind):
        raise broken(offer, f"its hook {group.hook} returned {type(plugin).__name__}, not a {group.kind.__name__}")
    _check_version(offer, plugin)
    if getattr(plugin, "identifier", None) != offer.name:
        raise broken(
            offer, f"its identifier is {getattr(plugin, 'identifier', None)!r}, its entry point is named {offer.name!r}"
        )
    if group is FORMATS:
        _check_format(offer, plugin)


def _check_version(offer: InstalledPlugin, plugin: Any) -> None:
    group, version = offer.group, getattr(plugin, "spi_version", UNDECLARED)
    if type(version) is not int:
        raise broken(offer, f"its spi_version is {version!r}, not a whole number")
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
        return f"Upgrade laketier: `pip install --upgrade {PROJECT}`; or install an older {offer.distribution}."
    return (
        f'Upgrade the plugin: `pip install --upgrade {offer.distribution}`. Its author follows "Versions" in '
        f"{page(offer.group.guide)}, and then sets `spi_version = {versions[-1]}` in the plugin's class."
    )


def lacking_name(error: BaseException) -> str | None:
    """The name of laketier that a plugin uses and this laketier lacks, as in another version of the SPI, or None."""
    if isinstance(error, ImportError) and _is_ours(error.name):
        return str(error)
    if isinstance(error, AttributeError) and error.obj is not None:
        owner = error.obj if isinstance(error.obj, ModuleType | type) else type(error.obj)
        if _is_ours(owner.__name__ if isinstance(owner, ModuleType) else owner.__module__):
            return f"{owner.__name__} has no {error.name}"
    return None


def _is_ours(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] == PROJECT


def of_another_version(offer: InstalledPlugin, lacking: str) -> SpiVersionMismatch:
    """The error for a plugin that uses a name which this laketier lacks."""
    group = offer.group
    return SpiVersionMismatch(
        f"{offer} was written for another version of the SPI of {group.noun}s, "
        f"and this laketier accepts {_told(group.versions)}",
        where=offer.module,
        why=f"it uses names that this laketier does not have: {lacking}",
        fix=f"Upgrade whichever is older: `pip install --upgrade {offer.distribution}`, or "
        f'`pip install --upgrade {PROJECT}`. Its author follows "Versions" in {page(group.guide)}.',
    )


def _check_format(offer: InstalledPlugin, plugin: Any) -> None:
    features = getattr(plugin, "features", None)
    if not isinstance(features, Mapping):
        raise broken(offer, "it does not declare its features: a mapping of features to their support is needed")
    for name, support in features.items():
        if not isinstance(name, Feature | str) or not isinstance(support, Support):
            raise broken(offer, f"it declares the feature {name!r} as {support!r}: give FULL, or unsupported(reason)")
        if not isinstance(support.reason, str):
            raise broken(offer, f"the reason for which it does not support {name!r} is no text: {support.reason!r}")
    twice = [feature.value for feature in Feature if feature in features and feature.value in features]
    if twice:
        raise broken(offer, f"it names features twice, as Feature and as text: {', '.join(twice)}")
    if not hasattr(plugin, "delivery"):
        raise broken(offer, "it does not declare its delivery level")
    if not isinstance(plugin.delivery, DeliveryLevel):
        raise broken(offer, f"its delivery is {plugin.delivery!r}, not a DeliveryLevel")


def broken(offer: InstalledPlugin, why: str) -> PluginBroken:
    """The error for a plugin that can't be used."""
    what = checkout_plugin(offer.group, offer.name) or _folder_of(offer.distribution) or offer.distribution
    return PluginBroken(
        f"the plugin for {offer} is installed, but can't be used",
        where=offer.module,
        why=why,
        fix=f"Reinstall it with what it needs: `pip install --force-reinstall {what}`. Its author looks at "
        f"`python -c 'import {offer.module.partition(':')[0]}'` and at {page(offer.group.guide)}.",
    )


def _folder_of(distribution: str) -> str | None:
    """What pip made a distribution of, where that is a folder or a file of this machine: the package index may have
    none of that name, or somebody else's."""
    try:
        text = metadata.distribution(distribution).read_text("direct_url.json")
        direct = json.loads(text or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return None
    if not isinstance(direct, dict):
        return None
    address = urlsplit(str(direct.get("url", "")))
    if address.scheme != "file" or not address.path:
        return None
    place = shlex.quote(unquote(address.path))
    return f"-e {place}" if (direct.get("dir_info") or {}).get("editable") else place


def extra_with(name: str) -> str | None:
    """What to give ``pip install`` for the extra of laketier that brings the plugin of that name; None without one."""
    try:
        needed = metadata.requires(PROJECT) or ()
    except metadata.PackageNotFoundError:
        return None
    brings = re.compile(rf"{PROJECT}-{re.escape(name)}\b.*; extra == .{re.escape(name)}.")
    return f"{_folder_of(PROJECT) or PROJECT}'[{name}]'" if any(map(brings.fullmatch, needed)) else None


def checkout_plugin(group: PluginGroup, name: str) -> str | None:
    """``./plugins/<folder>`` when this laketier runs from a checkout that holds a plugin of that name."""
    root = Path(__file__).resolve().parents[3]
    for project in sorted(root.glob("plugins/*/pyproject.toml")):
        text = project.read_text(encoding="utf-8")
        section = text.partition(f'[project.entry-points."{group.name}"]')[2].partition("\n[")[0]
        if re.search(rf"^\"?{re.escape(name)}\"?\s*=", section, re.MULTILINE):
            return f"./plugins/{project.parent.name}"
    return None
