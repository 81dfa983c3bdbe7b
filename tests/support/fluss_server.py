"""A real Apache Fluss on loopback: ZooKeeper, one coordinator and one tablet server, each a JVM of its own."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

_OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.nio", "java.lang", "java.util")]
_ZOOKEEPER = "org.apache.fluss.shaded.zookeeper3.org.apache.zookeeper.server.quorum.QuorumPeerMain"
_COORDINATOR = "org.apache.fluss.server.coordinator.CoordinatorServer"
_TABLET = "org.apache.fluss.server.tablet.TabletServer"


class FlussServer:
    """``libs``: a folder with the server's jar and log4j's. ``plugins``: Fluss's plugins folder, for lake formats."""

    def __init__(
        self, libs: str, folder: Path, settings: str = "", tablet: str = "", plugins: Path | None = None
    ) -> None:
        self._libs = libs
        self._folder = folder
        self._plugins = plugins or folder / "plugins"
        self._plugins.mkdir(exist_ok=True)
        self._log = (folder / "server.log").open("ab")
        zookeeper, coordinator, server = _free_ports(3)
        self.bootstrap = f"127.0.0.1:{coordinator}"
        (folder / "zk").mkdir()
        (folder / "zk.properties").write_text(
            f"dataDir={folder}/zk\nclientPort={zookeeper}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
            "tickTime=500\n"
        )
        shared = (
            f"zookeeper.address: 127.0.0.1:{zookeeper}\ndefault.replication.factor: 1\n"
            # A killed server counts as alive for this long, and no bucket of it gets a leader.
            "zookeeper.client.session-timeout: 4s\n"
            f"remote.data.dir: {folder}/remote\n{settings}"
        )
        self._configure("coordinator", f"bind.listeners: FLUSS://127.0.0.1:{coordinator}\n{shared}")
        own = f"tablet-server.id: 0\ndata.dir: {folder}/data\n{tablet}"
        self._configure("tablet", f"bind.listeners: FLUSS://127.0.0.1:{server}\n{own}{shared}")
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._java("zookeeper", "128m", _ZOOKEEPER, str(folder / "zk.properties"))
        self._java("coordinator", "384m", _COORDINATOR, "--configDir", str(folder / "coordinator"))
        self.start_tablet()

    def start_tablet(self) -> None:
        self._java("tablet", "512m", _TABLET, "--configDir", str(self._folder / "tablet"))

    def stop_tablet(self) -> None:
        """In order. One without replicas that is killed may lose what it has acknowledged in its last seconds."""
        process = self._running.pop("tablet")
        process.terminate()
        process.wait()

    def close(self) -> None:
        for name in ("tablet", "coordinator", "zookeeper"):
            if name in self._running:
                self._kill(name)
        self._log.close()

    def log(self) -> str:
        return (self._folder / "server.log").read_text(errors="replace")

    def _kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def _configure(self, name: str, text: str) -> None:
        (self._folder / name).mkdir()
        (self._folder / name / "server.yaml").write_text(text)

    def _java(self, name: str, heap: str, main: str, *arguments: str) -> None:
        command = ["java", *_OPENED, f"-Xmx{heap}", "-XX:+UseSerialGC", "-cp", f"{self._libs}/*", main, *arguments]
        environment = {
            **os.environ,
            "FLUSS_HOME": str(self._folder),
            "FLUSS_PLUGINS_DIR": str(self._plugins),
        }
        self._running[name] = subprocess.Popen(
            command, stdout=self._log, stderr=self._log, env=environment, cwd=self._folder
        )


def _free_ports(count: int) -> list[int]:
    reserved = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in reserved]
    for each in reserved:
        each.close()
    return ports
