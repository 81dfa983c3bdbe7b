"""From a name to a plugin: found lazily, and every way to be wrong has a message of its own."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laketier.cli.formats import formats
from laketier.registry import discovery, installed_formats, load_format, load_source
from laketier.registry.checks import extra_with
from laketier.spi import Feature, PluginBroken, PluginConflict, PluginNotFound, SpiVersionMismatch, support_of

PLUGIN = """
from laketier.registry import hookimpl
from laketier.spi import FULL, DeliveryLevel, Feature, LakeStoragePlugin

class Plugin(LakeStoragePlugin):
    identifier = {identifier!r}
    spi_version = 3
    delivery = DeliveryLevel.EXACTLY_ONCE
    features = {{feature: FULL for feature in Feature}}
    {extra}

    def create_storage(self, config):
        raise AssertionError

@hookimpl
def laketier_format():
    return Plugin()
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(site: Path, distribution: str, name: str, source: str, module: str | None = None) -> str:
    """Lay out a distribution as an installer would, and return its module's name."""
    module = module or f"{distribution.replace('-', '_')}_plugin"
    (site / f"{module}.py").write_text(source)
    info = site / f"{distribution.replace('-', '_')}-1.2.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2.3\n")
    (info / "entry_points.txt").write_text(f"[laketier.formats]\n{name} = {module}\n")
    return module


def test_a_plugin_is_found_by_name(site: Path) -> None:
    install(site, "acme-lake", "acme", PLUGIN.format(identifier="acme", extra=""))
    assert load_format("acme").identifier == "acme"


def test_only_the_named_plugin_is_imported(site: Path) -> None:
    wanted = install(site, "wanted-lake", "wanted", PLUGIN.format(identifier="wanted", extra=""))
    other = install(site, "other-lake", "other", "raise AssertionError('imported')")
    load_format("wanted")
    assert wanted in sys.modules
    assert other not in sys.modules


def test_metadata_is_read_once_and_again_after_an_installation(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin is asked for several times in each round, and the metadata of an environment has hundreds of files."""
    install(site, "once-lake", "once", PLUGIN.format(identifier="once", extra=""))
    for _ in range(2):  # Python keeps the module's bytecode beside it, which changes the folder after the first time
        load_format("once")
    entry_points, asked = importlib.metadata.entry_points, []

    def counted(**selected: str) -> Any:
        asked.append(selected)
        return entry_points(**selected)

    monkeypatch.setattr(importlib.metadata, "entry_points", counted)
    for _ in range(3):
        load_format("once")
    assert not asked
    before = site.stat().st_mtime_ns
    while site.stat().st_mtime_ns == before:  # a file system's clock may be coarse
        (site / "ticks").touch()
        (site / "ticks").unlink()
    install(site, "arrived-lake", "arrived", PLUGIN.format(identifier="arrived", extra=""))
    assert load_format("arrived").identifier == "arrived"
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(site)])
    with pytest.raises(PluginNotFound):
        load_format("arrived")


def test_listing_imports_nothing(site: Path) -> None:
    module = install(site, "listed-lake", "listed", "raise AssertionError('imported')")
    assert "listed (listed-lake 1.2.3)" in map(str, installed_formats())
    assert module not in sys.modules


def test_two_distributions_with_one_name_are_both_named(site: Path) -> None:
    install(site, "first-lake", "twice", PLUGIN.format(identifier="twice", extra=""))
    install(site, "second-lake", "twice", PLUGIN.format(identifier="twice", extra=""))
    with pytest.raises(PluginConflict, match=r"first-lake 1\.2\.3 .* and second-lake 1\.2\.3 .*pip uninstall"):
        load_format("twice")


def test_an_unknown_name_gets_the_nearest_and_the_installed(site: Path) -> None:
    install(site, "acme2-lake", "acmetwo", PLUGIN.format(identifier="acmetwo", extra=""))
    with pytest.raises(PluginNotFound) as caught:
        load_format("acmetow")
    assert "Did you mean 'acmetwo'?" in str(caught.value)
    assert "acmetwo (acme2-lake 1.2.3)" in str(caught.value)


def test_a_plugin_of_an_extra_is_told_with_the_extra() -> None:
    told = extra_with("delta")
    assert told is not None
    assert told.endswith("'[delta]'")
    assert (extra_with("spark"), extra_with("elta"), extra_with("paimon")) == (None, None, None)


def test_a_broken_import_keeps_its_cause(site: Path) -> None:
    install(site, "broken-lake", "broken", "import a_module_that_is_not_there")
    with pytest.raises(PluginBroken, match=r"broken \(broken-lake 1\.2\.3\).*No module named") as caught:
        load_format("broken")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize(
    ("origin", "named"),
    [
        ('{"url": "file:///home/me/my%20lake", "dir_info": {"editable": true}}', "-e '/home/me/my lake'"),
        ('{"url": "file:///home/me/lake", "dir_info": {}}', "/home/me/lake"),
        ('{"url": "file:///tmp/local_lake-1.2.3-py3-none-any.whl", "archive_info": {}}', "/tmp/local_lake-1.2.3-py3-"),
        ('{"url": "https://me:secret@there/lake.git", "vcs_info": {"vcs": "git"}}', "local-lake"),
        ("", "local-lake"),
        ("no document", "local-lake"),
        ("[]", "local-lake"),
    ],
)
def test_a_broken_plugin_is_installed_again_from_where_it_came(origin: str, named: str, site: Path) -> None:
    """Its author has it from a folder, and the package index may have somebody else's of that name."""
    install(site, "local-lake", "local", "import a_module_that_is_not_there")
    (site / "local_lake-1.2.3.dist-info" / "direct_url.json").write_text(origin)
    with pytest.raises(PluginBroken) as caught:
        load_format("local")
    assert f"`pip install --force-reinstall {named}" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "ends",
    ["import sys; sys.exit('no licence')", "raise BaseException('no licence')", "import os; os._exit('no licence')"],
)
def test_an_import_that_ends_otherwise_is_told(ends: str, site: Path) -> None:
    """A panic of a library in Rust is no `Exception`, nor is the exit of one that wants a licence."""
    install(site, "quitting-lake", "quitting", ends)
    with pytest.raises(PluginBroken, match=r"quitting \(quitting-lake 1\.2\.3\).*no licence"):
        load_format("quitting")


def test_an_interrupt_while_a_plugin_is_imported_is_the_users(site: Path) -> None:
    install(site, "slow-lake", "slow", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_format("slow")


def test_a_plugin_from_before_a_feature_loads(site: Path) -> None:
    older = "features = {Feature.OVERWRITE: FULL}"
    install(site, "older-lake", "older", PLUGIN.format(identifier="older", extra=older))
    features = load_format("older").features
    assert support_of(features, Feature.OVERWRITE).full
    assert not support_of(features, Feature.INDEXING).full


def test_a_plugin_that_knows_newer_features_loads_and_formats_says_so(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = "features = {Feature.OVERWRITE: FULL, 'teleport': FULL}"
    install(site, "newer-lake", "newer", PLUGIN.format(identifier="newer", extra=newer))
    assert load_format("newer").identifier == "newer"
    formats()
    text = " ".join(capsys.readouterr().out.split())
    assert "newer names features that this laketier does not know: teleport. They are ignored." in text
    formats(json=True)
    (shown,) = [offer for offer in json.loads(capsys.readouterr().out) if offer["format"] == "newer"]
    assert shown["unknown_features"] == ["teleport"]
    assert (shown["features"]["overwrite"], shown["error"]) == ("", None)
    assert "does not name this feature" in shown["features"]["upsert"]


@pytest.mark.parametrize(
    ("version", "why", "fix"),
    [
        (99, "the plugin is the newer", r"Upgrade laketier: `pip install --upgrade laketier`"),
        (2, "laketier is the newer", r"pip install --upgrade far-lake`.*\"Versions\" in docs/authors/guide\.md"),
        (1, "laketier is the newer", r"sets `spi_version = 3` in the plugin's class"),
        (0, "laketier is the newer", r"sets `spi_version = 3` in the plugin's class"),
    ],
)
def test_a_version_out_of_range_says_what_to_change(site: Path, version: int, why: str, fix: str) -> None:
    name = f"far{version}"
    install(site, "far-lake", name, PLUGIN.format(identifier=name, extra=f"spi_version = {version}"), f"w{version}")
    says = rf"{name} \(far-lake 1\.2\.3\) was written for version {version} of the SPI of formats, and this laketier "
    with pytest.raises(SpiVersionMismatch, match=rf"{says}accepts version 3, because {why}.*{fix}"):
        load_format(name)


def test_a_plugin_that_names_no_version_is_of_the_first(site: Path) -> None:
    """It was written when the version had a default, which told nothing."""
    install(site, "first-lake", "unversioned", PLUGIN.format(identifier="unversioned", extra="del spi_version"))
    with pytest.raises(SpiVersionMismatch, match=r"names no version, so it is of version 1, of the SPI.*accepts"):
        load_format("unversioned")


def test_a_range_of_versions_is_accepted(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "FORMATS", replace(discovery.FORMATS, versions=range(3, 6)))
    for version in (3, 4, 5):
        name = f"ranged{version}"
        install(site, f"{name}-lake", name, PLUGIN.format(identifier=name, extra=f"spi_version = {version}"))
        assert load_format(name).spi_version == version
    install(site, "ranged6-lake", "ranged6", PLUGIN.format(identifier="ranged6", extra="spi_version = 6"))
    with pytest.raises(SpiVersionMismatch, match="accepts versions 3 to 5"):
        load_format("ranged6")


def test_formats_and_sources_have_versions_of_their_own(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "SOURCES", replace(discovery.SOURCES, versions=range(7, 8)))
    assert load_format("localfile").spi_version == 3
    with pytest.raises(SpiVersionMismatch, match="SPI of sources, and this laketier accepts version 7"):
        load_source("files")


@pytest.mark.parametrize(
    ("name", "line", "lacks"),
    [
        ("gone", "from laketier.spi import SPI_VERSION", "cannot import name 'SPI_VERSION'"),
        ("moved", "from laketier.sources.values import BadValue", "No module named 'laketier.sources'"),
        ("future", "from laketier.spi import Feature; Feature.TELEPORT", "Feature has no TELEPORT"),
        ("later", "from laketier import spi; spi.Teleport", "laketier.spi has no Teleport"),
    ],
)
def test_a_plugin_that_asks_for_what_another_version_has(site: Path, name: str, line: str, lacks: str) -> None:
    install(site, f"{name}-lake", name, f"{line}\n{PLUGIN.format(identifier=name, extra='')}")
    with pytest.raises(
        SpiVersionMismatch, match=rf"another version of the SPI of formats.*{lacks}.*--upgrade {name}-lake"
    ):
        load_format(name)


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("nohook", "x = 1", "no function laketier_format with the mark @hookimpl"),
        ("wrongid", PLUGIN.format(identifier="another", extra=""), "its identifier is 'another'"),
        (
            "undeclared",
            PLUGIN.format(identifier="undeclared", extra="features = None"),
            "does not declare its features",
        ),
        ("oddkey", PLUGIN.format(identifier="oddkey", extra="features = {3: FULL}"), "declares the feature 3 as"),
        ("oddvalue", PLUGIN.format(identifier="oddvalue", extra="features = {'upsert': True}"), "'upsert' as True"),
        (
            "oddreason",
            PLUGIN.format(
                identifier="oddreason", extra="from laketier.spi import Support\n    features = {'upsert': Support(7)}"
            ),
            "is no text",
        ),
        (
            "odddelivery",
            PLUGIN.format(identifier="odddelivery", extra="delivery = 'exactly-once'"),
            "its delivery is 'exactly-once', not a DeliveryLevel",
        ),
        (
            "doubled",
            PLUGIN.format(identifier="doubled", extra="features = {'upsert': FULL, Feature.UPSERT: FULL}"),
            "names features twice, as Feature and as text: upsert",
        ),
        ("oddversion", PLUGIN.format(identifier="oddversion", extra="spi_version = '2'"), "spi_version is '2'"),
        ("typo", "from laketier.registry import hookimpl\n@hookimpl\ndef laketier_fromat(): ...", "unknown hook"),
    ],
)
def test_a_plugin_that_breaks_the_contract_says_how(site: Path, name: str, source: str, says: str) -> None:
    install(site, f"{name}-lake", name, source)
    with pytest.raises(PluginBroken, match=says):
        load_format(name)


def test_our_plugins_write_their_version_as_a_number() -> None:
    """The constant belongs to the laketier that is installed: with it, a plugin is always of the newest version."""
    root = Path(__file__).parents[3]
    folders = [root / "plugins", root / "core" / "laketier" / "connectors", root / "tests" / "third_party"]
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*/plugin.py")]
    assert len(texts) >= 10
    number = r"spi_version(: ClassVar\[int\]|, features)? = (\"\w+\", )?\d+(, FEATURES)?\n"
    assert all(re.search(number, text) for text in texts)
