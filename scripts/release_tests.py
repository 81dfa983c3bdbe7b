"""Runs every test there is, in pieces, and goes on where it ended: what `make test-all` does before a release.

    python scripts/release_tests.py            the pieces that are not green at this commit
    python scripts/release_tests.py deep lint  only these
    python scripts/release_tests.py --list     what is done, and what is left
    python scripts/release_tests.py --fresh    all of them, whatever was green

A piece that was green at this commit, in a clean tree, is not run again. In a tree with changes all are run, and
nothing is remembered. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / "artifacts" / "test-all"
WRITTEN = ("docs/proof/faults.md", "docs/proof/versions.md")
"""Pages that a piece writes anew: a change of them is no change of what was tested."""

# The quick ones first: what is wrong shows early.
PIECES: Mapping[str, Sequence[str]] = {
    "lint": ("make", "lint"),
    "docs": ("make", "docs"),
    "isolated": ("make", "test-isolated"),
    "strangers": ("make", "test-strangers"),
    "conformance": ("make", "test-conformance"),
    "tests": ("make", "test-rest"),
    "compat": ("make", "test-compat"),
    "matrix": ("make", "test-matrix"),
    "deep": ("make", "test-deep"),
    "model": ("make", "model", "ARGS=--full"),
    "guards": ("make", "test-guards"),
    "faults": ("make", "test-faults"),
}


@dataclass(frozen=True)
class Checkout:
    """The tree that is tested."""

    folder: Path

    def commit(self) -> str | None:
        """The commit, or None where the tree has changes, so that no commit says what was tested."""
        left_out = [f":(exclude){page}" for page in WRITTEN]
        changes = self._git("status", "--porcelain", "--", ".", *left_out)
        return None if changes else self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"release_tests: {self.folder} is no git checkout: {done.stderr.strip()}")
        return done.stdout


@dataclass(frozen=True)
class Remembered:
    """What was green, and where: a file for each piece."""

    folder: Path

    def seconds(self, piece: str, commit: str | None) -> float | None:
        """How long the piece took when it was green at that commit; None: it was not."""
        try:
            told = json.loads((self.folder / f"{piece}.json").read_text(encoding="utf-8"))
            return float(told["seconds"]) if commit is not None and told["commit"] == commit else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # there is none, or it was cut off while it was written: the piece is run again

    def keep(self, piece: str, commit: str, seconds: float) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        told = {"piece": piece, "commit": commit, "seconds": round(seconds, 1)}
        (self.folder / f"{piece}.json").write_text(json.dumps(told) + "\n", encoding="utf-8")

    def forget(self, piece: str) -> None:
        (self.folder / f"{piece}.json").unlink(missing_ok=True)


def run(
    pieces: Mapping[str, Sequence[str]], checkout: Checkout, remembered: Remembered, *, fresh: bool = False
) -> list[str]:
    """Run what is left of the pieces, and go on after one that fails. Returns those that failed."""
    failed = []
    for number, (piece, command) in enumerate(pieces.items(), start=1):
        commit = checkout.commit()
        if not fresh and remembered.seconds(piece, commit) is not None:
            say(f"{number}/{len(pieces)} {piece}: green at this commit already")
            continue
        say(f"{number}/{len(pieces)} {piece}: {' '.join(command)}")
        remembered.forget(piece)
        started = time.monotonic()
        code = subprocess.run(command, cwd=checkout.folder, check=False).returncode
        seconds = time.monotonic() - started
        say(f"{number}/{len(pieces)} {piece}: {'green' if code == 0 else f'FAILED ({code})'} after {seconds:.0f} s")
        if code:
            failed.append(piece)
        elif commit is not None and checkout.commit() == commit:
            remembered.keep(piece, commit, seconds)
    return failed


def listed(pieces: Mapping[str, Sequence[str]], commit: str | None, remembered: Remembered) -> list[str]:
    """A line for each piece: done, with its time, or left."""
    lines = []
    for piece, command in pieces.items():
        seconds = remembered.seconds(piece, commit)
        done = "left" if seconds is None else f"done, {seconds:.0f} s"
        lines.append(f"{piece:<12} {done:<14} {' '.join(command)}")
    left = sum(remembered.seconds(piece, commit) is None for piece in pieces)
    where = f"at {commit[:12]}" if commit else "in a tree with changes, of which nothing is remembered"
    return [*lines, f"{len(pieces) - left} done, {left} left, {where}"]


def say(line: str) -> None:
    print(f"== {line}", flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="*", metavar="PIECE", help=f"of {', '.join(PIECES)}; none: all")
    parser.add_argument("--list", action="store_true", help="run nothing: say what is done, and what is left")
    parser.add_argument("--fresh", action="store_true", help="run also what was green at this commit")
    given = parser.parse_args(arguments)
    unknown = [piece for piece in given.pieces if piece not in PIECES]
    if unknown:
        parser.error(f"there is no piece {', '.join(unknown)}; there are {', '.join(PIECES)}")
    pieces = {piece: command for piece, command in PIECES.items() if not given.pieces or piece in given.pieces}
    checkout, remembered = Checkout(ROOT), Remembered(STATE)
    failed = [] if given.list else run(pieces, checkout, remembered, fresh=given.fresh)
    for line in listed(pieces, checkout.commit(), remembered):
        say(line)
    if failed:
        say(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
