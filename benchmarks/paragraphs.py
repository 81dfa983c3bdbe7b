"""``python -m benchmarks.paragraphs``: distinct paragraphs of English and Chinese from Debian's packages.

The packages are downloaded with ``apt-get download``, not installed, and read as they are: HTML, manual pages, plain
text and its markups. Needs ``apt-get``, ``dpkg-deb`` and a list of packages (``apt-get update``).
"""

from __future__ import annotations

import argparse
import gzip
import html
import re
import subprocess
import tarfile
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PACKAGES = (
    "cppreference-doc-en-html",
    "debian-handbook",
    "debian-reference-zh-cn",
    "emacs-common",
    "git-doc",
    "golang-1.19-doc",
    "libboost1.74-doc",
    "libreoffice-help-en-us",
    "libreoffice-help-zh-cn",
    "linux-doc-6.1",
    "manpages",
    "manpages-dev",
    "manpages-zh",
    "openjdk-17-doc",
    "perl-doc",
    "postgresql-doc-15",
    "python3.11-doc",
    "rust-doc",
    "sqlite3-doc",
    "vim-runtime",
)
SCHEMA = pa.schema([("id", pa.int64()), ("language", pa.string()), ("text", pa.string())])
ENGLISH, CHINESE = "en", "zh"

_LONGEST = 2_000
_FEWEST = {ENGLISH: 40, CHINESE: 12}
"""Characters that a paragraph has at least."""

_HTML = re.compile(r"\.x?html?$")
_MANUAL = re.compile(r"\.([1-9]\w*)$")
_PLAIN = re.compile(
    r"\.(txt|rst|md|pod|org|adoc|asciidoc|news|info(-\d+)?)$|/(NEWS|README|changelog)[^/]*$", re.IGNORECASE
)
_UNSEEN = re.compile(r"<(script|style|head|svg)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(
    r"</?(?:p|div|li|td|th|tr|h[1-6]|dt|dd|dl|pre|table|ul|ol|section|article|blockquote|main|nav|summary|details)\b[^>]*>"
    r"|<br\s*/?>\s*<br\s*/?>",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]*>")
_MACRO = re.compile(r"^[.'](?:B|I|BR|RB|IR|RI|BI|IB|SM|SB)\s+", re.MULTILINE)
_BREAK = re.compile(r"^[.'].*$", re.MULTILINE)
_ESCAPE = re.compile(r"\\(?:f[A-Z]|f\[\w*\]|f\(..|s[+-]?\d|&|-|\(..|\[\w+\]|[~ ^|/,])")
_IDEOGRAPHS = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z]{2,}")


def corpus(work: Path) -> Path:
    """The Parquet file with all paragraphs (id, language, text), which is made once below ``work``."""
    target = work / "paragraphs.parquet"
    if not target.exists():
        packages = work / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        _download(packages)
        partial = target.with_suffix(".partial")
        _write(sorted(packages.glob("*.deb")), partial)
        partial.rename(target)
    return target


def texts(work: Path, language: str, rows: int | None = None) -> pa.Table:
    """``rows`` paragraphs of a language, or all: ``id`` and ``text``, spread over all packages, always the same."""
    table = pq.read_table(corpus(work), filters=[("language", "=", language)], columns=["id", "text"])
    if rows is None or rows >= len(table):
        return table
    return table.take([number * len(table) // rows for number in range(rows)])


def _download(folder: Path) -> None:
    there = {path.name.partition("_")[0] for path in folder.glob("*.deb")}
    missing = [name for name in PACKAGES if name not in there]
    if missing:
        subprocess.run(["apt-get", "download", "-q", *missing], cwd=folder, check=True)


def _write(packages: list[Path], target: Path) -> None:
    seen: set[str] = set()
    with (
        pq.ParquetWriter(target, SCHEMA, compression="zstd") as writer,
        ProcessPoolExecutor(2, get_context("spawn")) as pool,
    ):
        for found in pool.map(_of_package, packages):
            new = [(language, text) for text, language in found.items() if text not in seen]
            ids = pa.array(range(len(seen), len(seen) + len(new)), pa.int64())
            columns = [ids, pa.array([each[0] for each in new]), pa.array([each[1] for each in new])]
            writer.write_table(pa.table(columns, schema=SCHEMA))
            seen.update(text for _, text in new)


def _of_package(package: Path) -> dict[str, str]:
    """The distinct paragraphs of a package, each with its language."""
    found: dict[str, str] = {}
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as archive,
    ):
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            for text in () if stream is None else _paragraphs(member.name, stream.read()):
                language = _language(text)
                if language is not None:
                    found.setdefault(text, language)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return found


def _paragraphs(name: str, data: bytes) -> Iterator[str]:
    if name.endswith(".gz"):
        name = name.removesuffix(".gz")
        with suppress(OSError, EOFError, zlib.error):
            data = gzip.decompress(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if _HTML.search(name):
        blocks = (html.unescape(_TAG.sub(" ", each)) for each in _BLOCK.split(_UNSEEN.sub(" ", text)))
    elif "/man/" in name and _MANUAL.search(name):
        blocks = (_ESCAPE.sub("", each) for each in _BREAK.split(_MACRO.sub("", text)))
    elif _PLAIN.search(name):
        blocks = iter(re.split(r"\n\s*\n", text))
    else:
        return
    for block in blocks:
        yield " ".join(block.split())[:_LONGEST]


def _language(text: str) -> str | None:
    """The language of a paragraph. None where it is too short to be one, or neither."""
    if len(text) < _FEWEST[CHINESE]:
        return None
    if len(_IDEOGRAPHS.findall(text)) * 5 > len(text):
        return CHINESE
    in_words = sum(map(len, _WORD.findall(text)))
    return ENGLISH if len(text) >= _FEWEST[ENGLISH] and in_words * 2 > len(text) else None


def main() -> None:
    """Make the corpus and say what is in it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paragraphs", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where it goes (build/bench)")
    work: Path = parser.parse_args().work.resolve()
    began = time.perf_counter()
    path = corpus(work)
    table = pq.read_table(path)
    for each in table.group_by("language").aggregate([("id", "count")]).to_pylist():
        print(f"{each['language']}: {each['id_count']:,} paragraphs")
    print(f"{path}, {path.stat().st_size / 1e6:.0f} MB, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
