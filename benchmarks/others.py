"""Processes that build indexes with another project's library, in that project's own environment."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def environment(more: Mapping[str, str]) -> Iterator[None]:
    """Set variables for processes that are started meanwhile."""
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def other(
    python: Path, engine: str, location: str, column: str, options: Mapping[str, Any], more: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A process that builds with another library. ``more``: of its environment."""
    script = Path(__file__).with_name("foreign_indexing.py")
    command = [str(python), str(script), engine, location, column, json.dumps(dict(options))]
    quiet = {"stderr": subprocess.DEVNULL, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with environment(more):
        child: subprocess.Popen[str] = subprocess.Popen(command, **quiet)
    _until(child, "ready")
    yield child
    child.communicate()


def told(child: subprocess.Popen[str]) -> None:
    """Build once."""
    assert child.stdin is not None
    child.stdin.write("build\n")
    child.stdin.flush()
    _until(child, "built")


def _until(child: subprocess.Popen[str], word: str) -> None:
    """Read what the child says up to ``word``; libraries write to its output, too."""
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == word:
            return
    raise RuntimeError(f"the process ended before it said {word!r}")
