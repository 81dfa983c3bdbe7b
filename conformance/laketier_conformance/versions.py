"""What a run rests on: the versions of a plugin's libraries, of laketier, of Python and of the system."""

from __future__ import annotations

import importlib.metadata
import platform
import re

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def versions(distribution: str | None) -> dict[str, str]:
    """Versions by name. ``distribution`` offers the plugin; those that it depends on are its libraries."""
    told = {"python": platform.python_version(), "system": _system()}
    for name in ["laketier", "pyarrow", "pytest", *([distribution] if distribution else []), *_libraries(distribution)]:
        try:
            told[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return told


def _system() -> str:
    """Without the name of a kernel's build, which says more of a machine than of a run."""
    return f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver()) or 'libc unknown'}"


def _libraries(distribution: str | None) -> list[str]:
    try:
        wanted = importlib.metadata.requires(distribution) if distribution else None
    except importlib.metadata.PackageNotFoundError:
        return []
    names = (_NAME.match(line) for line in wanted or () if "extra ==" not in line)
    return sorted(match[0] for match in names if match is not None)
