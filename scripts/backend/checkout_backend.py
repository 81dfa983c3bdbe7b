"""Builds the distribution `laketier` with hatchling. In a checkout its extras name the plugins beside it.

pip knows no workspace: for ``pip install ".[kafka]"`` it would look for laketier-kafka on an index. So a wheel that is
built in a checkout names the folders of the plugins, as direct references. A wheel that is built from an sdist, which
has no plugins, names the distributions, as on an index. So does an editable installation, which uv makes.

The functions are hooks of PEP 517. None prepares metadata alone, so that frontends take it from the wheel.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any

from hatchling.build import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)
from hatchling.build import (
    build_wheel as _build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
_PLUGIN = re.compile(r"^Requires-Dist: laketier-(\w+);", re.MULTILINE)


def build_wheel(directory: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """The wheel's name in ``directory``."""
    name: str = _build_wheel(directory, settings, metadata)
    if PLUGINS.is_dir():
        _rewrite(Path(directory, name))
    return name


def _rewrite(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = {entry: archive.read(entry) for entry in archive.infolist()}
    [metadata] = [entry for entry in files if entry.filename.endswith(".dist-info/METADATA")]
    [record] = [entry for entry in files if entry.filename.endswith(".dist-info/RECORD")]
    head, blank, description = files[metadata].decode().partition("\n\n")
    files[metadata] = f"{_PLUGIN.sub(_beside, head)}{blank}{description}".encode()
    files[record] = re.sub(
        rf"^{re.escape(metadata.filename)},.*$",
        f"{metadata.filename},{_digest(files[metadata])},{len(files[metadata])}",
        files[record].decode(),
        flags=re.MULTILINE,
    ).encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, content in files.items():
            archive.writestr(entry, content)


def _beside(match: re.Match[str]) -> str:
    folder = PLUGINS / match[1]
    return f"Requires-Dist: laketier-{match[1]} @ {folder.as_uri()} ;" if folder.is_dir() else match[0]


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
