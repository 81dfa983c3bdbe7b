"""The demo where its driver does not come on."""

from __future__ import annotations

from pathlib import Path

import pytest

from laketier.cli.demo import crash
from laketier.cli.demo.command import demo
from laketier.cli.demo.crash import DriverFailed


def test_a_driver_that_says_nothing_leaves_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names a file: it is there after the demo, too."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(crash, "_SILENCE_SECONDS", 0.5)
    with pytest.raises(DriverFailed, match="said nothing for 0 s") as caught:
        demo(format=["localfile"])
    assert caught.value.where is not None
    assert Path(caught.value.where).is_file()
    assert str(tmp_path) in caught.value.where
