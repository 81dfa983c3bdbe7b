"""Makes the environments of this checkout, with a pinned uv fetched from the package index.

    python scripts/bootstrap.py                 the locked environment with all members, in .venv
    python scripts/bootstrap.py --compat        the same on the oldest supported line of pyspark, in .venv-compat
    python scripts/bootstrap.py --third-party   the formats of others that are not in the lock, in .venv-third-party
    python scripts/bootstrap.py --uv ...        runs uv itself, with these arguments

Standard library only, and neither pip nor ensurepip: uv comes from the simple index as a wheel, its SHA-256 is
checked against the one below, and its one executable is unzipped into .tools/. pip's settings for the index and
the certificates are honoured.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import html.parser
import io
import os
import platform
import shutil
import ssl
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
PUBLIC_INDEX = "https://pypi.org/simple"
COMPAT_PYSPARK = "4.1.4"
PAUSES = (0, 1, 3)  # seconds before each attempt to download

UV_VERSION = "0.13.8"
# (system, machine, C library) -> (platform tag of the wheel, SHA-256 of the wheel)
UV_WHEELS = {
    ("linux", "x86_64", "glibc"): (
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
        "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
    ),
    ("linux", "aarch64", "glibc"): (
        "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
    ),
    ("linux", "x86_64", "musl"): (
        "musllinux_1_1_x86_64",
        "29451c60f5e8b07403e0a175d5229efc36b0289b34143ff4aaa499a5dd52553a",
    ),
    ("linux", "aarch64", "musl"): (
        "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
    ),
    ("darwin", "x86_64", ""): (
        "macosx_10_12_x86_64",
        "b7124ca1956ec2e476a1003ea5715a15f0266afaec37f4dc9c6972ba8183e6d1",
    ),
    ("darwin", "arm64", ""): (
        "macosx_11_0_arm64",
        "62b6943c7fd64fac6854f780bea6e0359e5a5bc3241f83ee357bb38276afac49",
    ),
}


class BootstrapError(Exception):
    """Something that the user can mend; its text is all they get to read."""


def main(arguments: list[str]) -> int:
    try:
        settings = pip_settings()
        uv = fetch_uv(settings)
        if arguments[:1] == ["--uv"]:
            return subprocess.call([str(uv), *arguments[1:]], cwd=ROOT, env=environment(settings))
        target = ROOT / {"--compat": ".venv-compat", "--third-party": ".venv-third-party"}.get(
            "".join(arguments[:1]), ".venv"
        )
        started = time.monotonic()
        make_environment(uv, settings, target)
    except BootstrapError as problem:
        print(f"laketier: {problem}", file=sys.stderr)
        return 1
    print(f"laketier: {target.name} is ready ({time.monotonic() - started:.0f} s)")
    return 0


# ---------------------------------------------------------------------------------------------- environments


def make_environment(uv: Path, settings: dict[str, str], target: Path) -> None:
    """Install the lock and every member, editable. The stamp, written last, tells make that it is complete."""
    stamp = target / ".complete"
    stamp.unlink(missing_ok=True)
    env = environment(settings) | {"UV_PROJECT_ENVIRONMENT": str(target)}
    # Bytecode once, here: where Python may write none (PYTHONDONTWRITEBYTECODE), each Spark worker would compile all
    # that it imports, and an import of pyiceberg takes twice as long.
    env["UV_COMPILE_BYTECODE"] = "1"
    if target.name == ".venv-third-party":
        install_apart(uv, env, target)
    elif target.name == ".venv" and index_of(settings) == PUBLIC_INDEX:
        run(
            [uv, "sync", "--locked", "--all-packages", "--all-extras", "--all-groups", "--python", sys.executable],
            env,
            hint="if pyproject.toml changed, refresh the lock with 'make lock' and commit it",
        )
    else:
        install_exported(uv, env, target)
    stamp.touch()


def install_exported(uv: Path, env: dict[str, str], target: Path) -> None:
    """Install what the lock says, by version, where `uv sync --locked` can't.

    The lock names the public index, so uv calls it outdated behind a mirror; and another pyspark than the locked
    one is by definition not the lock.
    """
    compat = target.name == ".venv-compat"
    groups = ["--group", "test"] if compat else ["--all-groups"]
    checked = ["--no-hashes"] if compat else []
    with tempfile.TemporaryDirectory() as folder:
        third_party, members = Path(folder, "third-party.txt"), Path(folder, "members.txt")
        export = [uv, "export", "--frozen", "--quiet", "--no-emit-workspace", "--no-annotate", "--no-header"]
        run([*export, "--all-packages", "--all-extras", *groups, *checked, "--output-file", third_party], env)
        if compat:
            kept = [line for line in third_party.read_text().splitlines() if not line.startswith(("pyspark=", "py4j="))]
            third_party.write_text("\n".join([*kept, f"pyspark=={COMPAT_PYSPARK}", ""]))
        members.write_text("".join(f"-e {folder}\n" for folder in member_folders()))
        if not (target / "pyvenv.cfg").is_file():
            run([uv, "venv", "--quiet", "--python", sys.executable, target], env)
        install: list[str | Path] = [uv, "pip", "install", "--python", target / "bin" / "python"]
        run([*install, *([] if compat else ["--require-hashes"]), "--requirements", third_party], env)
        run([*install, "--no-deps", "--requirements", members], env)


def install_apart(uv: Path, env: dict[str, str], target: Path) -> None:
    """Install the formats that are no members, with the libraries of their own lock."""
    if not (target / "pyvenv.cfg").is_file():
        run([uv, "venv", "--quiet", "--python", sys.executable, target], env)
    install: list[str | Path] = [uv, "pip", "install", "--python", target / "bin" / "python"]
    run([*install, "--require-hashes", "--requirements", ROOT / "tests/third_party/requirements.txt"], env)
    editable = [part for folder in (ROOT, *folders_apart()) for part in ("--editable", folder)]
    run([*install, "--no-deps", *editable], env)


def folders_apart() -> list[Path]:
    """The folders with a pyproject that the workspace leaves out."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        return [ROOT / folder for folder in tomllib.load(file)["tool"]["uv"]["workspace"]["exclude"]]


def member_folders() -> Iterator[Path]:
    yield ROOT
    apart = folders_apart()
    for pattern in ("plugins/*/pyproject.toml", "tests/third_party/*/pyproject.toml"):
        yield from (path.parent for path in sorted(ROOT.glob(pattern)) if path.parent not in apart)


def environment(settings: dict[str, str]) -> dict[str, str]:
    """Return the surroundings that uv runs in: this checkout's .venv, no other Python, pip's index and certificates."""
    env = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    env["UV_PROJECT_ENVIRONMENT"] = str(ROOT / ".venv")
    env["UV_PYTHON_DOWNLOADS"] = "never"
    env.setdefault("UV_HTTP_TIMEOUT", "180")
    if index_of(settings) != PUBLIC_INDEX:
        env["UV_DEFAULT_INDEX"] = index_of(settings)
    if settings.get("cert"):
        env.setdefault("SSL_CERT_FILE", settings["cert"])
    return env


def run(command: list[str | Path], env: dict[str, str], hint: str = "") -> None:
    if subprocess.call([str(part) for part in command], cwd=ROOT, env=env) != 0:
        shown = " ".join(str(part) for part in command[1:3])
        raise BootstrapError(f"'uv {shown}' failed, see above" + (f"; {hint}" if hint else ""))


# ------------------------------------------------------------------------------------------------ pip's settings


def pip_settings() -> dict[str, str]:
    """Return pip's `index-url` and `cert`: from its files, later ones winning, then from its variables."""
    found: dict[str, str] = {}
    for path in pip_files():
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            raise BootstrapError(f"cannot read pip's configuration {path}: {error}") from error
        for section in ("global", "install"):
            for key in ("index-url", "cert"):
                if parser.has_option(section, key):
                    found[key] = parser.get(section, key)
    for variable, key in (("PIP_INDEX_URL", "index-url"), ("PIP_CERT", "cert")):
        if os.environ.get(variable):
            found[key] = os.environ[variable]
    return found


def pip_files() -> list[Path]:
    if os.environ.get("PIP_CONFIG_FILE"):
        chosen = os.environ["PIP_CONFIG_FILE"]
        return [] if chosen == os.devnull else [Path(chosen)]
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return [
        Path("/Library/Application Support/pip/pip.conf"),
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        home / "Library" / "Application Support" / "pip" / "pip.conf",
        config / "pip" / "pip.conf",
        Path(sys.prefix) / "pip.conf",
    ]


def index_of(settings: dict[str, str]) -> str:
    chosen = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL") or settings.get("index-url")
    return (chosen or PUBLIC_INDEX).rstrip("/")


# ------------------------------------------------------------------------------------------------------------ uv


def fetch_uv(settings: dict[str, str]) -> Path:
    """Return the pinned uv, downloaded once into .tools/."""
    uv = TOOLS / f"uv-{UV_VERSION}" / "uv"
    if uv.is_file():
        return uv
    tag, expected = wheel_for_this_machine()
    name = f"uv-{UV_VERSION}-py3-none-{tag}.whl"
    user, index = split_user(index_of(settings))
    listing, page = download(f"{index}/uv/", settings, user)
    links = Links()
    links.feed(listing.decode("utf-8", "replace"))
    if name not in links.found:
        raise BootstrapError(f"{page} has no {name}")
    address = urllib.parse.urljoin(page, links.found[name])
    # Whoever runs the index gets its password; another host, as PyPI's own files have one, doesn't.
    same_host = urllib.parse.urlsplit(address).netloc == urllib.parse.urlsplit(index).netloc
    wheel, _ = download(address, settings, user if same_host else "")
    actual = hashlib.sha256(wheel).hexdigest()
    if actual != expected:
        raise BootstrapError(f"{name} from {page} has SHA-256 {actual}, expected {expected}")
    uv.parent.mkdir(parents=True, exist_ok=True)
    unfinished = uv.with_name(f"uv.{os.getpid()}")
    with (
        zipfile.ZipFile(io.BytesIO(wheel)) as archive,
        archive.open(f"uv-{UV_VERSION}.data/scripts/uv") as packed,
        unfinished.open("wb") as file,
    ):
        shutil.copyfileobj(packed, file)
    unfinished.chmod(unfinished.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    unfinished.replace(uv)  # at once: a run cut short leaves no half of an executable behind
    return uv


def wheel_for_this_machine() -> tuple[str, str]:
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = {"amd64": "x86_64"}.get(machine, machine)
    library = "" if system != "linux" else "glibc" if platform.libc_ver()[0] == "glibc" else "musl"
    wheel = UV_WHEELS.get((system, machine, library))
    if wheel is None:
        raise BootstrapError(
            f"no uv is pinned for {system} {machine}: put uv {UV_VERSION} at .tools/uv-{UV_VERSION}/uv and run again"
        )
    return wheel


class Links(html.parser.HTMLParser):
    """Collects file name -> address from a page of the simple index."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get("href")
        if tag == "a" and address:
            self.found[urllib.parse.unquote(urllib.parse.urlsplit(address).path.rsplit("/", 1)[-1])] = address


def download(address: str, settings: dict[str, str], user: str = "") -> tuple[bytes, str]:
    """Return the bytes behind an address, and the address they came from in the end."""
    headers = {"Accept": "text/html, */*;q=0.1", "User-Agent": "laketier"}
    if user:
        headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    request = urllib.request.Request(address, headers=headers)
    context = ssl.create_default_context(cafile=settings.get("cert") or os.environ.get("SSL_CERT_FILE"))
    problem: Exception | None = None
    for pause in PAUSES:
        time.sleep(pause)
        try:
            with urllib.request.urlopen(request, timeout=180, context=context) as answer:
                return answer.read(), answer.geturl()
        except urllib.error.HTTPError as error:
            error.close()
            problem = error
            if error.code < 500:
                break
        except OSError as error:
            problem = error
    raise BootstrapError(f"cannot download {address}: {problem}. For a mirror, set PIP_INDEX_URL.") from problem


def split_user(address: str) -> tuple[str, str]:
    """Return `user:password` and the address without them, which is how urllib wants it."""
    parts = urllib.parse.urlsplit(address)
    user, _, host = parts.netloc.rpartition("@")
    return urllib.parse.unquote(user), urllib.parse.urlunsplit(parts._replace(netloc=host))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
