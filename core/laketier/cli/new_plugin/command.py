"""The command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from laketier.cli.lakes import Json
from laketier.cli.new_plugin.distribution import ABOUT, Kind, write_distribution
from laketier.cli.new_plugin.names import names_of
from laketier.cli.shown import print_json, say
from laketier.registry.pages import GUIDE, SOURCES, page

EPILOG = "Example: [bold]laketier new-plugin acme --kind database[/]"


def new_plugin(
    name: Annotated[
        str,
        typer.Argument(
            help="The format, as in lake.format, or the source, as `type` in a service file. The folder laketier-NAME."
        ),
    ],
    kind: Annotated[
        Kind,
        typer.Option(
            help="manifest: data files of yours, with the manifests of laketier's toolbox. table-library: a library "
            "with commits of its own. database: rows in SQL, with the watermark in their transaction. source: no "
            "format, but a source of a log with offsets, for a service."
        ),
    ] = Kind.MANIFEST,
    into: Annotated[Path, typer.Option(help="The folder in which the plugin's folder is made.")] = Path(),
    json: Json = False,
) -> None:
    """Make a format of your own, or a source: a distribution with its tests and CI, which the conformance suite accepts
    as it is. You change it from there, as the guide for authors says. Nothing that exists is changed, and nothing is
    fetched."""
    names = names_of(name, kind.noun)
    folder, files = write_distribution(names, kind, into)
    next_steps = [
        f"cd {shlex.quote(str(folder))}",
        'python -m pip install -e ".[test]"',
        "pytest",
        f"laketier conformance {name}  # with Spark as well: needs Java, and the extra spark of laketier"
        if kind.noun == "format"
        else f"laketier conformance --source {name}  # needs a format to write to: see README.md",
    ]
    if json:
        print_json(
            {
                kind.noun: name,
                "kind": kind.value,
                "distribution": names.distribution,
                "package": names.package,
                "folder": str(folder),
                "files": files,
                "next": next_steps,
            }
        )
        return
    say(f"Made {folder}: a {kind.noun} {name!r}, kind {kind.value}, in {len(files)} files.")
    say(ABOUT[kind].replace("`", ""))
    say("Next:")
    for line in next_steps:
        say(f"  {line}")
    guide = page(GUIDE if kind.noun == "format" else SOURCES)
    say(f"The guide is {guide}; README.md in the folder says where to begin.")
