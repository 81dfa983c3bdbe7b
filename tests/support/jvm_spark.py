"""Spark with the connectors of others (Iceberg's, Delta's), in a process of its own.

Their jars are for an older line of Spark than the one that the rest runs on, so the process has an environment of its
own: SPARK_LIBS names a folder with the jars, SPARK_PYTHON an interpreter with the pyspark that they are for (4.1).
"""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CHILD = Path(__file__).parent / "jvm_spark_child.py"


class JvmError(Exception):
    """What Spark, or a connector, said."""


class JvmSpark:
    """One JVM for many tests; `session` gives each of them settings and catalogs of its own. Not for threads."""

    def __init__(self, libs: str, python: str, folder: Path) -> None:
        self._log = (folder / "jvm.log").open("wb")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))}
        environment |= {
            "PYSPARK_PYTHON": python,
            "JARS": ",".join(str(jar) for jar in sorted(Path(libs).glob("*.jar"))),
        }
        self._child = subprocess.Popen(
            [python, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, cwd=folder,
            env=environment, text=True,
        )  # fmt: skip

    def session(self, settings: Mapping[str, str]) -> None:
        """Forget the catalogs of the session before, and begin a new one."""
        self._ask(session=dict(settings))

    def sql(self, text: str) -> list[dict[str, Any]]:
        """The rows of a statement; what JSON has no word for, as text. Raises `JvmError`."""
        rows: list[dict[str, Any]] = self._ask(sql=text)
        return rows

    def python(self, code: str, **given: Any) -> Any:
        """Run lines there, with ``spark`` and ``given`` as names, and return what they leave in ``result``."""
        return self._ask(python=textwrap.dedent(code), given=given)

    def close(self) -> None:
        """End the process."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(60)
        self._child.stdout.close()  # type: ignore[union-attr] # it is a pipe
        self._log.close()

    def _ask(self, **request: Any) -> Any:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        try:
            line = self._child.stdout.readline()
        except BaseException:  # pytest's time limit: the answer to come must not be taken for the next one's
            self._child.kill()
            raise
        if not line:
            raise JvmError(f"Spark's process ended with {self._child.wait(60)}; see {self._log.name}")
        answer = json.loads(line)
        if "error" in answer:
            raise JvmError(answer["error"])
        return answer["result"]
