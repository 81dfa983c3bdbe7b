"""Part ``again`` of ``scripts/strangers.py``: the command that a failure ends with, taken as it is printed by a shell
that has nothing but the system's own programs, fails the same test in the same way."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROUND = "test_rounds.py::test_the_counts_are_those_of_the_files"
FOLDER = 'it\'s a "folder" #ünï'
LINE = re.compile(r"^ *again  (.+)$", re.MULTILINE)
FOUND = re.compile(r"^ *found  (.+)$|^laketier: (the process ended .+)$", re.MULTILINE)
NAMES = re.compile(r"[0-9a-f-]{6,}|/\S+|'gw\d+'")
"""What is another one in each run."""
ENDED = "the process ended"
AT_A_COMMIT = """

def wrongly(self, state, results, watermark, right=kit.ManifestCommitter.publish):
    import dataclasses, os, signal, sys
    answer = right(self, state, results, watermark)
    {mistake}


kit.ManifestCommitter.publish = wrongly
"""


def at_a_commit(mistake: str) -> str:
    return AT_A_COMMIT.format(mistake=mistake)


COUNTS = at_a_commit("return dataclasses.replace(answer, rows=answer.rows + 10)")
GARBAGE = "\n\ndef wrongly(*_): raise RuntimeError('no')\n\n\nspi.DataclassSerializer.deserialize = wrongly\n"
IN_A_CHILD = "\n\nimport os, sys\nif 'laketier_conformance.child' in sys.modules: os._exit(3)\n"
NO_SERVER = "\n    def setup(self, folder): raise RuntimeError('no server')\n"
NO_COMPACTION = "\n    def compact(self, storage, table): raise RuntimeError('no space')\n"


@dataclass(frozen=True)
class Case:
    """A mistake, in words; what is written behind the plugin's module, and its harness; and what is run."""

    mistake: str
    plugin: str = ""
    harness: str = ""
    tests: Sequence[str] = (ROUND,)
    words: Sequence[str] = ()


CASES = (
    Case("a wrong answer", COUNTS),
    Case(
        "the same, without tracebacks and in a warehouse that is kept",
        COUNTS,
        words=("--tb=no", "--lake-warehouse=a b"),
    ),
    Case("no answer", at_a_commit("return None")),
    Case("an exit", at_a_commit("sys.exit(0)")),
    Case("a panic", at_a_commit("raise type('PanicException', (BaseException,), {})('no entry')")),
    Case("the end of a process", at_a_commit("os._exit(0)")),
    Case("the end of one of several processes", at_a_commit("os._exit(7)"), words=("-n", "2")),
    Case("a kill of one of several processes", at_a_commit("os.kill(os.getpid(), signal.SIGKILL)"), words=("-n", "2")),
    Case("the end of a child", IN_A_CHILD, tests=("test_kills.py::test_killed_twice",)),
    Case("no set-up", harness=NO_SERVER),
    Case(
        "a hook that fails at a step that a seed draws",
        harness=NO_COMPACTION,
        tests=("test_operations.py::test_an_operation_is_cut_off[compact]",),
        words=("--lake-steps=1", "--lake-seed=7"),
    ),
    Case(
        "names with quotes and escapes",
        GARBAGE,
        tests=(
            'test_serializer.py::test_garbage_is_refused[{"files":1}]',
            "test_serializer.py::test_garbage_is_refused[{]",
        ),
    ),
)


def again_as_printed(
    here: Path, programs: Path, make: Callable[[Path, str, str], Path], told: Callable[[bool, str, float], None]
) -> int:
    """How many commands did not run, or found something else. ``make`` leaves a plugin in a folder, with its name and
    that of its kind, and installs it."""
    above = here / FOLDER
    above.mkdir()
    project = make(above, "acme-again", "manifest")
    package = project / "acme_again_lake"
    whole = {name: (package / name).read_text(encoding="utf-8") for name in ("plugin.py", "conformance.py")}
    failed = 0
    for case in CASES:
        began = time.monotonic()
        (package / "plugin.py").write_text(whole["plugin.py"] + case.plugin, encoding="utf-8")
        (package / "conformance.py").write_text(whole["conformance.py"] + case.harness, encoding="utf-8")
        command = [str(programs / "laketier"), "conformance", "acme-again"]
        command += [word for test in case.tests for word in ("--test", test)]
        first = said([*command, "--", "-p", "no:cacheprovider", *case.words], project)
        lines = dict.fromkeys(LINE.findall(first))
        found = _found(first)
        seconds = [said(["/bin/sh", "-c", line], project) for line in lines]
        same = len(lines) == len(case.tests) and all(_found(each) & found for each in seconds)
        failed += not same
        told(same, f"again after {case.mistake}", began)
        if not same:
            print(first, *seconds, sep="\n------\n", file=sys.stderr)
    return failed


def _found(text: str) -> set[str]:
    """The sentences; of a process that ended no more, as xdist tells it in other words than laketier."""
    sentences = [NAMES.sub("*", next(filter(None, each))) for each in FOUND.findall(text)]
    return {ENDED if each.startswith(ENDED) else each for each in sentences}


def said(command: Sequence[str], project: Path) -> str:
    """All that a command says, in an environment that has next to nothing."""
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(project), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, cwd=project, env=bare, capture_output=True, check=False, timeout=600)
    return (done.stdout + done.stderr).decode(errors="replace")
