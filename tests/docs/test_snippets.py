"""Every example in README, docs and the plugins' pages is run as it stands, on real Spark."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from snippets import snippets

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "tests" / "support" / "run_pages.py"
# Reports for other projects speak of those projects' code.
ALL_PAGES = [
    *(ROOT / page for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(ROOT.glob("plugins/*/README.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "upstream"),
]
PAGES = [
    str(page.relative_to(ROOT))
    for page in ALL_PAGES
    if any(snippet.language == "python" and snippet.why_not is None for snippet in snippets(page))
]
DEEP = {
    "docs/tutorial.md",
    "docs/tutorial-search.md",
    "docs/howto/cluster.md",
    "docs/howto/foreach-batch.md",
    "docs/howto/indexes.md",
    "docs/howto/primary-keys.md",
    "docs/howto/reading.md",
    "docs/howto/schemas.md",
    "docs/howto/search.md",
    "docs/howto/service.md",
    "docs/howto/stories.md",
}
"""Most start several jobs or drivers of Spark. Other tests do what their examples do."""
CORE = ROOT / "core" / "laketier"
RUN = {"python", "bash"}
SHOWN = {"mermaid", "text"}


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> dict[str, str | None]:
    """What became of each page that is asked for, in one run: they share a JVM."""
    mine = [
        item
        for item in request.session.items
        if getattr(item, "originalname", "") == test_the_examples_of_a_page_run.__name__
    ]
    return run_pages(*(ROOT / item.callspec.params["page"] for item in mine))


def run_pages(*pages: Path) -> dict[str, str | None]:
    done = subprocess.run([sys.executable, str(RUNNER), *map(str, pages)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.spark
@pytest.mark.timeout(1200)  # the first one waits for the pages of all
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.deep) if page in DEEP else page for page in PAGES]
)
def test_the_examples_of_a_page_run(page: str, results: dict[str, str | None]) -> None:
    failure = results[str(ROOT / page)]
    assert failure is None, failure


BROKEN = {
    "nothing is defined": ("```python\nspark.range(1)\n```\n", "name 'spark' is not defined"),
    "nothing is imported": ("```python\nPath('landing')\n```\n", "name 'Path' is not defined"),
    "a package does not bring its parts": (
        "```python\nimport laketier\n\nlaketier.spark.get_or_create()\n```\n",
        "module 'laketier' has no attribute 'spark'",
    ),
    "a block that fails": ("```python\nassert 1 == 2\n```\n", "AssertionError"),
    "a command that fails": ("```bash\nlaketier formats --no-such\n```\n", "exit code 2"),
    "a command of others": ("```bash\npip list\n```\n", "excuse its block"),
}


def test_a_page_that_is_not_complete_fails(tmp_path: Path) -> None:
    for name, (text, _) in BROKEN.items():
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    # What one page did is gone for the next: this one is run first.
    (tmp_path / "first.md").write_text("```python\nfrom pathlib import Path\n\nspark = Path('here')\n```\n")
    found = run_pages(tmp_path / "first.md", *(tmp_path / f"{name}.md" for name in BROKEN))
    assert found.pop(str(tmp_path / "first.md")) is None
    for name, (_, expected) in BROKEN.items():
        assert expected in (found[str(tmp_path / f"{name}.md")] or "it ran"), name


def test_each_name_of_a_page_is_defined_before_its_use(tmp_path: Path) -> None:
    """Of the deep pages, too: this runs nothing."""
    for page in PAGES:
        (tmp_path / f"{page.replace('/', '.')}.py").write_text(python_of(ROOT / page), encoding="utf-8")
    assert undefined(tmp_path) == []


def test_an_undefined_name_is_found(tmp_path: Path) -> None:
    lost = {name for name, (_, why) in BROKEN.items() if "not defined" in why or "no attribute" in why}
    for name in lost:
        (tmp_path / f"{name}.md").write_text(BROKEN[name][0], encoding="utf-8")
        (tmp_path / f"{name}.py").write_text(python_of(tmp_path / f"{name}.md"), encoding="utf-8")
    found = "\n".join(undefined(tmp_path))
    assert all(f"{name}.py:2:" in found or f"{name}.py:4:" in found for name in lost), found


def python_of(page: Path) -> str:
    """The examples of ``page`` as one module, each on its own line of the page."""
    lines = [""] * len(page.read_text(encoding="utf-8").splitlines())
    for snippet in snippets(page):
        if snippet.language == "python" and snippet.why_not is None:
            code = snippet.code.splitlines()
            lines[snippet.line - 1 : snippet.line - 1 + len(code)] = code
    return "\n".join(lines) + "\n"


def undefined(folder: Path) -> list[str]:
    ruff = [str(Path(sys.executable).with_name("ruff")), "check", "--isolated", "--no-cache", "--output-format=concise"]
    done = subprocess.run([*ruff, "--select=F821", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = [line for line in done.stdout.splitlines() if "F821" in line]
    for file in sorted(folder.glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        imported = {
            (each.name, node.lineno) for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "laketier":
                part = f"laketier.{node.attr}"
                a_module = (CORE / node.attr).is_dir() or (CORE / f"{node.attr}.py").exists()
                if a_module and not any(name == part and line <= node.lineno for name, line in imported):
                    found.append(f"{file.name}:{node.lineno}: {part} is not imported")
    return found


def test_there_are_pages_with_examples() -> None:
    assert "README.md" in PAGES
    assert "docs/tutorial.md" in PAGES


def test_blocks_are_run_or_written_or_excused() -> None:
    silent = [
        f"{page.relative_to(ROOT)}:{snippet.line}"
        for page in ALL_PAGES
        for snippet in snippets(page)
        if snippet.why_not is None and snippet.title is None and snippet.language not in RUN | SHOWN
    ]
    assert not silent, f"neither run nor excused: {silent}"
