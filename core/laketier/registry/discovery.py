"""Finds the plugin of a format or a source by its name, lazily: imports only the named plugin."""

from __future__ import annotations

import difflib
import functools
import importlib.metadata
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pluggy

from laketier.kit.library_errors import ends_the_process
from laketier.registry.checks import broken, check, checkout_plugin, extra_with, lacking_name, of_another_version
from laketier.registry.groups import FORMATS, PROJECT, SOURCES, InstalledPlugin, PluginGroup
from laketier.spi import LakeStoragePlugin, LogSourcePlugin, PluginConflict, PluginNotFound


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
        return os.stat(entry or ".").st_mtime_ns
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


@contextmanager
def _staying() -> Iterator[None]:
    """Let `os._exit` raise what `sys.exit` does, in this thread: a module that ends the process as it is imported ended
    each command without a word."""
    here, ends, loading = (os.getpid(), threading.get_ident()), os._exit, True

    def stay(status: int) -> NoReturn:
        if not loading or (os.getpid(), threading.get_ident()) != here:
            ends(status)  # a child's own, or of who took the name with him
        raise SystemExit(f"os._exit({status})")

    os._exit = stay
    try:
        yield
    finally:
        os._exit, loading = ends, False


@functools.cache
def _load(offer: InstalledPlugin) -> Any:
    entry = importlib.metadata.EntryPoint(name=offer.name, value=offer.module, group=offer.group.name)
    try:
        with _staying():
            module = entry.load()
            manager = pluggy.PluginManager(PROJECT)
            manager.add_hookspecs(offer.group.hooks)
            manager.register(module)
            manager.check_pending()
            plugin: Any = getattr(manager.hook, offer.group.hook)()
    except BaseException as error:  # whatever the import of a module may raise: it may end in a panic, or `sys.exit`
        if ends_the_process(error):
            raise
        lacking = lacking_name(error)
        if lacking is not None:
            raise of_another_version(offer, lacking) from error
        raise broken(offer, f"{type(error).__name__}: {error}") from error
    check(offer, plugin)
    return plugin


def _not_found(group: PluginGroup, name: str) -> PluginNotFound:
    offers = _installed(group)
    folder = checkout_plugin(group, name)
    extra = None if folder is not None else extra_with(name)
    near = difflib.get_close_matches(name, [offer.name for offer in offers], n=1, cutoff=0.5)
    advice = [] if extra is not None or not near else [f"Did you mean {near[0]!r}?"]
    if folder is not None:
        advice.append(f"It is in this checkout: `pip install {folder}` (or `make setup` for all).")
    advice.append(f"Installed: {', '.join(map(str, offers)) or 'none'}.")
    if extra is not None:
        advice.append(
            f"laketier has an extra of that name: `pip install {extra}`, in the environment that runs this process."
        )
    elif folder is None and not near:
        advice.append("Install the distribution that offers it, in the environment that runs this process.")
    return PluginNotFound(f"no plugin for {group.key.format(name=name)} is installed", fix=" ".join(advice))
