"""A service that is brought to another version, and back."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

from laketier_verification.upgrade.shop import Shop
from laketier_verification.upgrade.versions import Version

_SERVE = ("--engine", "local")


_BEGIN_SECONDS = 120
_NEWER = "newer laketier"
"""Said by a former version of a state database that a newer one has brought to its version."""
_BACK = 5
"""The step after which the former version is met with what the newer one wrote."""


def _steps(old: Version, new: Version) -> tuple[tuple[str, Version, str], ...]:
    before, after = "is killed before a commit", "is killed after a commit"
    return (
        ("begins", old, ""),
        ("goes on", old, ""),
        (before, old, "publish.before=kill@2"),
        ("takes up", new, ""),
        ("goes on", new, ""),
        (before, new, "publish.before=kill@2"),
        ("takes up", old, ""),
        (after, old, "publish.after=kill@2"),
        ("takes up", new, ""),
        (after, new, "publish.after=kill@2"),
        ("takes up", old, ""),
        ("goes on", new, ""),
    )


def walk(old: Version, new: Version, shop: Shop) -> Iterator[str]:
    """Steps with what was found, ``fine`` or not."""
    own = shop.state.replace("service.db", "former.db")
    for number, (step, version, failpoints) in enumerate(_steps(old, new)):
        if step != "takes up":
            shop.land()
        code, said = version.run("serve", shop.file(), *_SERVE, "--until-idle", cwd=shop.folder, failpoints=failpoints)
        which = f"{number + 1}. {version.name} {step}: "
        if code == 2 and version is old and _NEWER in said:
            yield f"{which}refuses the state database, as it should. With one of its own:"
            arguments = ("serve", shop.file(own), *_SERVE, "--until-idle")
            code, said = version.run(*arguments, cwd=shop.folder, failpoints=failpoints)
        yield which + _judged(version is old and number > _BACK, code, said, shop, killed=bool(failpoints))


def _judged(back: bool, code: int, said: str, shop: Shop, *, killed: bool) -> str:
    if "Traceback" in said:
        return f"TRACEBACK\n{said}"
    if back and code == 1:
        # What it left out is taken up by the newer version, whose step counts.
        reasons = [line for line in said.splitlines() if line.startswith("  - ")]
        return "\n".join([f"refuses {len(reasons)} tables, by sentences: fine", *reasons[:1]]) if reasons else said
    if killed:
        return "killed: fine" if code == -9 else f"NOT KILLED: {code}\n{said}"
    return "; ".join([*([f"exit code {code}\n{said}"] if code else []), *shop.wrong()]) or "fine"


def _says(log: Path, *words: str) -> bool:
    """Whether the process of ``log`` says one of them, once it had its time."""
    end = time.monotonic() + _BEGIN_SECONDS
    while not any(word in log.read_text(encoding="utf-8", errors="replace") for word in words):
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def fleet(old: Version, new: Version, shop: Shop, seconds: float) -> Iterator[str]:
    """Workers of both versions at once, on one state database, which the older made."""
    shop.land()
    code, said = old.run("serve", shop.file(), *_SERVE, "--until-idle", cwd=shop.folder)
    yield f"{old.name} begins: " + (f"exit code {code}\n{said}" if code else "fine")
    logs = []
    workers = [old, new, old, new]
    processes = []
    for number, version in enumerate(workers):
        log = shop.folder / f"worker{number}.log"
        logs.append(log)
        processes.append(version.start("serve", shop.file(), *_SERVE, cwd=shop.folder, log=log))
    silent = [log.name for log in logs if not _says(log, "serves", _NEWER)]
    if silent:
        yield f"the workers that did not begin within {_BEGIN_SECONDS} s: {', '.join(silent)}"
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        shop.land()
        time.sleep(2)
        if time.monotonic() > end - seconds / 2 and processes[0].poll() is None:
            processes[0].kill()  # in whatever it does
    for process in processes:
        process.send_signal(signal.SIGTERM)
    codes = [process.wait(120) for process in processes]
    names = ", ".join(version.name for version in workers)
    bad = [code for code, log in zip(codes[1:], logs[1:], strict=True) if code and not _says(log, _NEWER)]
    yield f"workers of {names}, the first of them killed, ended with {codes}: " + ("no" if bad else "fine")
    for version, log in zip(workers, logs, strict=True):
        said = log.read_text(encoding="utf-8")
        if "Traceback" in said:
            yield f"{version.name}: TRACEBACK {log}\n{said[-3000:]}"
    time.sleep(6)  # the lease of the one that was killed
    code, said = new.run("serve", shop.file(), *_SERVE, "--until-idle", cwd=shop.folder)
    wrong = [*([f"exit code {code}\n{said}"] if code else []), *shop.wrong()]
    yield f"{new.name} ends the fleet: " + ("; ".join(wrong) or "fine")
