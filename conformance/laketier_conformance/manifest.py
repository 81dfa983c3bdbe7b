"""The tests that make up the suite, as a list that is committed: a run that lost some of them is not conformant."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MANIFEST = Path(__file__).with_name("MANIFEST")
_PACKAGE = Path(__file__).parent.name


def expected_tests() -> tuple[str, ...]:
    """The names of all tests, such as ``test_catalog.py::test_drop``, of all lanes."""
    lines = MANIFEST.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def name_of(nodeid: str) -> str | None:
    """A node id without the way to the suite, which differs between installations; None for tests of others."""
    _, found, tail = nodeid.rpartition(f"{_PACKAGE}/")
    return tail if found and tail.startswith("test_") else None


def collected_tests(format: str) -> tuple[str, ...]:
    """The names of all tests as pytest finds them, with any installed format. Starts a pytest of its own."""
    command = [sys.executable, "-m", "pytest", "--pyargs", _PACKAGE, f"--lake-format={format}", "--collect-only", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=MANIFEST.parents[1])
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    names = (name_of(line.strip()) for line in done.stdout.splitlines() if "::" in line)
    return tuple(sorted(name for name in names if name is not None))


def main() -> None:
    """``python -m laketier_conformance.manifest FORMAT``: write the MANIFEST anew."""
    head = "# The tests of the suite. Written by `python -m laketier_conformance.manifest FORMAT`.\n"
    MANIFEST.write_text(head + "".join(f"{name}\n" for name in collected_tests(sys.argv[1])), encoding="utf-8")


if __name__ == "__main__":
    main()
