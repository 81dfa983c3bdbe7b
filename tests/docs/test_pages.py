"""Pages are found, from the home page and from the menu."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+\.md)(?:#[\w-]+)?\)")


def test_the_home_page_leads_to_every_page() -> None:
    found, at_hand = {"index.md"}, ["index.md"]
    while at_hand:
        page = at_hand.pop()
        for match in _LINK.finditer((DOCS / page).read_text(encoding="utf-8")):
            target = (DOCS / page).parent.joinpath(match["target"]).resolve()
            name = str(target.relative_to(DOCS)) if target.is_relative_to(DOCS) else ""
            if name in PAGES - found:
                found.add(name)
                at_hand.append(name)
    assert not PAGES - found, f"no links lead there from docs/index.md: {sorted(PAGES - found)}"


def test_every_page_is_in_the_menu() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = set(_named(settings["nav"]))
    left_out = {page for page in PAGES for each in settings["not_in_nav"].split() if fnmatchcase(page, each)}
    assert listed <= PAGES, f"not there: {sorted(listed - PAGES)}"
    assert not left_out & listed, f"both in the menu and left out of it: {sorted(left_out & listed)}"
    assert not PAGES - listed - left_out, f"not in the menu: {sorted(PAGES - listed - left_out)}"
    assert all(Path(page).parent.name in ("adr", "upstream") for page in left_out)


def _named(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for each in entry.values() if isinstance(entry, dict) else entry:
            yield from _named(each)


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
