"""Folders that can't be read, be it for a moment, and links to where only others may look."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from landing import ids, land, log_of


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    return tmp_path


WITHOUT_RIGHTS = """
import os, sys
sys.path.insert(0, {support!r})
from landing import log_of
from laketier.spi import StorageError
log = log_of({zone!r})
if {links}:
    log = log_of({zone!r}, **{{"follow_links": True}})
print(log.bounds()["files"].earliest)
os.chmod({folder!r}, 0)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    print(log.bounds())
except StorageError as error:
    print(error.where, error)
"""


@pytest.mark.parametrize("links", [False, True])
def test_a_folder_that_cant_be_read_stops_its_table_and_expires_nothing(links: bool) -> None:
    """In another process: root may read everything. Not below pytest's own folder, which other users may not enter."""
    with tempfile.TemporaryDirectory() as folder:
        zone = Path(folder, "zone")
        (zone / "t").mkdir(parents=True)
        os.chmod(folder, 0o755)
        inside = "../_a" if links else "a"
        (zone / "_a").mkdir()
        land(zone, f"{inside}/1.json", 1, at=1)
        land(zone, "b/2.json", 2, at=2)
        if links:
            (zone / "t" / "a").symlink_to("../_a")
        shut = (zone / "t" / inside).resolve()
        code = WITHOUT_RIGHTS.format(
            support=str(Path(__file__).parents[2] / "support"), zone=str(zone), folder=str(shut), links=links
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        shut.chmod(0o755)
        assert done.returncode == 0, done.stderr
        earliest, said = done.stdout.split("\n", 1)
        assert earliest == "0"
        assert said.startswith(str(shut))
        assert "permission denied" in said


def test_a_link_to_what_only_others_may_look_at_is_left_out(zone: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever may write into the zone may put links there: none of them stops the table."""
    land(zone, "a.json", 1)
    for number, target in enumerate(("/proc/1/root/x", "loop", "/no/such", "a.json/x", "x" * 300, "/etc/shadow/x")):
        (zone / "t" / f"link{number}").symlink_to(target)
    (zone / "t" / "loop").symlink_to("loop")
    assert ids(log_of(zone, follow_links=True)) == [1]
    assert caplog.text.count("is left out") == 7
