"""What must be on the device before which step of a commit to local files, as rules on recorded operations."""

from __future__ import annotations

from collections.abc import Sequence

from laketier_verification.powercut.trace import Op

STAGING = "/__in_progress"
MANIFESTS = "/_laketier_manifests/"


def violations(ops: Sequence[Op]) -> list[str]:
    """The rules that a committed round broke. ``ops`` end with its acknowledgement. Raises AssertionError when they
    hold no such round."""
    assert ops[-1].kind == "mark", "the round was not acknowledged"
    (commit,) = [n for n, op in enumerate(ops) if op.kind == "link" and _is_manifest(op.other)]
    staged = {op.path for op in ops if op.kind == "create" and _folder(op.path).endswith(STAGING)}
    assert staged, "the round staged nothing"
    manifests = _folder(ops[commit].other)
    broken = []
    for path in sorted(staged):
        written = _last(ops, "write", path)
        if not _synced(ops, path, written, commit):
            broken.append(f"{path} is not synced before the manifest names it")
        if not _synced(ops, _folder(path), _first(ops, "create", path), commit):
            broken.append(f"the folder of {path} is not synced before the manifest names it")
        broken += _moved(ops, path)
    if not _synced(ops, ops[commit].path, _last(ops, "write", ops[commit].path), commit):
        broken.append("the manifest is not synced before it gets its name")
    moves = [n for n, op in enumerate(ops) if op.kind == "link" and op.path in staged]
    if not _synced(ops, manifests, commit, min(moves)):
        broken.append("the manifest's name is not synced before files are moved and the round is acknowledged")
    return broken


def _moved(ops: Sequence[Op], staged: str) -> list[str]:
    """A file has its final name for good before it loses the one it was staged under."""
    (moved,) = [n for n, op in enumerate(ops) if op.kind == "link" and op.path == staged]
    (unlinked,) = [n for n, op in enumerate(ops) if op.kind == "unlink" and op.path == staged]
    folder = _folder(ops[moved].other)
    broken = []
    if not _synced(ops, folder, moved, unlinked):
        broken.append(f"{ops[moved].other} is not synced before {staged} is unlinked")
    made = [n for n, op in enumerate(ops) if op.kind == "mkdir" and op.path == folder]
    if made and not _synced(ops, _folder(folder), made[0], unlinked):
        broken.append(f"the new folder {folder} is not synced before {staged} is unlinked")
    return broken


def _synced(ops: Sequence[Op], path: str, after: int, before: int) -> bool:
    return any(op.kind == "sync" and op.path == path for op in ops[after + 1 : before])


def _first(ops: Sequence[Op], kind: str, path: str) -> int:
    return next(n for n, op in enumerate(ops) if op.kind == kind and op.path == path)


def _last(ops: Sequence[Op], kind: str, path: str) -> int:
    return max(n for n, op in enumerate(ops) if op.kind == kind and op.path == path)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _is_manifest(path: str) -> bool:
    return MANIFESTS in path and path.rpartition("/")[2].removesuffix(".json").isdecimal()
