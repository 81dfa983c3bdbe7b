"""``python -m benchmarks.jieba_dictionary DICT FOLDER``: a small dictionary for the tokenizer ``jieba``.

pylance reads the dictionary for each query and segment, and jieba's has 349,046 words. The first Chinese paragraphs
hold few of them. A dictionary of these alone cuts these paragraphs the same way, as long as all weights keep their
sum: what was left out is the weight of one word that no text has.

``DICT`` is ``jieba/dict.txt`` of the package (``pip download --no-deps jieba==0.42.1``).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks import paragraphs

_NOWHERE = "\ue000"
"""A letter for private use: no paragraph has it."""


def words(dictionary: Path) -> list[tuple[str, int]]:
    """The words of the package's dictionary, and the weight of each."""
    lines = dictionary.read_text(encoding="utf-8").splitlines()
    return [(word, int(weight)) for word, weight, *_ in (line.split(" ") for line in lines)]


def write(known: list[tuple[str, int]], texts: list[str], folder: Path) -> int:
    """Write the words of ``texts`` below ``folder``, as pylance reads them; returns how many words those are."""
    longest = max(len(word) for word, _ in known)
    pieces = {
        text[at : at + size].lower() for text in texts for at in range(len(text)) for size in range(1, longest + 1)
    }
    kept = [(word, weight) for word, weight in known if word.lower() in pieces]
    rest = sum(weight for _, weight in known) - sum(weight for _, weight in kept)
    home = folder / "jieba" / "default"
    home.mkdir(parents=True, exist_ok=True)
    lines = (f"{word} {weight} n\n" for word, weight in [*kept, (_NOWHERE, rest)])
    (home / "dict.txt").write_text("".join(lines), encoding="utf-8")
    (home / "config.json").write_text(json.dumps({"main": "dict.txt"}), encoding="utf-8")
    return len(kept)


def main() -> None:
    """Write the dictionary, and say how to use it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jieba_dictionary", description=__doc__)
    parser.add_argument("dictionary", type=Path, help="dict.txt of the package jieba")
    parser.add_argument("folder", type=Path, help="where the dictionary goes, in a folder `jieba/default`")
    parser.add_argument("--rows", type=int, default=10_000, help="Chinese paragraphs whose words it has (10,000)")
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where the corpus is (build/bench)")
    given = parser.parse_args()
    work: Path = given.work.resolve()
    known = words(given.dictionary)
    texts = paragraphs.texts(work, paragraphs.CHINESE, given.rows)["text"].to_pylist()
    kept = write(known, texts, given.folder.resolve())
    print(f"{kept:,} of {len(known):,} words; use it with LANCE_LANGUAGE_MODEL_HOME={given.folder.resolve()}")


if __name__ == "__main__":
    main()
