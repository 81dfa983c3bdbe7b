"""Looks at names: there, absent, or nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from laketier.kit.file_identity import file_identity, is_absent, is_there


def test_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    (file := tmp_path / "file").touch()
    (dangling := tmp_path / "dangling").symlink_to("nowhere")
    for path, there, absent in ((tmp_path, True, False), (file, True, False), (dangling, False, False)):
        assert (is_there(path), is_absent(path)) == (there, absent), path
    for path in (tmp_path / "none", file / "below"):
        assert (is_there(path), is_absent(path), file_identity(path)) == (False, True, None), path


def test_a_look_that_fails_is_no_absence(tmp_path: Path) -> None:
    unseen = tmp_path / ("x" * 300)
    with pytest.raises(OSError, match="name too long"):
        is_there(unseen)
    assert (is_absent(unseen), file_identity(unseen)) == (False, None)
