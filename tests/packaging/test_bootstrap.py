"""Setting up says clearly what is missing, and takes nothing from an index that it can't verify."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from workspace import ROOT


def preflight(folder: Path, java: str | None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the check with a PATH that holds one `java`, which prints the given text."""
    if java is not None:
        program = folder / "java"
        program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{java}\nEND\n")
        program.chmod(0o755)
    env = {"PATH": f"{folder}:/nonexistent" if java is None else f"{folder}:/bin:/usr/bin", **variables}
    command = [sys.executable, str(ROOT / "scripts" / "preflight.py"), "--java"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("version", ['openjdk version "17.0.15" 2025-04-15', 'java version "21" 2023-09-19 LTS'])
def test_a_java_that_is_new_enough_passes_silently(tmp_path: Path, version: str) -> None:
    done = preflight(tmp_path, version)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("java", "found"),
    [
        ('openjdk version "1.8.0_402"', "the PATH has 8"),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2" 2019-01-15', "the PATH has 11"),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", "the PATH has none"),
        (None, "the PATH has none"),
    ],
    ids=["8", "11", "the stub of macOS", "none"],
)
def test_a_missing_or_old_java_is_one_line_with_the_fix(tmp_path: Path, java: str | None, found: str) -> None:
    done = preflight(tmp_path, java)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert found in done.stderr
    assert "17" in done.stderr
    assert "JAVA_HOME" in done.stderr


def test_java_home_wins_over_the_path_as_it_does_for_spark(tmp_path: Path) -> None:
    done = preflight(tmp_path, 'openjdk version "17.0.15"', JAVA_HOME=str(tmp_path / "gone"))
    assert done.returncode == 1
    assert f"JAVA_HOME={tmp_path / 'gone'} has none" in done.stderr


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_old_python_is_one_line_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("preflight")
    monkeypatch.setattr(module.sys, "version_info", (3, 9, 18, "final", 0))
    monkeypatch.setattr(module, "newer_python", lambda: "python3.12")
    problem = module.python_problem()
    assert "3.9.18" in problem
    assert "make PYTHON=python3.12" in problem


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, away from this checkout's tools and this machine's settings."""
    module = load("bootstrap")
    for name in os.environ:
        if name.startswith(("PIP_", "UV_", "XDG_", "SSL_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(module, "TOOLS", tmp_path / "tools")
    monkeypatch.setattr(module, "PAUSES", (0, 0))
    return module


class Index(ThreadingHTTPServer):
    """A simple index in HTML that holds one wheel of uv."""

    wheel: bytes
    name: str
    asked: list[tuple[str, str | None]]
    broken: int = 0

    def __init__(self, name: str) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(f"{name.split('-py3')[0]}.data/scripts/uv", "#!/bin/sh\necho a pinned uv\n")
        self.wheel, self.name, self.asked = packed.getvalue(), name, []
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server_port}/simple"


class Answer(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        if self.server.broken:
            self.server.broken -= 1
            self.send_error(503)
            return
        page = f'<!DOCTYPE html><a href="../../files/{self.server.name}#sha256=0">{self.server.name}</a>'.encode()
        body = {"/simple/uv/": page, f"/files/{self.server.name}": self.server.wheel}.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def index(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    server = Index(f"uv-{bootstrap.UV_VERSION}-py3-none-any_1.whl")
    digest = hashlib.sha256(server.wheel).hexdigest()
    monkeypatch.setattr(bootstrap, "wheel_for_this_machine", lambda: ("any_1", digest))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_uv_is_fetched_once_and_runs(bootstrap: ModuleType, index: Index) -> None:
    uv = bootstrap.fetch_uv({"index-url": index.url})
    assert subprocess.run([uv], capture_output=True, text=True, check=True).stdout == "a pinned uv\n"
    asked = len(index.asked)
    assert bootstrap.fetch_uv({"index-url": index.url}) == uv
    assert len(index.asked) == asked


def test_a_wheel_with_another_hash_is_refused_and_nothing_is_left(
    bootstrap: ModuleType, index: Index, tmp_path: Path
) -> None:
    index.wheel += b"one byte more"
    with pytest.raises(bootstrap.BootstrapError, match="SHA-256"):
        bootstrap.fetch_uv({"index-url": index.url})
    assert not (tmp_path / "tools").exists()


def test_an_index_that_stumbles_is_asked_again(bootstrap: ModuleType, index: Index) -> None:
    index.broken = 1
    assert bootstrap.fetch_uv({"index-url": index.url}).is_file()


def test_an_index_without_the_wheel_is_named(bootstrap: ModuleType, index: Index) -> None:
    index.name = "uv-0.0.1-py3-none-any_1.whl"
    with pytest.raises(bootstrap.BootstrapError, match=f"{index.url}/uv/ has no uv-{bootstrap.UV_VERSION}"):
        bootstrap.fetch_uv({"index-url": index.url})


def test_a_password_goes_to_its_own_host_and_into_no_message(bootstrap: ModuleType, index: Index) -> None:
    address = index.url.replace("//", "//somebody:s3cret@")
    bootstrap.fetch_uv({"index-url": address})
    assert {authorization for _, authorization in index.asked} == {"Basic c29tZWJvZHk6czNjcmV0"}
    bootstrap.TOOLS = bootstrap.TOOLS / "elsewhere"
    index.name = "other"
    with pytest.raises(bootstrap.BootstrapError) as caught:
        bootstrap.fetch_uv({"index-url": address})
    assert "s3cret" not in str(caught.value)


def test_pips_settings_are_honoured_files_first_then_variables(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "home" / ".config" / "pip" / "pip.conf"
    own.parent.mkdir(parents=True)
    own.write_text("[global]\nindex-url = https://mirror.example/simple/\ncert = /ca.pem\ntimeout = 5\n")
    monkeypatch.setattr(bootstrap, "pip_files", lambda: [own])
    assert bootstrap.pip_settings() == {"index-url": "https://mirror.example/simple/", "cert": "/ca.pem"}
    assert bootstrap.index_of(bootstrap.pip_settings()) == "https://mirror.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://nearer.example/simple")
    assert bootstrap.index_of(bootstrap.pip_settings()) == "https://nearer.example/simple"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://uv.example/simple")
    assert bootstrap.index_of(bootstrap.pip_settings()) == "https://uv.example/simple"
    env = bootstrap.environment(bootstrap.pip_settings())
    assert (env["UV_DEFAULT_INDEX"], env["SSL_CERT_FILE"]) == ("https://uv.example/simple", "/ca.pem")


def test_without_settings_it_is_the_public_index(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "pip_files", list)
    assert bootstrap.index_of(bootstrap.pip_settings()) == bootstrap.PUBLIC_INDEX
    assert "UV_DEFAULT_INDEX" not in bootstrap.environment({})
