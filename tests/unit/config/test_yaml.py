"""Which YAML is read, and which is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from laketier.config.origins import read_yaml
from laketier.spi import ConfigError


def read(folder: Path, text: str) -> dict[str, object]:
    (folder / "f.yaml").write_text(text)
    return read_yaml(folder / "f.yaml")


def test_anchors_and_merge_keys_may_be_merged_again(tmp_path: Path) -> None:
    text = """
base: &base {x: 1, z: 9}
outer: {inner: &inner {<<: *base, x: 2}}
b: {<<: *inner, y: 3}
c: {<<: [*inner, *base], y: 4}
d: *inner
"""
    inner = {"x": 2, "z": 9}
    assert read(tmp_path, text) == {
        "base": {"x": 1, "z": 9},
        "outer": {"inner": inner},
        "b": {**inner, "y": 3},
        "c": {**inner, "y": 4},
        "d": inner,
    }


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: 1\nb: 2\na: 3\n", ":3:1"),
        ("a: {b: 1, b: 2}\n", ":1:11"),
        ("a:\n- x: 1\n  x: 2\n", ":3:3"),
        ("a: &a {x: 1}\nb: {<<: *a, y: 1, y: 2}\n", ":2:19"),
        ("a: {'<<': 1, '<<': 2}\n", ":1:14"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ConfigError, match=f"f.yaml{place}: .* is given twice"):
        read(tmp_path, text)


def test_what_is_within_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"f\.yaml:1:4: .*an alias is within its own anchor"):
        read(tmp_path, "a: &a {b: [*a]}\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2024-13-45\n", r"f\.yaml:2:4: .*timestamp can't have this value"),
        ("a: " + "9" * 5000, r"f\.yaml:1:4: .*int can't have this value"),
        ("a: " + "[" * 5000, "nested too deeply"),
    ],
)
def test_a_value_that_python_can_not_hold_is_told_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read(tmp_path, text)


def test_aliases_that_stand_for_millions_of_values_are_refused(tmp_path: Path) -> None:
    lines = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9 if i else ['x'] * 9)}]" for i in range(9)]
    with pytest.raises(ConfigError, match=r"f\.yaml:\d+:\d+: .*aliases stand for more than 1,000,000 values"):
        read(tmp_path, "\n".join(lines))
