"""A real PostgreSQL server for tests: what is installed here, or what the `pgserver` distribution carries."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

DEBIAN = Path("/usr/lib/postgresql")
UNPRIVILEGED = 65534


def binaries() -> Path | None:
    """The folder with initdb and pg_ctl, None when there is none on this machine."""
    folders = []
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    folders += sorted(DEBIAN.glob("*/bin"), reverse=True)
    spec = importlib.util.find_spec("pgserver")
    if spec and spec.origin:
        folders.append(Path(spec.origin).parent / "pginstall" / "bin")
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


class PostgreSQL:
    """A server on a free port of the loopback, with a password."""

    user = "laketier"
    password = "s3cr3t-of-the-state"

    def __init__(self, bin: Path, folder: Path) -> None:
        self._bin = bin
        self._folder = folder
        self._data = folder / "data"
        self._kept = folder / "kept"
        self._databases = 0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def create(self) -> None:
        secret = self._folder / "password"
        secret.write_text(self.password)
        if os.getuid() == 0:
            os.chown(self._folder, UNPRIVILEGED, UNPRIVILEGED)
            os.chown(secret, UNPRIVILEGED, UNPRIVILEGED)
        auth = ["--auth=scram-sha-256", f"--pwfile={secret}", f"--username={self.user}"]
        self._run("initdb", "-D", str(self._data), "--no-sync", "--no-locale", "--encoding=UTF8", *auth)

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c shared_buffers=16MB"
        self._run("pg_ctl", "-D", str(self._data), "-l", str(self._folder / "log"), "-w", "-o", options, "start")

    def stop(self) -> None:
        """At once, as a crash would: connections break, and the next start recovers."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def keep(self) -> None:
        """What a replica has that is told late, or a backup: the data as it is now. The server is away meanwhile."""
        self.stop()
        shutil.rmtree(self._kept, ignore_errors=True)
        self._copy(self._data, self._kept)
        self.start()

    def lose_last_commits(self) -> None:
        """A failover to what was kept last: all later commits are gone, though they were answered."""
        self.stop()
        shutil.rmtree(self._data)
        self._copy(self._kept, self._data)
        self.start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{self.user}:{self.password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of an empty one."""
        self._databases += 1
        name = f"d{self._databases}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def _copy(self, source: Path, target: Path) -> None:
        """With owners and modes, which the server asks for."""
        subprocess.run(["cp", "-a", str(source), str(target)], check=True)

    def _run(self, command: str, *arguments: str) -> None:
        # initdb and the server refuse root.
        unprivileged = ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]
        prefix = unprivileged if os.getuid() == 0 else []
        # A file, not a pipe: the server inherits it from pg_ctl, and a pipe would not end before the server does.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [*prefix, str(self._bin / command), *arguments],
                cwd=self._folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=120,
            )
            output.seek(0)
            assert done.returncode == 0, output.read().decode()


@contextmanager
def running_postgresql() -> Iterator[PostgreSQL]:
    """A server that runs. Skips the test where none can."""
    folder = binaries()
    if folder is None:
        pytest.skip("no PostgreSQL here: neither initdb on the PATH, nor below /usr/lib/postgresql, nor pgserver")
    if os.getuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("PostgreSQL refuses root, and there is no setpriv to become another user")
    # Not pytest's own folder: that of root can't be entered by the server's user.
    with tempfile.TemporaryDirectory(prefix="laketier-pg-") as name:
        server = PostgreSQL(folder, Path(name))
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()
