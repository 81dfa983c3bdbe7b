"""What a plugin is before anything is asked of it."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from laketier.registry import installed_sources, load_source
from laketier.spi import SOURCE_SPI_VERSIONS, LogSourcePlugin
from laketier_conformance.expect import NotShown, expect, told
from laketier_source_conformance.harness import SourceHarness
from laketier_source_conformance.system import ORIGIN, CannotBe, System

_SECRET = "hunter2-but-longer"


def test_the_plugin_is_named_as_its_entry_point(kind: str) -> None:
    plugin = load_source(kind)
    expect(plugin.identifier, kind, "`identifier` is the name of the entry point")
    assert isinstance(plugin, LogSourcePlugin), f"the hook returned {plugin!r}"
    assert type(plugin.spi_version) is int, f"`spi_version` is a number: found {plugin.spi_version!r}"
    assert plugin.spi_version in SOURCE_SPI_VERSIONS, f"this laketier takes {SOURCE_SPI_VERSIONS}"


def test_the_version_of_the_contract_is_a_number_of_the_plugins_own(kind: str) -> None:
    """A constant of laketier's would change with the next laketier, and promise what nobody wrote."""
    plugin = type(load_source(kind))
    try:
        tree = ast.parse(inspect.getsource(inspect.getmodule(plugin) or plugin))
    except (OSError, TypeError, SyntaxError) as error:
        raise NotShown("the source of the plugin", told(error)) from error
    names = {"SOURCE_SPI_VERSION", "SOURCE_SPI_VERSIONS"}
    assigned = (
        node.value for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign) and _is_version(node)
    )
    used = [each.id for value in assigned if value for each in ast.walk(value) if isinstance(each, ast.Name)]
    assert not names & set(used), f"`spi_version` is {used[0]}, which changes with laketier: write the number"


def _is_version(node: ast.Assign | ast.AnnAssign) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(each, ast.Name) and each.id == "spi_version" for each in targets)


def test_importing_the_plugin_imports_no_client_library(kind: str, harness_type: type[SourceHarness]) -> None:
    if (why := harness_type.cannot.get("engine_modules")) is not None:
        raise CannotBe(f"engine_modules: {why}")
    if not harness_type.engine_modules:
        raise NotShown("the harness", "it has no engine_modules")
    (offer,) = [each for each in installed_sources() if each.name == kind]
    code = f"import sys, json, {offer.module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    expect((done.returncode, done.stderr[-300:]), (0, ""), "the module of the plugin is imported")
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    expect(sorted(loaded & set(harness_type.engine_modules)), [], "client libraries that the plugin's module imports")


def test_client_libraries_are_those_of_the_source(harness_type: type[SourceHarness]) -> None:
    """A name that nothing has would show nothing."""
    for name in harness_type.engine_modules:
        importlib.import_module(name)


def test_the_plugin_has_no_state(kind: str, system: System) -> None:
    plugin = load_source(kind)
    before = dict(vars(plugin))
    system.table().append(1)
    system.source().list_tables()
    expect(dict(vars(plugin)), before, "the attributes of the plugin, of which a process has one, after its use")


def test_a_secret_is_shown_nowhere(system: System) -> None:
    options = {
        name: value.replace("{secret}", _SECRET) if isinstance(value, str) else value
        for name, value in system.call("secret_options").items()
    }
    assert any(_SECRET in str(value) for value in options.values()), "no option of `secret_options` has {secret}"
    shown = _shown(system, options)
    if system.has("cut_off"):  # most errors say where nobody answered
        with system.call("cut_off"):
            shown += _shown(system, options)
    told_of = [text for text in shown if _SECRET in text]
    expect(
        len(told_of),
        0,
        f"texts of a source that show its password, such as {told_of[:1]!r:.80}".replace(_SECRET, "***"),
    )


def _shown(system: System, options: Mapping[str, Any]) -> list[str]:
    from laketier.registry import open_log_source

    try:
        source = open_log_source(system.kind, options, name="tested", origin=ORIGIN)
    except Exception as error:  # noqa: BLE001 - what it says is looked at
        return [str(error), repr(error)]
    shown = [repr(source), repr(source.source), str(source.source)]
    shown += _words_of(source.list_tables)
    shown += _words_of(lambda: source.open("nowhere", system.harness.table_options))
    shown += _words_of(lambda: repr(source.source.open("nowhere", None)))
    source.close()
    return shown


def _words_of(ask: object) -> list[str]:
    try:
        return [repr(ask())]  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - what it says is looked at
        return [str(error), repr(error)]


def test_a_payload_and_a_table_are_values(system: System) -> None:
    """They go into pickles, and are compared after it."""
    table = system.table()
    table.append(3)
    log = table.log()
    from laketier_source_conformance.reads import whole

    splits = list(log.plan(whole(log.bounds())))
    found = pickle.loads(pickle.dumps(splits))  # noqa: S301 - our own bytes
    expect(found, splits, "splits out of a pickle, with their payloads")
    expect(list(log.plan(whole(log.bounds()))), splits, "a range is planned again")
