"""`scripts/sentences.py` finds the sentences of docstrings and pages, and follows their places."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import sentences

MODULE = '''
"""Reads logs. It runs on the driver only::

    code = "is no sentence. It is code."

This line is prose again.
"""

LIMIT = 3
"""The greatest number of tries."""


class Reader:
    """Reads one log, e.g. of a topic."""

    def read(self, path):
        """Read the rows of a log.

        Args:
            path: The path of the log. None reads nothing at all.

        Returns:
            The rows in their order.
        """

    def _own(self):
        """Nobody reads this sentence here."""
'''

PAGE = """
# Logs

A log grows, as `1. a. b` shows.
It never shrinks again.

| no | prose |
|---|---|

- **Each item** is a paragraph.

## Ranges

```python
print("this is no sentence either")
```

A range has two ends.

    pip install laketier and its plugins

"""


def test_sentences_of_docstrings() -> None:
    assert {place: said for (_, place), said in sentences.places([("core/laketier/m.py", MODULE)]).items()} == {
        "": ["It runs on the driver only:", "This line is prose again."],
        "LIMIT": ["The greatest number of tries."],
        "Reader": ["Reads one log, e.g. of a topic."],
        "Reader.read": [
            "Read the rows of a log.",
            "The path of the log.",
            "None reads nothing at all.",
            "The rows in their order.",
        ],
    }


def test_sentences_of_pages() -> None:
    assert sentences.places([("docs/logs.md", PAGE)]) == {
        ("docs/logs.md", "Logs"): [
            "A log grows, as `1. a. b` shows.",
            "It never shrinks again.",
            "**Each item** is a paragraph.",
        ],
        ("docs/logs.md", "Ranges"): ["A range has two ends."],
    }


@pytest.mark.parametrize(
    ("place", "followed"),
    [
        (("core/laketier/a.py", "A.read"), ("core/laketier/a.py", "A.read")),
        (("core/laketier/old.py", "B"), ("core/laketier/new.py", "B")),
        (("core/laketier/gone.py", "C.plan"), ("core/laketier/new.py", "C.plan")),
        (("core/laketier/gone.py", "close"), None),
        (("core/laketier/gone.py", ""), None),
        (("docs/old.md", "B"), None),
    ],
)
def test_places_are_followed(place: sentences.Place, followed: sentences.Place | None) -> None:
    now = {
        ("core/laketier/a.py", "A.read"): ["one"],
        ("core/laketier/a.py", "close"): ["one"],
        ("core/laketier/new.py", "B"): ["one"],
        ("core/laketier/new.py", "C.plan"): ["one"],
        ("core/laketier/new.py", "close"): ["one"],
        ("core/laketier/new.py", ""): ["one"],
    }
    assert sentences.follow(place, now, {"core/laketier/old.py": "core/laketier/new.py"}) == followed


def test_the_most_similar_sentence_stands_beside() -> None:
    now = ["Plan the rows of a range.", "A third table records which dead letters were replayed."]
    before = ["Which of its dead letters were replayed says a third table.", "Quite another matter."]
    assert sentences.beside(before, 0, now) == now[1]
    assert sentences.beside(before, 1, now) == f"† {now[1]}"
