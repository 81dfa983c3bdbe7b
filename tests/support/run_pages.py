"""Runs the examples of pages as a reader would: ``python run_pages.py PAGE…``. Prints one JSON object: page → null, or
what failed.

Each page begins with an empty folder, and has a Python of its own in which nothing is defined or imported
(`page_interpreter`). A session of Spark is there when the page has made one, and ends with the page. Pages share its
JVM, as a program shares that of ``spark-submit``, since a cold one costs ten seconds. A command is a process of
its own, forked, because importing the command line takes a second. So nothing that one page did helps the next.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import launch_gateway

from laketier.cli.app import main as laketier
from snippets import Snippet, snippets

INTERPRETER = Path(__file__).with_name("page_interpreter.py")


def main(pages: list[str]) -> None:
    # As in an activated environment: Spark takes the `python3` that the PATH holds.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    given = [str(Path(page).resolve(strict=True)) for page in pages]
    results: dict[str, str | None] = {}
    # One folder, emptied: relative paths mean that in which Spark's JVM was started.
    with tempfile.TemporaryDirectory(prefix="laketier-pages-") as folder:
        os.chdir(folder)
        jvm = Jvm()
        for page in given:
            for left in Path(folder).iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            results[page] = run_page(page, jvm)
        jvm.end()
        os.chdir("/")
    sys.stdout.write("\n" + json.dumps(results))


def run_page(page: str, jvm: Jvm) -> str | None:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        python = PagePython(page, said.fileno(), jvm)
        try:
            for snippet in snippets(Path(page)):
                failure = None if snippet.why_not is not None else run(page, snippet, python, said.fileno())
                if failure is not None:
                    said.seek(0)
                    return f"{page}:{snippet.line}\n{failure}\n{said.read()[-4000:]}"
        finally:
            python.end()
    return None


def run(page: str, snippet: Snippet, python: PagePython, said: int) -> str | None:
    if snippet.title is not None:
        target = Path(snippet.title)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(snippet.code, encoding="utf-8")
    elif snippet.language == "python":
        return python.run(snippet)
    elif snippet.language == "bash":
        for line in snippet.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and (failure := run_command(words, said)) is not None:
                return failure
    return None


def run_command(words: list[str], said: int) -> str | None:
    if words[0] != "laketier":
        return f"only commands of laketier are run here, and this is {shlex.join(words)}: excuse its block, and say why"
    child = os.fork()
    if child == 0:
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.argv = words
        code: object = 1
        try:
            laketier()
            code = 0
        except SystemExit as end:
            code = end.code
        except BaseException:  # noqa: BLE001 - as Python itself ends with one
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"{shlex.join(words)}: exit code {code}" if code else None


class Jvm:
    """The JVM that pages share; started for the first page that speaks of Spark."""

    def __init__(self) -> None:
        self._gateway: JavaGateway | None = None

    def environment(self, page: str) -> dict[str, str]:
        """Where the Python of ``page`` finds it: the variables by which ``spark-submit`` tells its program."""
        if "spark" not in "".join(each.code for each in snippets(Path(page)) if each.language == "python"):
            return {}
        if self._gateway is None:
            self._gateway = launch_gateway()
        parameters = self._gateway.gateway_parameters
        return {"PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}

    def end(self) -> None:
        if self._gateway is not None:
            self._gateway.shutdown()
            self._gateway.proc.stdin.close()
            self._gateway.proc.wait()


class PagePython:
    """The interpreter of a page; it lives as long as the page, beside the page's commands."""

    def __init__(self, page: str, said: int, jvm: Jvm) -> None:
        answers, told = os.pipe()
        self._page = page
        self._process = subprocess.Popen(
            [sys.executable, str(INTERPRETER), str(told)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            text=True,
            pass_fds=[told],
            env={**os.environ, **jvm.environment(page)},
        )
        os.close(told)
        self._answers = os.fdopen(answers, encoding="utf-8")

    def run(self, snippet: Snippet) -> str | None:
        assert self._process.stdin is not None
        block = {"page": self._page, "line": snippet.line, "code": snippet.code}
        self._process.stdin.write(json.dumps(block) + "\n")
        self._process.stdin.flush()
        answer = self._answers.readline()
        if not answer:
            return f"the page's Python ended with {self._process.wait()}"
        failure: str | None = json.loads(answer)
        return failure

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._answers.close()


if __name__ == "__main__":
    main(sys.argv[1:])
