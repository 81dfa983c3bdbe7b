"""Backups of a system that is a folder, as harnesses take them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path


def copied(folder: Path, kept: Path) -> Callable[[], None]:
    """Copy a folder. What is returned puts it back."""
    shutil.copytree(folder, kept)

    def back() -> None:
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)

    return back
