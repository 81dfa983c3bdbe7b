"""The committed list of guards."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
GUARDS_FILE = ROOT / "tests/guards/guards.toml"


@dataclass(frozen=True)
class Guard:
    """One place in the sources, what is there without the guard, and the tests that must notice. ``needs``: ``java``
    for those on Spark."""

    name: str
    file: str
    remove: str
    put: str
    tests: str
    needs: str = ""

    def line(self) -> int:
        """Where it is. Raises `ValueError` unless it is there exactly once."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        if text.count(self.remove) != 1:
            raise ValueError(f"{self.name}: {self.file} has its text {text.count(self.remove)} times, not once")
        return text[: text.index(self.remove)].count("\n") + 1

    def without(self, text: str) -> str:
        """The source of its file, without it."""
        return text.replace(self.remove, self.put)


def guards() -> list[Guard]:
    """All of them, in the order of the list."""
    with GUARDS_FILE.open("rb") as file:
        return [Guard(**entry) for entry in tomllib.load(file)["guard"]]
