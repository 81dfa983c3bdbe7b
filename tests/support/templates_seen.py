"""Which files of the suite what `laketier new-plugin` makes has passed, of each kind.

``python tests/support/templates_seen.py`` runs those that are new or changed since, a few at a time, and notes in
``tests/integration/TEMPLATES_SEEN`` what passed. `make test` runs some of what is not noted, so whoever changes a test
of the suite is told by it. A change of a module that tests share, or of a template, is seen by the deep tests alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import warmed
from conformance_runs import SUITE, offered
from laketier.cli.new_plugin.distribution import FORMATS, Kind, write_distribution
from laketier.cli.new_plugin.names import names_of

NOTED = Path(__file__).resolve().parents[1] / "integration" / "TEMPLATES_SEEN"
KINDS = tuple(kind.value for kind in FORMATS)
_HEAD = "# What each kind of new plugin passed. Written by `python tests/support/templates_seen.py`.\n"
_AT_A_TIME = 6
_ELSEWHERE = {"test_spark.py"}
"""Files without a test of the bare lane, in which these runs are."""


def digests(suite: Path = SUITE) -> dict[str, str]:
    """Of each file of tests, what is in it."""
    files = (path for path in sorted(suite.glob("test_*.py")) if path.name not in _ELSEWHERE)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in files}


def noted(file: Path = NOTED) -> dict[str, str]:
    """What passed, as it was then."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return dict(line.split(" ") for line in lines if line and not line.startswith("#"))


def unseen(now: Mapping[str, str], before: Mapping[str, str], most: int) -> list[str]:
    """Some of the files that are new or changed. Any change of the suite makes it others, so that each comes up."""
    changed = [name for name, digest in now.items() if before.get(name) != digest]
    drawn = hashlib.sha256("".join(now.values()).encode()).hexdigest()
    return sorted(sorted(changed, key=lambda name: hashlib.sha256(f"{drawn}{name}".encode()).digest())[:most])


def outcomes(kind: str, tests: Iterable[str], folder: Path) -> tuple[dict[str, str], str]:
    """What became of each test of these files, of a new plugin that is as it was made, and what the run said."""
    project, _ = write_distribution(names_of("acme-x"), Kind(kind), folder)
    offers = offered(folder / "offers", {"acme-x": "acme_x_lake.plugin"}, {"acme-x": "acme_x_lake.conformance:Harness"})
    report = folder / "report.json"
    command = ["-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    command += ["--lake-format=acme-x", "--lake-lanes=bare", "--lake-steps=1", f"--lake-report={report}"]
    path = [str(offers), str(project), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    words = [*command, *(str(SUITE / test) for test in tests)]
    warmed.run(words, project, environment, folder / "said")
    results = json.loads(report.read_text(encoding="utf-8"))["results"] if report.exists() else {}
    return {name: str(result["outcome"]) for name, result in results.items()}, (folder / "said").read_text()


def failed(found: Mapping[str, str]) -> dict[str, str]:
    """Of outcomes those that a format is not conformant with."""
    return {name: outcome for name, outcome in found.items() if outcome not in ("passed", "refused", "not interposed")}


def main(arguments: Sequence[str]) -> int:
    now = digests()
    wanted = [name for name in arguments or now if noted().get(name) != now[name]]
    bad = False
    for start in range(0, len(wanted), _AT_A_TIME):
        tests = wanted[start : start + _AT_A_TIME]
        wrong: dict[str, str] = {}
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                found, said = outcomes(kind, tests, Path(folder))
            if not found:
                print(said)
                return 1
            wrong |= {f"{name} of {kind}": outcome for name, outcome in failed(found).items()}
        passed = [name for name in tests if not any(each.startswith(f"{name}::") for each in wrong)]
        # As it is by now: somebody else may have noted more.
        told = {name: digest for name, digest in noted().items() if name in now}
        told |= {name: now[name] for name in passed}
        NOTED.write_text(_HEAD + "".join(f"{name} {told[name]}\n" for name in sorted(told)), encoding="utf-8")
        print(f"passed: {' '.join(passed)}", *(f"{outcome}: {name}" for name, outcome in wrong.items()), sep="\n")
        bad = bad or bool(wrong)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
