"""What the site shows otherwise than a checkout: pages of plugins in full, and no links to files that it lacks."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_README = re.compile(r"plugins/(?P<name>\w+)/README\.md")
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]+)\]\((?P<target>(?!\w+:)[^)#\s]+)(?P<anchor>#[\w-]+)?\)")


def on_config(config: Any, **_: Any) -> Any:
    """Called by mkdocs once: drawings in Mermaid become drawings."""
    from pymdownx.superfences import fence_code_format

    fences = [{"name": "mermaid", "class": "mermaid", "format": fence_code_format}]
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = fences
    return config


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page."""
    here = f"docs/{page.file.src_uri}"
    readme = ROOT / "plugins" / Path(here).stem / "README.md"
    if Path(here).parent.name == "howto" and readme.exists() and f"plugins/{readme.parent.name}/README.md" in markdown:
        return _of_the_site(readme.read_text(encoding="utf-8"), f"plugins/{readme.parent.name}/README.md", here)
    return _of_the_site(markdown, here, here)


def _of_the_site(markdown: str, origin: str, shown: str) -> str:
    """``markdown`` of the file ``origin``, with its links as they are on the page ``shown``."""

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match["target"]))
        if (plugin := _README.fullmatch(target)) and (ROOT / "docs" / "howto" / f"{plugin['name']}.md").exists():
            target = f"docs/howto/{plugin['name']}.md"
        if not target.startswith("docs/"):
            return match["text"]
        there = posixpath.relpath(target, posixpath.dirname(shown))
        return f"{match['image']}[{match['text']}]({there}{match['anchor'] or ''})"

    return _LINK.sub(link, markdown)
