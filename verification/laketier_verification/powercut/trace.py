"""The operations of a process on files below a folder, in order, as `strace` saw them."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CALLS = (
    "openat,open,creat,lseek,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync_file_range,link,linkat,symlink,"
    "symlinkat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,truncate,ftruncate,fallocate,copy_file_range,mmap,close"
)
_CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) = (?P<result>-?\d+)(?:<(?P<opened>.*)>)?(?: .*)?\Z", re.DOTALL)
_HEX = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_DESCRIPTOR = re.compile(r"(\d+)<((?:\\x[0-9a-f]{2}|[^<>])*)>(\(deleted\))?")
_NAME = re.compile(r'(?:(?:\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2}|[^<>])*)>, )?"((?:\\x[0-9a-f]{2})*)"')
"""A name, and the folder just before it that it is relative to: a call that takes two names takes two folders."""


@dataclass(frozen=True)
class Op:
    """One operation. ``kind``: create, write, copy (``size`` bytes at ``offset``, of the same place in the file
    ``other``), sync, link, unlink, rename, mkdir, rmdir or mark. Paths are absolute.
    A sync's ``site`` is the code that asked for it, where the process said so; a mark's ``site`` is its text."""

    kind: str
    path: str
    other: str = ""
    offset: int = 0
    data: bytes = b""
    size: int = 0
    site: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, self.path, self.other, self.site)))


@functools.cache
def why_not() -> str | None:
    """Why system calls can't be recorded here; None when they can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-f", "-e", "trace=fsync", "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"strace can't trace here: {tried.stderr.strip()[-200:]}"


def traced(arguments: Sequence[str], folder: Path, marks: Path, environment: Mapping[str, str]) -> list[Op]:
    """Run Python with these arguments, and return what it did below ``folder``. What it writes into the file ``marks``
    becomes marks, a line each; ``sync at …`` lines name the code of the next sync."""
    log = marks.with_suffix(".strace")
    command = ["strace", "-f", "--seccomp-bpf", "-y", "-xx", "-s", "16777216", "-e", f"trace={CALLS}", "-o", str(log)]
    done = subprocess.run(
        [*command, sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    if done.returncode:
        raise AssertionError(f"the traced process ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return list(_named(_operations(_lines(log), str(folder), str(marks))))


def _lines(log: Path) -> Iterator[tuple[str, str, str]]:
    """Finished calls: name, arguments, result. One that another thread interrupted counts when it ends."""
    begun: dict[str, str] = {}
    with open(log, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            thread, _, text = line.rstrip("\n").partition(" ")
            text = text.lstrip()
            if text.endswith("<unfinished ...>"):
                begun[thread] = text.removesuffix("<unfinished ...>").rstrip()
                continue
            if text.startswith("<... "):
                text = begun.pop(thread) + text.partition(" resumed>")[2]
            call = _CALL.match(re.sub(r"\) += ", ") = ", text))
            if call is not None and not call["result"].startswith("-"):
                yield call["name"], call["arguments"], call["result"]


def _operations(calls: Iterator[tuple[str, str, str]], folder: str, marks: str) -> Iterator[Op]:
    offsets: dict[str, int] = {}

    def is_inside(path: str) -> bool:
        return path == folder or path.startswith(f"{folder}/")

    for name, arguments, result in calls:
        texts = [bytes.fromhex(match.replace("\\x", "")) for match in _HEX.findall(arguments)]
        descriptors = [(number, _plain(path)) for number, path, _ in _DESCRIPTOR.findall(arguments)]
        at = descriptors[0] if descriptors else ("", "")
        if name in ("openat", "open", "creat"):
            offsets[result] = 0
            (path,) = _paths(arguments)
            if is_inside(path) and ("O_CREAT" in arguments or name == "creat" or "O_TRUNC" in arguments):
                yield Op("create", path, other="truncate" if "O_TRUNC" in arguments else "")
        elif name == "write" and at[1] == marks:
            yield from (Op("mark", "", site=line) for line in texts[0].decode().splitlines())
        elif name in ("fsync", "fdatasync", "lseek", "write", "pwrite64", "ftruncate", "fallocate"):
            if is_inside(at[1]):
                yield from _on_descriptor(name, at, texts, arguments, result, offsets)
        elif name == "copy_file_range":
            (_, source), (_, target) = descriptors
            if is_inside(target):
                begins = {int(offset) for offset in re.findall(r"\[(\d+)", arguments)}
                if not is_inside(source) or len(begins) != 1:
                    raise NotImplementedError(f"copy_file_range({arguments})")
                yield Op("copy", target, source, offset=begins.pop(), size=int(result))
        elif name not in ("close", "mmap"):
            paths = _paths(arguments)
            if any(map(is_inside, paths)):
                yield _on_names(name, paths, arguments)
        elif name == "mmap" and "PROT_WRITE" in arguments and "MAP_SHARED" in arguments and is_inside(at[1]):
            raise NotImplementedError(f"{at[1]} is written through memory")


def _on_descriptor(
    name: str, at: tuple[str, str], texts: list[bytes], arguments: str, result: str, offsets: dict[str, int]
) -> Iterator[Op]:
    number, path = at
    if name in ("fsync", "fdatasync"):
        yield Op("sync", path)
    elif name == "lseek":
        offsets[number] = int(result)
    elif name == "write":
        yield Op("write", path, offset=offsets[number], data=texts[0][: int(result)])
        offsets[number] += int(result)
    elif name == "pwrite64":
        yield Op("write", path, offset=int(arguments.rsplit(", ", 1)[1]), data=texts[0][: int(result)])
    else:
        raise NotImplementedError(f"{name} of {path}")


def _on_names(name: str, paths: list[str], arguments: str) -> Op:
    if not all(path.startswith("/") for path in paths):
        raise NotImplementedError(f"{name} with a relative path: {paths}")
    if name in ("link", "linkat", "rename", "renameat", "renameat2"):
        return Op("link" if name.startswith("link") else "rename", paths[0], paths[1])
    if name in ("unlink", "unlinkat"):
        return Op("rmdir" if "AT_REMOVEDIR" in arguments else "unlink", paths[0])
    if name in ("mkdir", "mkdirat"):
        return Op("mkdir", paths[0])
    if name == "rmdir":
        return Op("rmdir", paths[0])
    raise NotImplementedError(f"{name} of {paths}")


def _named(ops: Iterator[Op]) -> Iterator[Op]:
    """Give each sync the site that was announced just before it."""
    site = ""
    for op in ops:
        if op.kind == "mark" and op.site.startswith("sync at "):
            site = op.site.removeprefix("sync at ")
        elif op.kind == "sync":
            yield Op("sync", op.path, site=site)
            site = ""
        else:
            yield op


def _paths(arguments: str) -> list[str]:
    """The names in a call's arguments, each below the folder whose descriptor was given with it."""
    named = _NAME.findall(arguments)
    return [_absolute(bytes.fromhex(name.replace("\\x", "")).decode(), _plain(folder)) for folder, name in named]


def _absolute(path: str, folder: str) -> str:
    return path if path.startswith("/") or not folder else f"{folder}/{path}"


def _plain(path: str) -> str:
    return re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), path)
