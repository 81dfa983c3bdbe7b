"""Whether something is there is asked of `laketier.kit.looks`, which tells "it is not" from "nobody could look"."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BLANK = re.compile(r"\$\{?\w+\}?")
"""What `laketier new-plugin` fills in: authors take their plugin from what it makes."""
PRODUCT = [
    ROOT / "core",
    *sorted(ROOT.glob("plugins/*/laketier_*")),
    *sorted(ROOT.glob("tests/third_party/*/*_l*")),  # an author reads them, too
]
HOME = "core/laketier/kit/looks.py"

ASKED = {
    "exists", "is_dir", "is_file", "is_symlink", "is_mount", "is_junction", "is_socket", "is_fifo", "glob", "rglob",
}  # fmt: skip
"""Of `pathlib.Path`. `os.DirEntry` and `TableStore` have some of these names, too, and raise what goes wrong."""
OF_OS = {"exists", "lexists", "isfile", "isdir", "islink", "ismount", "access", "walk", "fwalk", "glob", "iglob"}
RAISES = {
    "store.exists", "self.store.exists", "place.store.exists", "manifests.store.exists", "self.exists",
    "manifests.exists",
}  # fmt: skip
"""`TableStore.exists`, and `ManifestLog.exists`, which is the same."""

ALLOWED: dict[str, dict[str, str]] = {
    HOME: {
        "os.walk": "this is the home; it raises what the walk could not read",
        "entry.is_dir": "os.DirEntry: it raises",
    },
    "core/laketier/kit/failpoints.py": {"flag.exists": "a pause of a test ends"},
    "core/laketier/kit/local_folder.py": {
        "entry.is_symlink": "os.DirEntry: it raises",
        "entry.is_dir": "os.DirEntry: it raises",
    },
    "core/laketier/connectors/files/local.py": {
        "os.path.islink": "chooses between two errors, of which either leaves the file alone",
    },
    "core/laketier/spark/session.py": {"os.access": "a Java that can't be run is as none"},
    "core/laketier/cli/doctor.py": {"file.is_file": "settings that can't be read are told as none; nothing follows"},
    "core/laketier/cli/conformance.py": {
        "written.exists": "a report that was not written",
        "underway.exists": "a note in a folder of the command's own",
    },
    "core/laketier/registry/pages.py": {
        "_CHECKOUT.joinpath(name).is_file": "which of two texts tells people where a page is",
        "_DOCUMENTS.joinpath(name).is_file": "which of two texts tells people where a page is",
    },
    "core/laketier/cli/new_plugin/templates/format/tests/test_conformance.py.tmpl": {"report.exists": "a test"},
    "core/laketier/cli/new_plugin/templates/source/tests/test_conformance.py.tmpl": {"report.exists": "a test"},
    "core/laketier/cli/new_plugin/distribution.py": {"each.is_dir": "of a folder that was made just now"},
    "core/laketier/cli/demo/inputs.py": {
        "self.waiting.glob": "the demo's own folder",
        "self.landing.glob": "the demo's own folder",
        "out.rglob": "the demo's own folder",
        "program.exists": "the demo's own folder",
    },
    "core/laketier/cli/demo/crash.py": {"Path('/proc').glob": "processes", "Path('/proc').is_dir": "processes"},
    "core/laketier/cli/demo/command.py": {
        "keep.exists": "mkdir follows, and says what is wrong",
        "location.rglob": "a size that is shown",
        "path.is_file": "a size that is shown",
    },
    "core/laketier/registry/checks.py": {"root.glob": "the projects of a checkout, for those who develop"},
    "plugins/localfile/laketier_localfile/lying_on_disk.py": {"entry.is_symlink": "os.DirEntry: it raises"},
    "plugins/iceberg/laketier_iceberg/removal.py": {"os.walk": "an empty folder that it does not find stays"},
    "plugins/kafka/laketier_kafka/mock_broker.py": {
        "beside.parent.glob": "a library of the installation",
        "beside.glob": "a library of the installation",
    },
    "plugins/delta/laketier_delta/log_version.py": {"folder.glob": "a guess at what a handle takes in memory"},
    "tests/third_party/ducklake/ducklake_lake/conformance.py": {
        "Path(table.location).glob": "a harness: plain readers that find no file fail a test",
    },
}
"""Module → what it asks → why an answer that is wrong decides nothing there."""


def asked(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = f"{ast.unparse(node.value)}.{node.attr}"
            of_os = name in {f"{module}.{each}" for module in ("os", "os.path", "path", "glob") for each in OF_OS}
            if (of_os or node.attr in ASKED) and name not in RAISES:
                yield name
        elif isinstance(node, ast.ImportFrom) and node.module in ("os", "os.path", "posixpath", "glob"):
            yield from (f"{node.module}.{each.name}" for each in node.names if each.name in OF_OS)


def test_nothing_else_decides_by_a_look_that_swallows_errors() -> None:
    found: dict[str, set[str]] = {}
    for file in (
        file for root in PRODUCT for ending in ("py", "py.tmpl") for file in sorted(root.rglob(f"*.{ending}"))
    ):
        text = file.read_text(encoding="utf-8")
        if here := set(asked(ast.parse(BLANK.sub("x", text) if file.suffix == ".tmpl" else text))):
            found[str(file.relative_to(ROOT))] = here
    assert found == {module: set(names) for module, names in ALLOWED.items() if names}, "use laketier.kit.looks"


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("Path(x).exists()", 1),
        ("all(map(os.path.exists, found))", 1),
        ("from os.path import isdir", 1),
        ("import os.path as path; path.isfile(x)", 1),
        ("for here, _, _ in os.walk(x): pass", 1),
        ("glob.glob(x)", 1),
        ("self.store.exists(name)", 0),
        ("is_there(x)", 0),
    ],
)
def test_the_scan_sees(source: str, caught: int) -> None:
    assert Counter(bool(name) for name in asked(ast.parse(source)))[True] == caught
