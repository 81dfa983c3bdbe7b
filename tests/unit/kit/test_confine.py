"""Which paths name a file below a folder, whatever reads them."""

from __future__ import annotations

import os
import posixpath
from pathlib import PureWindowsPath
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laketier.kit import confined, escapes
from laketier.kit.confine import LONGEST
from laketier.spi import OutsideTable
from laketier_conformance.hostile import FIXED, PIECES, paths

ROOT = "/lake/db/t"

hostile = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("/".join),
    st.tuples(st.sampled_from(("", "/", "//", "\\\\", "file://")), st.lists(st.sampled_from(PIECES), max_size=5)).map(
        lambda pair: pair[0] + "\\".join(pair[1])
    ),
    st.text(st.sampled_from("./\\%2eEfF5cC:~a=s3\x00\n "), max_size=12),
    st.text(max_size=12),
)


@pytest.mark.parametrize("path", FIXED)
def test_hostile_paths_are_refused_by_name(path: str) -> None:
    with pytest.raises(OutsideTable, match="not the path of a file") as caught:
        confined(path, where="manifest 3")
    assert caught.value.where == "manifest 3"
    assert caught.value.why
    assert ascii(path)[:40] in caught.value.what, "the path is named"
    assert str(caught.value).isprintable(), "and shown so that no terminal takes it for a command"


@pytest.mark.parametrize("path", [None, 7, b"x", ["x"]])
def test_a_path_is_text(path: object) -> None:
    assert "text" in str(escapes(path))


@pytest.mark.parametrize(
    "path",
    [
        "x",
        "data/0f.lance",
        "__in_progress/part-00000-b00001-0a1b-0001.parquet.inprogress",
        "_laketier/p%2Fq%2E/00000000000000ff.json",
        "region=eu/day=2026-11-21/part-0.parquet",
        "_laketier/%2E%2E%2Fx/00000000000000ff.json",  # of a pipeline that is called ../x
        "_laketier/orders%2Fv1%2E/00000000000000ff.json",
        "region=a%2F..%2F..%2Fb/part-0.parquet",  # the value of a row: what decodes it, decodes it after this
        "k=%252F/laketier-0.parquet",
        "ts=2026-11-21 08:30:00/x.parquet",
        "k=:x/y",
        "ns:k=1/x",  # delta-rs leaves the name of a column as it is
        "ns:k=../x",
        "a\\b=../x",
        "..x/x..",
        "größe=1/x",
        "a" * LONGEST,
    ],
)
def test_honest_paths_pass(path: str) -> None:
    assert confined(path, where="x") is path


@pytest.mark.parametrize("folder", ["/", "/tmp", ROOT])
def test_hostile_paths_name_nobody_s_files(folder: str) -> None:
    """What is wrong on purpose deletes what it is given."""
    for path in paths(11, 3000):
        plain = path.removeprefix("file://").encode("utf-8", "replace").decode().replace("\x00", "")
        assert not os.path.isfile(os.path.join(folder, plain)), path
        assert not os.path.isfile(os.path.join(folder, unquote(plain))), path


@given(hostile)
@example("k=%2e%2e/../x")
@example("file:k=1/x")
@example("S3:k=1/x")
@example("s3://k=1/x")
@example("C:k=1/x")
@example("ns:k=1/../x")
@example("..\\b=1/x")
@example("\\b=1/x")
@example("a=1\\..\\..\\b=1/x")
@example("a:\\b=1/x")
@example("%25252e%2e/x")
@example(" C:")
@example("  s3:k=1/x")
def test_what_passes_is_below_the_folder_for_every_reader(path: str) -> None:
    if escapes(path) is not None:
        return
    # the kernel, and who normalises
    assert posixpath.normpath(f"{ROOT}/{path}") == f"{ROOT}/{path}"
    assert posixpath.join(ROOT, path) == f"{ROOT}/{path}"
    assert "\x00" not in path
    # who takes it for a URI
    first = path.split("/")[0]
    column_with_colon = "=" in first and ":" in first.split("=")[0]
    if not column_with_colon:
        assert urljoin(f"file://{ROOT}/", path).startswith(f"file://{ROOT}/")
    else:  # a scheme that nobody looks up, without an authority
        assert urlsplit(path).scheme not in ("file", "s3", "s3a", "gs", "http", "https", "hdfs", "abfss")
        assert not urlsplit(path).netloc
    # another system
    windows = PureWindowsPath(path)
    assert not windows.drive
    assert not windows.root
    assert ".." not in windows.parts
    # who decodes it once, or again and again; what stands for a partition's value is never decoded before it is split
    names = [name for name in path.removeprefix("_laketier/").split("/") if "=" not in name]
    for _ in range(3):
        names = [unquote(name) for name in names]
        below = "/".join(names).replace("\\", "/")
        assert not below.startswith("/")
        assert ".." not in below.split("/")
        assert "\x00" not in below


@given(st.lists(st.text(st.sampled_from("abz019_-=.é"), min_size=1, max_size=8), min_size=1, max_size=5))
def test_ordinary_names_pass(names: list[str]) -> None:
    ordinary = [name if name.strip(".") else "x" for name in names]
    assert escapes("/".join(ordinary)) is None
