"""What became of each guard when it was last taken away: kept beside the page of the documentation that is made of it.

A run in pieces tells of each guard at a commit of its own. A row whose guard, file or tests are others in the list by
now tells nothing of the guard, and it is left."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from laketier_verification.guards.listed import Guard


@dataclass(frozen=True)
class Taken:
    """``test``: the first that failed; empty: nobody noticed. ``digest`` is that of the guard's entry in the list."""

    guard: str
    file: str
    test: str
    commit: str
    date: str
    digest: str


def digest_of(guard: Guard) -> str:
    told = json.dumps([guard.file, guard.remove, guard.put, guard.tests])
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def recorded(file: Path) -> dict[str, Taken]:
    """By the guard's name; none where there is no file."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {entry["guard"]: Taken(**entry) for entry in told}


def is_left(guard: Guard, record: Mapping[str, Taken]) -> bool:
    """Whether nothing noticed it, or nobody took it away as it is in the list."""
    taken = record.get(guard.name)
    return taken is None or not taken.test or taken.digest != digest_of(guard)


def keep(page: Path, guards: Sequence[Guard], record: Mapping[str, Taken], new: Iterable[Taken]) -> dict[str, Taken]:
    """Write the record with the new ones, and the page. Guards that are no longer listed go. Returns the record."""
    known = {**record, **{taken.guard: taken for taken in new}}
    kept = {guard.name: known[guard.name] for guard in guards if guard.name in known}
    rows = [asdict(taken) for taken in kept.values()]
    file_of(page).write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(_page(guards, kept), encoding="utf-8")
    return kept


def file_of(page: Path) -> Path:
    return page.with_suffix(".json")


def _page(guards: Sequence[Guard], record: Mapping[str, Taken]) -> str:
    left = [guard.name for guard in guards if is_left(guard, record)]
    noticed = sum(bool(taken.test) for taken in record.values())
    rows = "\n".join(map(_row, record.values()))
    waiting = "".join(f"\n- {name}" for name in left)
    return f"""# Guards

`make test-guards` takes each of these out of a copy of the sources, and runs the tests that `tests/guards/guards.toml`
names. The first test that fails is run once more with the guard in its place, and has to pass then. Written by
`make test-guards ARGS="--left --docs docs/proof/guards.md"`, which takes those that are left, in pieces if need be:
**of {len(guards)} guards {len(record)} were taken away, and {noticed} were noticed**. The last column says when.

| guard | in | the first test that fails without it | taken away |
|---|---|---|---|
{rows}

## Left

{f"Nobody took these away as they are in the list now:{chr(10)}{waiting}" if left else "None."}
"""


def _row(taken: Taken) -> str:
    return f"| {taken.guard} | `{taken.file}` | {_test(taken)} | {taken.date}{_short(taken.commit)} |"


def _test(taken: Taken) -> str:
    """Without its folder, and without what would end the cell."""
    path, colons, name = taken.test.partition("::")
    short = f"{path.rpartition('/')[2]}{colons}{name}" if colons else taken.test
    return f"`{short.replace('|', '-')}`" if short else "**nobody**"


def _short(commit: str) -> str:
    whole, dash, dirty = commit.partition("-")
    return f", {whole[:8]}{dash}{dirty}" if commit else ""
