"""What may know what. import-linter guards the rooms; here is what it can't say."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from workspace import ROOT, imports, imports_at_start, modules_of, plugins, strings

OPEN_SET = "laketier finds formats through entry points, so that anyone's is as good as ours: name none in the core"

# Bucket functions bear the names of the projects that defined them; they are hash functions, not formats.
NAMES_ALLOWED_IN = ("laketier/bucketing",)
# The same where `lake.bucket-by` names one, as in "iceberg:bucket(16, id)"; how Parquet spells its encodings; the
# ending of Arrow's files; and folders of anyone's tables, which nobody may take for files that lie there.
NO_FORMATS = re.compile(
    r"\biceberg:(?=bucket|`)|\bDELTA_(BINARY_PACKED|BYTE_ARRAY|LENGTH_BYTE_ARRAY)\b|\A\.feather\Z"
    r"|\A_delta_log\Z|\(delete_\)\?delta_(?=\\d)"
)

ROOMS_WITH_SPARK = ("laketier/spark", "laketier/service")
ROOMS_WITH_SPARK_LATER = ("laketier/cli",)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def inside(path: Path, rooms: tuple[str, ...]) -> bool:
    """Whether a file lies in one of the rooms, be a room a folder or one module."""
    place = path.relative_to(ROOT / "core").with_suffix("").as_posix()
    return any(place == room or place.startswith(room + "/") for room in rooms)


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_is_something_to_check() -> None:
    assert len(modules_of("laketier")) > 10
    assert len(modules_of("laketier/spi")) > 5
    assert {"delta", "iceberg", "lance", "localfile"} <= {name for member in plugins() for name in member.formats}


@pytest.mark.parametrize("path", [*modules_of("laketier/spi"), *modules_of("laketier/kit")], ids=shown)
def test_the_spi_and_the_toolbox_need_pyarrow_and_the_standard_library_only(path: Path) -> None:
    """And the contract needs no tool."""
    ours = ("laketier.spi", "laketier.kit") if inside(path, ("laketier/kit",)) else ("laketier.spi",)
    allowed = {"pyarrow", *sys.stdlib_module_names}
    found = {name for name in imports(parsed(path)) if name.split(".")[0] not in allowed}
    assert {name for name in found if not name.startswith(ours)} == set()


@pytest.mark.parametrize("path", modules_of("laketier"), ids=shown)
def test_only_the_upper_rooms_import_pyspark(path: Path) -> None:
    if inside(path, ROOMS_WITH_SPARK):
        return
    # The command line starts without Spark, since `laketier formats` must not wait for it.
    names = imports_at_start(parsed(path)) if inside(path, ROOMS_WITH_SPARK_LATER) else imports(parsed(path))
    assert [name for name in names if name.split(".")[0] == "pyspark"] == []


@pytest.mark.parametrize("path", modules_of("laketier"), ids=shown)
def test_the_core_names_no_format(path: Path) -> None:
    if inside(path, NAMES_ALLOWED_IN):
        return
    words = "|".join(sorted(name for member in plugins() for name in member.formats))
    pattern = re.compile(rf"(?<![a-z])({words})(?![a-z])", re.IGNORECASE)
    named = [
        f"{shown(path)}:{line}: {text!r}"
        for line, text in strings(parsed(path))
        if pattern.search(NO_FORMATS.sub("", text))
    ]
    assert named == [], OPEN_SET


def test_a_format_in_a_string_would_be_seen() -> None:
    tree = ast.parse('"""Docstring: delta."""\nx = f"use {y} or iceberg"\n')
    assert [text for _, text in strings(tree)] == ["use ", " or iceberg"]


def test_an_import_in_a_function_is_not_one_at_the_start() -> None:
    tree = ast.parse(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import a\n"
        "try:\n    import b\nexcept ImportError:\n    raise\n"
        "def f():\n    import c\n"
        "class K:\n    import d\n    def m(self):\n        import e\n"
    )
    assert set(imports_at_start(tree)) == {"typing", "b", "d"}
