"""What a plugin says about itself, before it opens anything."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from laketier.config import parse_options
from laketier.registry import installed_formats
from laketier.spi import (
    FORMAT_SPI_VERSIONS,
    DeliveryLevel,
    LakeStoragePlugin,
    Passthrough,
    Support,
    unknown_features,
)
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake
from laketier_conformance.option_values import declared


def test_the_entry_point_is_the_identifier(plugin: LakeStoragePlugin) -> None:
    expect(
        [offer.name for offer in installed_formats() if offer.name == plugin.identifier],
        [plugin.identifier],
        "the installed formats of the plugin's identifier",
    )
    assert plugin.spi_version in FORMAT_SPI_VERSIONS, (
        f"the version of the SPI that the plugin names, {plugin.spi_version}, is one of {FORMAT_SPI_VERSIONS}"
    )


def test_what_is_unsupported_has_a_reason(plugin: LakeStoragePlugin) -> None:
    """A feature that the plugin does not name counts as unsupported, and its refusal is tested like any other."""
    for feature, support in plugin.features.items():
        assert isinstance(support, Support), f"the support of {feature} is a Support: found {support!r}"
        assert support.full or len(support.reason) >= 8, f"{feature} has no reason that helps anybody"


def test_the_delivery_level_is_declared(plugin: LakeStoragePlugin) -> None:
    assert isinstance(plugin.delivery, DeliveryLevel), (
        f"the delivery that the plugin declares is a DeliveryLevel: found {plugin.delivery!r}"
    )


def test_the_plugin_can_be_pickled(plugin: LakeStoragePlugin) -> None:
    assert type(pickle.loads(pickle.dumps(plugin))) is type(plugin), "a plugin that was pickled is of the same type"  # noqa: S301 - as Spark does


def test_options_have_defaults_and_docs(plugin: LakeStoragePlugin) -> None:
    kind = plugin.options_type
    assert dataclasses.is_dataclass(kind), f"options_type is a dataclass: found {kind!r}"
    parameters = getattr(kind, "__dataclass_params__", None)
    assert getattr(parameters, "frozen", False), (
        f"the dataclass {kind.__name__} is frozen: found that its fields can be set"
    )
    defaults = parse_options(kind, {}, prefix=f"lake.{plugin.identifier}.", origin="the conformance suite")
    for each in declared(kind):
        shown = each.kind.__name__ if isinstance(each.kind, type) else each.kind
        assert each.can_be_set, (
            f"the option {each.key.replace('-', '_')} is {shown}, and no text of a user can be one: "
            "see the types that laketier.spi.options names"
        )
    for field in dataclasses.fields(kind):
        assert field.metadata.get("doc"), f"{field.name} has no doc: declare it with laketier.spi.option"
        value = getattr(defaults, field.name)
        assert value is None or isinstance(value, Passthrough) or value == field.default, (
            f"the option {field.name} is {value!r} when nothing is set, and not its default"
        )


_NEEDED = ("PYTHON", "PATH", "HOME", "LD_", "DYLD_", "SYSTEMROOT", "LANG", "LC_", "TMP", "TEMP", "USERPROFILE")
"""How variables begin without which an interpreter may not start, or find its modules."""


@pytest.fixture(scope="module")
def imported(plugin: LakeStoragePlugin) -> tuple[str, list[str], dict[str, Any]]:
    """The plugin's module, as an interpreter of its own imported it: what that printed, and its answer."""
    module = next(offer.module for offer in installed_formats() if offer.name == plugin.identifier)
    command = [sys.executable, "-m", "laketier_conformance.imported", module]
    # Variables of this process may be the plugin's: it was imported here, too.
    variables = {name: value for name, value in os.environ.items() if name.startswith(_NEEDED)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    told = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    expect(done.returncode, 0, f"what an interpreter of its own ends with that imports {module}, and says {told}")
    *printed, answer = done.stdout.splitlines()
    return module, [*printed, *done.stderr.splitlines()], json.loads(answer)


def test_importing_the_plugin_imports_no_engine(imported: tuple[str, list[str], Any], harness: Harness) -> None:
    """Asking for a format's name must not cost its library: the core lists and loads plugins on every start."""
    module, _, answer = imported
    own = {module.partition(".")[0], "laketier", "pyarrow", "pluggy"}
    packages = {name for name in answer["packages"] if not name.startswith("__")} - own
    engines = set(harness.engine_modules)
    # One of Python's own, such as sqlite3, is an engine to those who say so.
    heavy = (packages | {*answer["standard"]}) & engines if engines else packages
    assert not heavy, (
        f"importing {module}, and asking it for its format, imports {sorted(heavy)}: do that inside methods (a "
        "module of yours that is no engine may be imported if the harness names the engines in `engine_modules`)"
    )


def test_importing_the_plugin_changes_no_settings(imported: tuple[str, list[str], Any]) -> None:
    """Logging, warnings, signals, the environment and the like are the application's, on drivers and on executors."""
    module, printed, answer = imported
    expect(
        answer["changed"],
        {},
        f"settings of the process that importing {module}, and its hook, change, before and after",
    )
    expect(printed, [], f"lines that importing {module}, and its hook, print")


def test_opening_a_warehouse_makes_nothing(lake: Lake) -> None:
    """A warehouse that does not exist yet is fine, and listing its tables does not fail."""
    expect(lake.storage.catalog().list_tables(), [], "the tables of a warehouse that does not exist yet")
    expect(
        lake.storage.catalog().list_tables("nothing"),
        [],
        "the tables of a database in a warehouse that does not exist yet",
    )


def test_the_declared_rest_is_told(plugin: LakeStoragePlugin, unproven: Callable[[str, str], None]) -> None:
    """Nothing can fail here: it puts into the report what no test of the suite shows."""
    for name in unknown_features(plugin.features):
        unproven(name, "this laketier does not know the feature")
