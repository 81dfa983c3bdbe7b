"""Builds every distribution and imports all of it in an environment that holds only what it declares.

The lock resolves all members together, so in .venv a plugin that forgot to declare a dependency still works: it
finds its neighbour's. Here it doesn't. Versions are those of the lock.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

from bootstrap import ROOT, BootstrapError, environment, fetch_uv, member_folders, pip_settings

# Imports every module below the packages named, but for those below the names after "--".
IMPORT_ALL = """
import importlib, pkgutil, sys
split = sys.argv.index("--")
wanted, left_out = sys.argv[1:split], tuple(sys.argv[split + 1:])
names = list(wanted)
for package in wanted:
    for info in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        names.append(info.name)
kept = [n for n in names if not any(n == out or n.startswith(out + ".") for out in left_out)]
for name in kept:
    if not name.endswith("__main__"):
        importlib.import_module(name)
for name in ("core", "plugins", "conformance", "tests"):
    assert importlib.util.find_spec(name) is None, name + " is importable"
print(len(kept))
"""


@dataclass(frozen=True)
class Case:
    """What to install, from the wheels just built, and what must then be importable."""

    name: str
    install: tuple[str, ...]
    packages: tuple[str, ...]
    left_out: tuple[str, ...] = ()


CHECKOUT = Case("pip and .[kafka]", (f"{ROOT}[kafka]",), ("laketier_kafka",))
"""From the checkout itself, whose extras have to bring the plugins beside it."""


def main() -> int:
    uv, env = fetch_uv(pip_settings()), environment(pip_settings())
    failed = 0
    with tempfile.TemporaryDirectory(prefix="laketier-isolated-") as folder:
        wheels = build(uv, env, Path(folder, "dist"))
        constraints = Path(folder, "constraints.txt")
        export = [
            "export",
            "--frozen",
            "--quiet",
            "--all-packages",
            "--all-extras",
            "--no-hashes",
            "--no-emit-workspace",
        ]
        call([uv, *export, "--output-file", constraints], env)
        for case in cases(wheels):
            started = time.monotonic()
            attempt = try_checkout if case is CHECKOUT else try_case
            problem = attempt(uv, env, Path(folder, "env"), constraints, case)
            failed += problem is not None
            print(f"{'FAILED' if problem else 'ok':8}{case.name:24}{time.monotonic() - started:5.1f} s", flush=True)
            if problem:
                print(problem, file=sys.stderr)
    return 1 if failed else 0


def build(uv: Path, env: dict[str, str], out: Path) -> dict[str, Path]:
    """Build an sdist of each member and the wheel from that sdist; return distribution name -> wheel."""
    wheels = {}
    for folder in member_folders():
        name = pyproject(folder)["project"]["name"]
        call([uv, "build", "--quiet", "--out-dir", out, folder], env)
        stem = name.replace("-", "_")
        (wheels[name],) = out.glob(f"{stem}-[0-9]*.whl")
        (sdist,) = out.glob(f"{stem}-[0-9]*.tar.gz")
        check_contents(folder, sdist, wheels[name])
    return wheels


def check_contents(folder: Path, sdist: Path, wheel: Path) -> None:
    """Refuse archives that carry what is not theirs, that lack a file, or a marker for type checkers."""
    packages = {Path(package).name for package in packages_of(folder)}
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    data = f"{'-'.join(wheel.name.split('-')[:2])}.data/"
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name and not name.startswith(data)}
    if tops != packages:
        raise BootstrapError(f"{wheel.name} holds {sorted(tops)}, expected {sorted(packages)}")
    shared = {name.removeprefix(f"{data}data/") for name in names if name.startswith(data)}
    if shared != (declared := set(shared_files_of(folder))):
        raise BootstrapError(
            f"{wheel.name} lacks the pages {sorted(declared - shared)}, and installs {sorted(shared - declared)} "
            f"outside of its packages, which [tool.hatch.build.targets.wheel.shared-data] does not name"
        )
    untyped = [package for package in packages if f"{package}/py.typed" not in names]
    if untyped:
        raise BootstrapError(f"{wheel.name} has no py.typed in {untyped}")
    # Templates and styles, too: what is not imported is missed by nobody until it is opened.
    lacking = [name for package in packages_of(folder) for name in files_of(folder / package) if name not in names]
    if lacking:
        raise BootstrapError(f"{wheel.name} lacks {sorted(lacking)}")
    with tarfile.open(sdist) as archive:
        inside = ["/".join(name.split("/")[1:]) for name in archive.getnames()]
    ours = tuple(shared_data_of(folder))
    tops = {name.split("/")[0] for name in inside if not name.startswith(ours)}
    strangers = tops & {"plugins", "tests", "benchmarks", "docs", "uv.lock", ".venv", ".tools"}
    if strangers:
        raise BootstrapError(f"{sdist.name} carries {sorted(strangers)}")


def cases(wheels: dict[str, Path]) -> list[Case]:
    core = str(wheels["laketier"])
    needs_more = ("laketier.spark", "laketier.service", "laketier.cli.demo")
    found = [
        Case("laketier", (core,), ("laketier",), needs_more),
        Case(
            "laketier[conformance]",
            (f"laketier[conformance] @ file://{core}",),
            ("laketier_conformance", "laketier_source_conformance"),
        ),
        Case(
            "laketier[spark,demo]",
            (f"laketier[spark,demo] @ file://{core}",),
            ("laketier", "pyspark_laketier"),
            ("laketier.service",),
        ),
        Case(
            "laketier[server,otel]",
            (f"laketier[server,otel] @ file://{core}",),
            ("laketier.service", "opentelemetry.exporter.otlp.proto.http"),
        ),
        Case(
            "laketier[server]",
            (f"laketier[server] @ file://{core}",),
            ("laketier",),
            ("laketier.spark", "laketier.cli.demo"),
        ),
    ]
    for folder in member_folders():
        name = pyproject(folder)["project"]["name"]
        if name != "laketier":
            packages = tuple(Path(package).name for package in packages_of(folder))
            found.append(Case(name, (core, str(wheels[name])), packages))
    return [*found, CHECKOUT]


def try_case(uv: Path, env: dict[str, str], target: Path, constraints: Path, case: Case) -> str | None:
    """Return what went wrong, None if nothing."""
    shutil.rmtree(target, ignore_errors=True)
    python = target / "bin" / "python"
    call([uv, "venv", "--quiet", "--python", sys.executable, target], env)
    install = [uv, "pip", "install", "--quiet", "--python", python, "--constraint", constraints, *case.install]
    # From uv's cache if all is there: an index that allows no caching has pyspark built anew every time.
    offline = [str(part) for part in [*install, "--offline"]]
    if subprocess.run(offline, cwd=ROOT, env=env, capture_output=True, check=False).returncode != 0:
        call(install, env)
    return imported(target, case)


def try_checkout(uv: Path, env: dict[str, str], target: Path, constraints: Path, case: Case) -> str | None:
    """The same with pip alone, which knows no workspace."""
    shutil.rmtree(target, ignore_errors=True)
    call([uv, "venv", "--quiet", "--seed", "--python", sys.executable, target], env)
    call([target / "bin" / "pip", "install", "--quiet", "--constraint", constraints, *case.install], env)
    return imported(target, case)


def imported(target: Path, case: Case) -> str | None:
    """Import all of a case's packages in the environment ``target``. Return the error, None if nothing went wrong."""
    python = target / "bin" / "python"
    # From an empty folder, so that nothing of the checkout can be imported by accident.
    command = [str(python), "-I", "-c", IMPORT_ALL, *case.packages, "--", *case.left_out]
    done = subprocess.run(command, cwd=target, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stdout + done.stderr


def pyproject(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def packages_of(folder: Path) -> list[str]:
    return pyproject(folder)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def shared_data_of(folder: Path) -> dict[str, str]:
    """Return what the wheel installs outside of its packages: file or folder of the source -> where it goes."""
    return pyproject(folder)["tool"]["hatch"]["build"]["targets"]["wheel"].get("shared-data", {})


def shared_files_of(folder: Path) -> list[str]:
    found = []
    for source, target in shared_data_of(folder).items():
        inside = files_of(folder / source) if (folder / source).is_dir() else []
        found += [f"{target}/{name.split('/', 1)[1]}" for name in inside] or [target]
    return found


def files_of(package: Path) -> list[str]:
    found = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [path.relative_to(package.parent).as_posix() for path in found]


def call(command: list[str | Path], env: dict[str, str]) -> None:
    if subprocess.call([str(part) for part in command], cwd=ROOT, env=env) != 0:
        raise BootstrapError(f"'{os.path.basename(command[0])} {command[1]}' failed, see above")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BootstrapError as error:
        sys.exit(f"laketier: {error}")
