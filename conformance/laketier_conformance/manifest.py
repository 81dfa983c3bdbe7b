"""The tests that make up the suite, as a list that is committed: a run that lost some of them is not conformant."""

from __future__ import annotations

import difflib
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

MANIFEST = Path(__file__).with_name("MANIFEST")


def expected_tests(manifest: Path = MANIFEST) -> tuple[str, ...]:
    """The names of all tests, such as ``test_catalog.py::test_drop``, of all lanes."""
    lines = manifest.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def name_of(path: Path, nodeid: str, folder: Path = MANIFEST.parent) -> str | None:
    """What the suite calls one of its tests; None for tests of others.

    The path tells whose a test is. A node id does not: pytest makes it relative to its root, or to what it was called
    with where that lies elsewhere, so it may or may not name this package.
    """
    _, _, test = nodeid.partition("::")
    if not test or not path.is_relative_to(folder):
        return None
    return f"{path.relative_to(folder).as_posix()}::{test}"


def formats_named(arguments: Iterable[str], formats: Collection[str]) -> dict[str, list[str]]:
    """By test, the formats with which pytest's arguments name it. Empty unless each names a test of a file with its
    format, so that all tests have to be made."""
    found: dict[str, list[str]] = {}
    for argument in arguments:
        path, _, parameters = argument.partition("[")
        test = Path(path).name
        whose = [each for each in formats if parameters.startswith((f"{each}-", f"{each}]"))]
        if ".py::" not in test or not whose:
            return {}
        found.setdefault(test, []).extend(whose)
    return {test: list(dict.fromkeys(whose)) for test, whose in found.items()}


def chosen_tests(names: Iterable[str], expected: Collection[str], option: str = "--lake-test") -> frozenset[str]:
    """The tests that were asked for by name, or by that of their file; none for all. Raises `pytest.UsageError`."""
    chosen: set[str] = set()
    files = {test.partition("::")[0] for test in expected}
    for name in names:
        found = {test for test in expected if name in (test, test.partition("::")[0])}
        if not found:
            close = difflib.get_close_matches(name, (*expected, *files), n=1, cutoff=0.5)
            raise pytest.UsageError(
                f"{option}={name}: the suite has no such test"
                + (f". Did you mean {close[0]}?" if close else ": its MANIFEST lists them")
            )
        chosen |= found
    return frozenset(chosen)


def collected_tests(named: str, folder: Path = MANIFEST.parent) -> tuple[str, ...]:
    """The names of all tests as pytest finds them, with what ``named``, an option, says: any installed format. Starts
    a pytest of its own."""
    root = folder.parent
    command = [sys.executable, "-m", "pytest", "--pyargs", folder.name, f"--rootdir={root}", "--collect-only", "-q"]
    done = subprocess.run([*command, named], capture_output=True, text=True, check=False, cwd=root)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    nodeids = [line.strip() for line in done.stdout.splitlines() if "::" in line]
    names = (name_of(root / nodeid.partition("::")[0], nodeid, folder) for nodeid in nodeids)
    return tuple(sorted(name for name in names if name is not None))


def write(manifest: Path, by: str, named: str) -> None:
    """Write a MANIFEST anew. ``by``: the command that does so."""
    tests = collected_tests(named, manifest.parent)
    head = f"# The tests of the suite. Written by `{by}`.\n"
    manifest.write_text(head + "".join(f"{name}\n" for name in tests), encoding="utf-8")


def main() -> None:
    """``python -m laketier_conformance.manifest FORMAT``: write the MANIFEST anew."""
    write(MANIFEST, "python -m laketier_conformance.manifest FORMAT", f"--lake-format={sys.argv[1]}")


if __name__ == "__main__":
    main()
