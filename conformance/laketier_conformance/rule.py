"""A rule of the contract, and the pages that explain them."""

from __future__ import annotations

from dataclasses import dataclass

GUIDE, DEPTH, SPI = "docs/authors/guide.md", "docs/authors/depth.md", "docs/reference/spi.md"
CATALOG = f"{GUIDE}#2-the-catalog-driver"
FACTORY = f"{GUIDE}#3-the-factory-crosses-to-executors"
WRITER = f"{GUIDE}#4-the-writer-executor"
COMMITTER = f"{GUIDE}#5-the-committer-driver-one-attempt"
STATE = f"{GUIDE}#6-the-state-for-readers-driver"
SOURCE = f"{GUIDE}#7-the-source"
CAPABILITIES = f"{GUIDE}#8-capabilities-optional-parts-of-a-format"
REFUSALS = "docs/authors/refusals.md#unstorablerows"
ENTRY = f"{GUIDE}#1-the-entry-point"


@dataclass(frozen=True)
class Rule:
    """``tests`` are files of the suite, or single tests: ``test_a.py::test_b``. ``guide`` is a page and its anchor."""

    id: str
    sentence: str
    guide: str
    tests: tuple[str, ...]
