"""What became of the mutants of a target: a file that is appended to, so that a run goes on where another ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from laketier_verification.mutants.source import Key, Module, Mutant

KILLED, TIMED_OUT, SURVIVED, NOT_VIABLE = "killed", "timed out", "survived", "not viable"
NEAR = "survived so far"
"""The first tests did not notice; all the others are still to be asked."""


@dataclass(frozen=True)
class Result:
    """``by``: the test that noticed. ``tests``: how many were asked. ``digest`` is that of its function: with another
    text the result says nothing."""

    key: Key
    digest: str
    line: int
    outcome: str
    by: str = ""
    tests: int = 0
    seconds: float = 0.0

    @property
    def noticed(self) -> bool:
        """A test failed, or did not end."""
        return self.outcome in (KILLED, TIMED_OUT)


class Results:
    """The file. Later lines of the same mutant replace earlier ones."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._found: dict[Key, Result] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            try:
                document = json.loads(line)
            except ValueError:
                continue  # a run was killed as it wrote its last line
            result = Result(**document | {"key": Key(**document["key"])})
            self._found[result.key] = result

    def add(self, result: Result) -> None:
        """Remember one, durably enough to go on after a kill."""
        self._found[result.key] = result
        self._file.parent.mkdir(parents=True, exist_ok=True)
        torn = self._file.exists() and not self._file.read_bytes().endswith(b"\n")
        with self._file.open("a", encoding="utf-8") as file:
            file.write("\n" * torn + json.dumps(asdict(result)) + "\n")

    def forget(self, keys: Iterable[Key]) -> None:
        """As if these had never been tried, until the process ends."""
        for key in keys:
            self._found.pop(key, None)

    def of(self, modules: Mapping[str, Module]) -> Iterator[Result]:
        """Those that hold for the sources as they are, at the lines where they are now."""
        for module in modules.values():
            for mutant in module.mutants:
                result = self._found.get(mutant.key)
                if result is not None and result.digest == module.digest(mutant.key.function):
                    yield replace(result, line=mutant.line)


def drawn(mutants: Iterable[Mutant], seed: int) -> list[Mutant]:
    """In an order by chance, the same for the same seed and source."""
    return sorted(mutants, key=lambda mutant: mutant.key.order(seed))
