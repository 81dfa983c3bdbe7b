"""The format that the authors' guide shows as a whole is one that the suite accepts."""

from __future__ import annotations

import re
from pathlib import Path

from conformance_runs import RunSuite

GUIDE = Path(__file__).parents[2] / "docs" / "authors" / "guide.md"
HOOK = "\n\n@hookimpl\ndef laketier_format():\n    return FeatherPlugin()\n"
ASKED = (
    "test_declaration.py::test_the_declared_rest_is_told",
    "test_rounds.py::test_a_replay_writes_nothing",
    "test_types.py::test_nested[struct]",
    "test_types.py::test_vectors[float32]",
    "test_upsert.py::test_only_removing",
)


def test_the_suite_accepts_it(run_suite: RunSuite, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if "class FeatherTable" in block]
    source = block.replace('"feather"', '"of-the-guide"')  # one of that name is installed here
    (tmp_path / "of_the_guide.py").write_text(f"from laketier.registry import hookimpl\n{source}{HOOK}")
    run = run_suite(
        "of-the-guide",
        offers={"of-the-guide": "of_the_guide"},
        arguments=[f"--lake-test={test}" for test in ASKED],
        paths=[tmp_path],
    )
    assert run.code == 0, run.output
