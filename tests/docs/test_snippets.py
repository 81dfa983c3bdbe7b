"""Every example in README and docs is run, on real Spark."""

from __future__ import annotations

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
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "upstream"),
]
PAGES = [
    str(page.relative_to(ROOT))
    for page in ALL_PAGES
    if any(snippet.language == "python" and snippet.why_not is None for snippet in snippets(page))
]
RUN = {"python", "bash"}
SHOWN = {"text"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    done = subprocess.run(
        [sys.executable, str(RUNNER), *(str(ROOT / page) for page in PAGES)],
        cwd=tmp_path_factory.mktemp("pages"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.spark
@pytest.mark.timeout(1200)  # the first one waits for the pages of all
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page: str, results: dict[str, str | None]) -> None:
    failure = results[str(ROOT / page)]
    assert failure is None, failure


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
