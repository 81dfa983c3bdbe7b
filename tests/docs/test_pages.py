"""Pages are found, and say what the code says."""

from __future__ import annotations

import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from laketier.cli.app import app, exit_code
from laketier.config.service import parse_service
from laketier.service.metrics import METRICS
from laketier.service.schedule import State, is_retryable
from laketier.spi import Feature, FeatureNotSupported, LaketierError, errors
from snippets import snippets

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import page_tables

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
OPERATE = DOCS / "howto" / "operate.md"
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+\.md)(?:#[\w-]+)?\)")
_ROW = re.compile(r"^\| `(?P<error>\w+)` \| (?P<code>\d) \| (?P<service>stops|tried again) \| ", re.MULTILINE)
_METRIC = re.compile(r"\blaketier_[a-z_]*[a-z]\b")


def test_the_home_page_leads_to_every_page() -> None:
    """Those of the menu at once, or through the index of their section; the others through that index."""
    first = _links("index.md")
    found = {"index.md", *first}.union(*(_links(page) for page in first if page.endswith("/index.md")))
    assert not PAGES - found, f"neither docs/index.md nor an index that it names leads to {sorted(PAGES - found)}"


def _links(page: str) -> set[str]:
    """The pages that ``page`` has a link to."""
    targets = [m["target"] for m in _LINK.finditer((DOCS / page).read_text(encoding="utf-8")) if ":" not in m["target"]]
    paths = [(DOCS / page).parent.joinpath(target).resolve() for target in targets]
    return {str(path.relative_to(DOCS)) for path in paths if path.is_relative_to(DOCS)}


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


_SHOWN = re.compile(r"^::: (?P<name>[\w.]+)$", re.MULTILINE)


def test_what_the_site_shows_of_the_code_is_there() -> None:
    """A name that moved breaks `make docs`."""
    names = [(page, match["name"]) for page in READABLE for match in _SHOWN.finditer(page.read_text(encoding="utf-8"))]
    assert len(names) > 10
    assert not [f"{page.name}: {name}" for page, name in names if not _exists(name)]


def _exists(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


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


def test_the_guide_has_a_section_for_each_error() -> None:
    text = (DOCS / "authors" / "refusals.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^### `(\w+)`$", text, re.MULTILINE)) == sorted(ERRORS)


def test_the_changelog_has_each_part_once() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for release in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        parts = re.findall(r"^### (\w+)$", release, re.MULTILINE)
        assert parts == [part for part in ("Added", "Changed", "Fixed") if part in parts], release.partition("\n")[0]


def test_the_guide_says_where_each_feature_is_refused() -> None:
    text = (DOCS / "authors" / "refusals.md").read_text(encoding="utf-8")
    section = text.partition("### `FeatureNotSupported`")[2].partition("###")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(name for row in rows for name in re.findall(r"`([\w-]+)`", row)) == sorted(
        each.value for each in Feature
    )


_FILE_OF_SUITE = re.compile(r"`(test_\w+)(?:\.py)?`")


def test_the_guide_names_files_of_the_suite() -> None:
    """Where a page says which test proves a step."""
    there = {path.stem for path in (ROOT / "conformance" / "laketier_conformance").glob("test_*.py")}
    pages = [DOCS / "authors" / name for name in ("guide.md", "depth.md", "publish.md")]
    named = {name for page in pages for name in _FILE_OF_SUITE.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 15
    assert named <= there


@pytest.mark.parametrize("row", list(_ROW.finditer(OPERATE.read_text(encoding="utf-8"))), ids=lambda row: row["error"])
def test_the_runbook_says_what_the_code_does(row: re.Match[str]) -> None:
    kind = ERRORS[row["error"]]
    error = kind("x", format="y", reason="z") if kind is FeatureNotSupported else kind("x")
    assert int(row["code"]) == exit_code(error)
    assert (row["service"] == "tried again") == is_retryable(error)


_SERIES = re.compile(r"(?P<name>laketier_[a-z_]+)(?:\{(?P<matchers>[^}]*)\})?")
LABELS = {name: set(labels) for name, _, labels, _ in METRICS}


def test_the_page_on_operation_names_metrics_that_exist() -> None:
    assert set(_METRIC.findall(OPERATE.read_text(encoding="utf-8"))) <= LABELS.keys()


def test_each_alert_asks_for_series_and_labels_that_exist() -> None:
    (text,) = (each.code for each in snippets(OPERATE) if each.title == "laketier-alerts.yaml")
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    for rule in rules:
        series = list(_SERIES.finditer(rule["expr"]))
        assert series, rule
        kept = {label for labels in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in labels.split(", ")}
        for each in series:
            asked = dict(re.findall(r'(\w+)="(\w+)"', each["matchers"] or ""))
            assert {*kept, *asked} <= LABELS[each["name"]], rule
            assert asked.get("state", "STOPPED") in list(State), rule
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= kept, rule


def test_the_commands_of_unit_and_manifest_are_ones() -> None:
    files = {each.title: each.code for each in snippets(OPERATE) if each.title}
    (unit,) = re.findall(r"^ExecStart=\S+ (.+)$", files["laketier.service"], re.MULTILINE)
    _, deployment = yaml.safe_load_all(files["laketier.yaml"])
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    options = [option for each in get_command(app).commands["serve"].params for option in each.opts]
    for words in (unit.split(), container["args"]):
        assert words[:2] == ["--verbose", "serve"]
        assert {word for word in words[2:] if word.startswith("--")} <= set(options)
    assert {name: each["port"] for name, each in _probes(container)} == {"readiness": "health", "liveness": "health"}


def _probes(container: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    ways = ("httpGet", "tcpSocket")
    probes = {name.removesuffix("Probe"): each for name, each in container.items() if name.endswith("Probe")}
    return [(name, each[way]) for name, each in probes.items() for way in ways if way in each]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_knows_each_setting_of_the_unit(tmp_path: Path) -> None:
    (unit,) = (each.code for each in snippets(OPERATE) if each.title == "laketier.service")
    said = {}
    for name, text in {"laketier": unit, "wrong": unit.replace("KillMode", "KillMod")}.items():
        file = tmp_path / f"{name}.service"
        file.write_text(text.replace("/srv/laketier/venv/bin/laketier", sys.executable), encoding="utf-8")
        done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True, check=False)
        said[name] = [line for line in done.stderr.splitlines() if file.name in line]
    assert said["laketier"] == []
    assert "KillMod" in said["wrong"][0]


def test_the_service_of_the_manifest_is_one() -> None:
    (manifest,) = (each.code for each in snippets(OPERATE) if each.title == "laketier.yaml")
    config, deployment = yaml.safe_load_all(manifest)
    service = parse_service(yaml.safe_load(config["data"]["service.yaml"]), origin="the manifest")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > service.grace
