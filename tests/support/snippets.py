"""Code blocks of README and docs, and how they are run.

In the order of a page: ``python`` blocks share one namespace, which is empty at first; the commands of ``bash`` blocks
run line by line; a block with a title (```` ```yaml title="job.yaml" ````) is written to that file. A
block is left out only by a comment before it: ``<!-- not run: why -->``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?P<skip><!-- not run: (?P<why>[^>]+?) -->\n+)?"
    r"^(?P<indent> *)```(?P<language>\w+)(?P<rest>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Snippet:
    language: str
    code: str
    line: int
    title: str | None = None
    why_not: str | None = None


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        title = _TITLE.search(match["rest"])
        indent = match["indent"]
        code = "".join(line.removeprefix(indent) for line in match["code"].splitlines(keepends=True))
        line = text.count("\n", 0, match.start("code")) + 1
        found.append(Snippet(match["language"], code, line, title and title[1], match["why"]))
    return found
