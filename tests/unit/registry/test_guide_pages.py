"""The pages that errors of plugins name are where the user has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from laketier.registry import pages
from laketier.registry.checks import broken
from laketier.registry.groups import FORMATS, SOURCES, InstalledPlugin, PluginGroup


@pytest.mark.parametrize("group", [FORMATS, SOURCES])
def test_a_broken_plugin_names_the_page_of_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: PluginGroup
) -> None:
    monkeypatch.setattr(pages, "_CHECKOUT", tmp_path / "none")
    monkeypatch.setattr(pages, "_DOCUMENTS", tmp_path)
    (tmp_path / "docs/authors").mkdir(parents=True)
    (tmp_path / group.guide).touch()
    offer = InstalledPlugin("x", "x-lake", "1.0", "x_lake.plugin:plugin", group)
    assert f"and at {tmp_path / group.guide}." in str(broken(offer, "it is"))
