"""Pages are found, and say what the code says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from laketier.cli.app import exit_code
from laketier.config.service import parse_service
from laketier.service.schedule import is_retryable
from laketier.spi import FeatureNotSupported, LaketierError, errors
from snippets import snippets

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import page_tables

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
OPERATE = DOCS / "howto" / "operate.md"
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+\.md)(?:#[\w-]+)?\)")
_ROW = re.compile(r"^\| `(?P<error>\w+)` \| (?P<code>\d) \| (?P<service>stops|tried again) \| ", re.MULTILINE)
_METRIC = re.compile(r"laketier_[a-z_]+")


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


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in page_tables.marked()])
def test_the_tables_of_a_page_are_those_of_the_code(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text == page_tables.filled(ROOT / page, text), "run make pages, and look at what changed"


READABLE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
READABLE += [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("plugins/*/README.md"))]
_ANY_LINK = re.compile(r"\]\((?P<target>(?!\w+:)[^)#\s]*)(?:#(?P<anchor>[\w-]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def test_all_links_of_a_checkout_lead_somewhere() -> None:
    lost = []
    for page in READABLE:
        for match in _ANY_LINK.finditer(_prose(page)):
            target = page.parent.joinpath(match["target"]).resolve() if match["target"] else page
            there = target.exists() and (match["anchor"] is None or match["anchor"] in _anchors(target))
            lost += [] if there else [f"{page.relative_to(ROOT)}: {match[0]}"]
    assert not lost


FROM_AN_INDEX = re.compile(r"pip install(?: +-\S+)* +['\"]?laketier\b[^\n`]*")


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    """Nobody knows who would offer laketier there."""
    code = [file for folder in ("core", "conformance", "plugins") for file in (ROOT / folder).rglob("*.py")]
    pages = [page for page in READABLE if page.parent.name != "adr"]
    found = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in [*pages, *code]
        for match in FROM_AN_INDEX.finditer(file.read_text(encoding="utf-8"))
    ]
    assert not found


def test_each_page_of_a_checkout_has_a_text() -> None:
    """What only the site fills in is nothing to those who read a checkout."""
    bare = [
        str(page.relative_to(ROOT))
        for page in READABLE
        if not [each for each in _prose(page).splitlines()[1:] if re.match(r"[\w`|*\[-].*\w", each)]
    ]
    assert not bare


def _prose(page: Path) -> str:
    return re.sub(r"^ *```.*?^ *```$|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """As mkdocs and GitHub make them of headings."""
    texts = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower()) for text in texts}


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


ERRORS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, LaketierError) and kind is not LaketierError
}


def test_the_runbook_has_each_error_once() -> None:
    rows = [match["error"] for match in _ROW.finditer(OPERATE.read_text(encoding="utf-8"))]
    assert sorted(rows) == sorted(ERRORS)


@pytest.mark.parametrize("row", list(_ROW.finditer(OPERATE.read_text(encoding="utf-8"))), ids=lambda row: row["error"])
def test_the_runbook_says_what_the_code_does(row: re.Match[str]) -> None:
    kind = ERRORS[row["error"]]
    error = kind("x", format="y", reason="z") if kind is FeatureNotSupported else kind("x")
    assert int(row["code"]) == exit_code(error)
    assert (row["service"] == "tried again") == is_retryable(error)


def test_the_page_on_operation_names_metrics_that_exist() -> None:
    known = set(_METRIC.findall((DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")))
    assert not set(_METRIC.findall(OPERATE.read_text(encoding="utf-8"))) - known


def test_the_service_of_the_manifest_is_one() -> None:
    (manifest,) = (each.code for each in snippets(OPERATE) if each.title == "laketier.yaml")
    config, deployment = yaml.safe_load_all(manifest)
    service = parse_service(yaml.safe_load(config["data"]["service.yaml"]), origin="the manifest")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > service.grace
