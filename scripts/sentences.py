"""Draws sentences of docstrings and pages at random, beside those that stand at the same places in a later commit.

    python scripts/sentences.py --seed 20261122 --count 20 42a7465 main

Nothing is checked out. The sentences are those of the public docstrings below ``--package`` (all packages with
``--package ''``), and of the pages: README.md, docs/, and the README of each plugin. Code, tables and headings are no
sentences.

A *place* is the docstring of a symbol, or a section of a page. Only sentences from places that still exist are drawn.
A place is followed in this order: the same symbol or heading in the file that git takes for the renamed one; the only
symbol or section of that name anywhere. Beside a sentence stands the most similar one that the place has now, by the
words that both have in common. Where none is similar, it is the one that is as far into the place, with a †.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import random
import re
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import PurePosixPath

_PACKAGES = re.compile(r"(core|conformance|plugins/\w+)/(laketier\w*/.*)\.py")
_PAGES = re.compile(r"README\.md|plugins/\w+/README\.md|docs/(?!proof/(?:faults|sentences)\.md).*\.md")
_CODE = re.compile(r"^([ \t]*)(`{3,}|~{3,}).*?^\1\2[ \t]*$|^<!--.*?-->", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}[^\n]*\n)+")
_LITERAL = re.compile(r"(?<=:):\n\n(?: +[^\n]*(?:\n|\Z)|\n)+")
_HEADING = re.compile(r"#+ +(?P<text>.+)")
_NO_PROSE = re.compile(r"\s*(?:\||!!!|>>>|=+(?:\s|$)|-{3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
_SECTION = re.compile(r"(?:Args|Attributes|Returns|Raises|Yields):")
_NAMED = re.compile(r"\s{4,}\*{0,2}[A-Za-z_]\w*: ")
_END = re.compile(r"(?<=[.!?])[*_)\"]*\s+(?=[`*\[(\"]*[A-Z0-9`~…])")
_ABBREVIATION = re.compile(r"(?:e\.g|i\.e|etc|vs|cf)\.\Z")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_LEAST_WORDS = 4
_LEAST_SIMILAR = 0.3

Place = tuple[str, str]
"""A path, and a symbol or a heading in it."""


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs and list items of a text, each in one line."""
    lines: list[str] = []
    for line in [*_LITERAL.sub("\n\n", _CODE.sub("\n", text)).expandtabs().splitlines(), ""]:
        starts = _ITEM.match(line) or _NAMED.match(line)
        ends = not line.strip() or _NO_PROSE.match(line) or _HEADING.match(line) or _SECTION.fullmatch(line.strip())
        if (starts or ends) and lines:
            yield " ".join(lines)
            lines = []
        if not ends:
            rest = line[starts.end() :] if starts else line
            lines.append(rest.strip())


def sentences(text: str) -> list[str]:
    """The sentences of a text, in their order."""
    found: list[str] = []
    for paragraph in paragraphs(text):
        start = ""
        for part in _END.split(paragraph):
            start = f"{start} {part}".strip()
            if not _ABBREVIATION.search(start):
                found.append(start)
                start = ""
    return [sentence for sentence in found if len(sentence.split()) >= _LEAST_WORDS]


def docstrings(source: str) -> Iterator[tuple[str, str]]:
    """The public symbols of a module and their docstrings. Strings below assignments count as docstrings."""

    def of(body: list[ast.stmt], name: str) -> Iterator[tuple[str, str]]:
        last = name
        for node in body:
            match node:
                case ast.ClassDef(name=own) | ast.FunctionDef(name=own) if not own.startswith("_"):
                    yield from of(node.body, f"{name}.{own}".strip("."))
                case ast.Assign(targets=[ast.Name(id=own)]) | ast.AnnAssign(target=ast.Name(id=own)):
                    last = f"{name}.{own}".strip(".")
                case ast.Expr(value=ast.Constant(value=str(text))) if not last.split(".")[-1].startswith("_"):
                    yield last, inspect.cleandoc(text)

    yield from of(ast.parse(source).body, "")


def sections(text: str) -> Iterator[tuple[str, str]]:
    """The sections of a page: heading and text."""
    heading, lines = "", list[str]()
    for line in _INDENTED.sub("", _CODE.sub("\n", text)).splitlines():
        if match := _HEADING.match(line):
            yield heading, "\n".join(lines)
            heading, lines = match["text"], []
        else:
            lines.append(line)
    yield heading, "\n".join(lines)


def files(commit: str) -> Iterator[tuple[str, str]]:
    """The modules and pages of a commit."""
    packed = subprocess.run(["git", "archive", "--format=tar", commit], check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.isfile() and (_PACKAGES.fullmatch(member.name) or _PAGES.fullmatch(member.name)):
                content = archive.extractfile(member)
                assert content is not None
                yield member.name, content.read().decode()


def places(found: Iterable[tuple[str, str]]) -> dict[Place, list[str]]:
    """The sentences of each place of these files."""
    prose: dict[Place, list[str]] = defaultdict(list)
    for path, text in found:
        for name, part in docstrings(text) if path.endswith(".py") else sections(text):
            prose[path, name].extend(sentences(part))
    return {place: of_place for place, of_place in prose.items() if of_place}


def renamed(before: str, after: str) -> dict[str, str]:
    """The files that git takes for renamed, by their former paths."""
    command = ["git", "diff", "--name-status", "-z", "--diff-filter=R", "-M40%", "-l0", before, after]
    parts = iter(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0"))
    return {next(parts): next(parts) for status in parts if status}


def follow(place: Place, now: Mapping[Place, list[str]], moved: Mapping[str, str]) -> Place | None:
    """The same place in the later commit. None if it is gone, or more than one could be meant."""
    path, name = place
    same = (moved.get(path, path), name)
    if same in now:
        return same
    kind = PurePosixPath(path).suffix
    named = [other for other in now if name and other[1] == name and PurePosixPath(other[0]).suffix == kind]
    return named[0] if len(named) == 1 else None


def words(sentence: str) -> list[str]:
    """The words of a sentence, in lower case."""
    return re.findall(r"\w+", sentence.lower())


def beside(sentences_before: list[str], index: int, now: list[str]) -> str:
    """The sentence of a place that stands for one that the place had."""
    old = words(sentences_before[index])
    likeness = [SequenceMatcher(None, old, words(each), autojunk=False).ratio() for each in now]
    best = max(likeness)
    if best < _LEAST_SIMILAR:
        return f"† {now[index * len(now) // len(sentences_before)]}"
    return now[likeness.index(best)]


def draw(before: str, after: str, package: str, count: int, seed: int) -> tuple[list[tuple[Place, str, str]], str]:
    """Draw sentences of ``before``, with those of ``after``; and a line on what was drawn from."""
    then, now, moved = places(files(before)), places(files(after)), renamed(before, after)
    of_package = re.compile(rf"(?:core|conformance|plugins/\w+)/{re.escape(package)}.*\.py|.*\.md")
    pool = [
        (place, index, followed)
        for place in sorted(then)
        if of_package.fullmatch(place[0]) and (followed := follow(place, now, moved))
        for index in range(len(then[place]))
    ]
    every = [place for place in then if of_package.fullmatch(place[0])]
    drawn = [
        (followed, then[place][index], beside(then[place], index, now[followed]))
        for place, index, followed in random.Random(seed).sample(pool, count)
    ]
    kept = sum(then[place][index] in now[followed] for place, index, followed in pool)
    told = (
        f"{sum(len(then[place]) for place in every):,} sentences in {len(every):,} places; {len(pool):,} of them are "
        f"in places that still exist, and {kept:,} of these stand there unchanged"
    )
    return drawn, told


def table(drawn: Iterable[tuple[Place, str, str]]) -> Iterator[str]:
    """A Markdown table of pairs."""
    yield "| # | where it stands now | before | after |"
    yield "|---:|---|---|---|"
    for number, ((path, name), old, new) in enumerate(drawn, start=1):
        where = f"`{path}`" + (f", {name}" if path.endswith(".md") and name else f" `{name}`" if name else "")
        cells = [where, old, "*unchanged*" if old == new else new]
        shown = [_LINK.sub(r"\1", cell).replace("|", "&#124;") for cell in cells]
        yield f"| {number} | {' | '.join(shown)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default="HEAD")
    parser.add_argument("--package", default="laketier/spi/", help="the docstrings to draw from, by their folder")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    drawn, told = draw(given.before, given.after, given.package, given.count, given.seed)
    print(f"Drawn from {told}.\n", *table(drawn), sep="\n")


if __name__ == "__main__":
    main()
