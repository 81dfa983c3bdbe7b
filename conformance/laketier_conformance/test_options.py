"""Options that a plugin declares: each value that they take leaves the rows as they are, and each other one is refused
by its key, before a task has a row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from laketier.config import parse_options
from laketier.registry import installed_formats, load_format
from laketier.spi import ConfigError, LakeStoragePlugin, LaketierError, PluginError
from laketier_conformance.expect import refused, told
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake
from laketier_conformance.option_values import Declared, declared, values, why_no_help
from laketier_conformance.outside import is_behind_a_server
from laketier_conformance.short_lives import Setting, ShortLives

ORIGIN = "the conformance suite"


def _typed(plugin: LakeStoragePlugin, given: dict[str, Any]) -> Any:
    return parse_options(plugin.options_type, given, prefix=f"lake.{plugin.identifier}.", origin=ORIGIN)


def _refusal(plugin: LakeStoragePlugin, option: Declared, value: Any) -> ConfigError | None:
    """The one of the configuration, which asks the plugin's dataclass, too."""
    try:
        _typed(plugin, {option.key: value})
    except ConfigError as refusal:
        return refusal
    except Exception as error:  # noqa: BLE001 - reported
        pytest.fail(f"{option.key} = {value!r:.60} is given: expected options, or a ConfigError, found {told(error)}")
    return None


def _helps(option: Declared, value: Any, refusal: LaketierError, *, of_a_server: bool = False) -> None:
    lacking = why_no_help(refusal, option.key, value, hidden=option.is_hidden, of_a_server=of_a_server)
    assert lacking is None, f"the refusal of {option.key} helps who wrote it: {lacking}. It says: {told(refusal)}"


def test_what_does_not_fit_is_refused_by_its_key(plugin: LakeStoragePlugin) -> None:
    """Texts that are no number, numbers out of bounds, lists, and choices that there are not; and other keys."""
    for option in declared(plugin.options_type):
        for value in values(option):
            refusal = _refusal(plugin, option, value)
            if refusal is not None:
                _helps(option, value, refusal)
    _other_keys_are_refused(plugin)


def _keys_of_others(plugin: LakeStoragePlugin) -> Iterator[str]:
    for offer in installed_formats():
        if offer.name == plugin.identifier:
            continue
        try:
            other = load_format(offer.name)
        except PluginError:
            continue  # a format that lacks its library says nothing of this one
        yield from (option.key for option in declared(other.options_type))


def _other_keys_are_refused(plugin: LakeStoragePlugin) -> None:
    """One of another format, one with a letter less, one in another spelling, and one beside its other spelling."""
    own = {option.key: option for option in declared(plugin.options_type)}
    others = {"conformance-no-such-option", *_keys_of_others(plugin)} - own.keys()
    for key in sorted(others):
        with refused(ConfigError, f"the option {key!r} is given, which the format does not declare", match=key):
            _typed(plugin, {key: "1"})
    for key, option in own.items():
        spellings = {key[:-1], key.upper(), f" {key}", key.replace("-", "_")} - own.keys()
        fits = next((value for value in values(option) if _refusal(plugin, option, value) is None), None)
        for spelling in sorted(spellings):
            for given in ({spelling: fits}, {key: fits, spelling: fits}):
                with refused(ConfigError, f"the option {key} is spelled {spelling!r}", match=spelling):
                    _typed(plugin, given)


def test_rows_are_the_same_under_each_option(
    plugin: LakeStoragePlugin,
    lake: Lake,
    harness: Harness,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Options say how rows are kept, and how they are read; and a reader without them sees the same rows, or none."""
    inside = tmp_path / "works" / "here"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)  # a text may be taken for a path
    asked = [each for each in declared(plugin.options_type) if each.key not in lake.options and not each.is_hidden]
    own = {option.key: option for option in asked}
    lives, asks_a_server = ShortLives(lake), is_behind_a_server(lake.location)

    def helps(setting: Setting, refusal: LaketierError) -> None:
        _helps(own[setting.key], setting.value, refusal, of_a_server=asks_a_server)

    taken = {option.key: list(_taken(plugin, option)) for option in asked}
    for number, given in enumerate(harness.option_sets):
        some = [Setting(key, value) for key, value in given.items()]
        refusal = lives.refusal(some)
        assert refusal is None, f"set {number} of the harness's option_sets is taken: found {told(refusal)}"
    texts = [key for key, option in own.items() if option.kind is str]
    for key in texts:
        for value in taken.pop(key):
            lives.prove([Setting(key, value)], helps)
    for row in zip_longest(*taken.values(), fillvalue=_NONE):
        some = [Setting(key, value) for key, value in zip(taken, row, strict=True) if value is not _NONE]
        lives.prove(some, helps)


_NONE = object()


def _taken(plugin: LakeStoragePlugin, option: Declared) -> Iterator[Any]:
    """Values that fit, each once, however it is written."""
    seen = set()
    for value in values(option):
        if _refusal(plugin, option, value) is None:
            typed = repr(_typed(plugin, {option.key: value}))
            if typed not in seen:
                seen.add(typed)
                yield value
