"""Runs the examples of pages, one Spark for all: ``python run_pages.py PAGE…``.

They run in an empty folder that is made for them, and emptied after each page: never in that of the caller. A process
of its own, because relative paths mean the folder in which Spark's JVM was started. Prints one JSON object: page →
null, or what failed.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

from typer.testing import CliRunner

import laketier.spark
from laketier.cli.app import app
from snippets import Snippet, snippets

CLI = CliRunner()


def main(pages: list[str]) -> None:
    given = [str(Path(page).resolve(strict=True)) for page in pages]
    with tempfile.TemporaryDirectory(prefix="laketier-pages-") as folder:
        os.chdir(folder)
        run_pages(given, Path(folder))
        os.chdir("/")


def run_pages(pages: list[str], folder: Path) -> None:
    results: dict[str, str | None] = {}
    spark = laketier.spark.get_or_create(master="local[2]")
    for page in pages:
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        names: dict[str, object] = {"spark": spark, "__name__": "__main__"}
        results[page] = None
        try:
            for snippet in snippets(Path(page)):
                if snippet.why_not is None:
                    run(page, snippet, names)
        except BaseException:  # noqa: BLE001 - the test shows it
            results[page] = traceback.format_exc()
    spark.stop()
    sys.stdout.write("\n" + json.dumps(results))


def run(page: str, snippet: Snippet, names: dict[str, object]) -> None:
    if snippet.title is not None:
        target = Path(snippet.title)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(snippet.code, encoding="utf-8")
    elif snippet.language == "python":
        # Blank lines before the code, so that a traceback names the page's own line.
        exec(compile("\n" * (snippet.line - 1) + snippet.code, page, "exec"), names)  # noqa: S102 - a page of ours
    elif snippet.language == "bash":
        for line in snippet.code.replace("\\\n", " ").splitlines():
            run_line(page, snippet, line.partition(" #")[0].strip())


def run_line(page: str, snippet: Snippet, line: str) -> None:
    if not line.startswith("laketier "):
        return
    done = CLI.invoke(app, shlex.split(line)[1:])
    assert done.exit_code == 0, f"{page}:{snippet.line}: {line}\n{done.output}{done.exception!r}"


if __name__ == "__main__":
    main(sys.argv[1:])
