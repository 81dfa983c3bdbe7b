"""Questions of each type, made of the words of texts. The same texts and seed make the same questions."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from laketier.spi import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery

KINDS = ("term", "any-of", "all-of", "phrase", "fuzzy", "boolean", "boost", "multi-match")

_WORD = re.compile(r"[A-Za-z]{3,}")
_ANY_WORD = re.compile(r"\w+")
_IDEOGRAPHS = re.compile(r"[\u4e00-\u9fff]{2,}")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def questions(
    kind: str,
    texts: Sequence[str],
    count: int,
    *,
    columns: Sequence[str],
    chinese: bool = False,
    phrases: bool = True,
    seed: int = 1,
) -> list[TextQuery]:
    """Make questions.

    Args:
        kind: One of `KINDS`.
        texts: The texts of the first column.
        count: The number of questions.
        columns: The column that is asked about; a multi-match asks about all of them.
        chinese: Cut texts into short runs of ideographs, not into words.
        phrases: Whether the index answers phrases. Where it does not, all words of a phrase are asked for.
        seed: The seed.

    Returns:
        The questions.
    """
    chance = random.Random(f"{kind} {seed}")
    make = _MAKERS[kind]
    found: list[TextQuery] = []
    for _ in range(1000 * count):
        if len(found) == count:
            return found
        text = chance.choice(texts)
        # A phrase is of words side by side, short ones too.
        words = _runs(text, chance) if chinese else (_ANY_WORD if kind == "phrase" else _WORD).findall(text)
        question = make(words, list(columns), chance, chinese) if len(words) >= 6 else None
        if question is not None:
            found.append(question if phrases else _without_phrases(question))
    raise ValueError(f"the {len(texts)} texts are too short for {count} questions of kind {kind}")


def _without_phrases(question: TextQuery) -> TextQuery:
    match question:
        case Phrase(text, column):
            return Match(text, column, operator="and")
        case Boolean(must=must):
            return replace(question, must=tuple(_without_phrases(each) for each in must))
    return question


def _runs(text: str, chance: random.Random) -> list[str]:
    """The ideographs of a text, cut into runs of two or three as chance has it."""
    found: list[str] = []
    for run in _IDEOGRAPHS.findall(text):
        place = 0
        while place < len(run):
            left = len(run) - place
            size = left if left <= 3 else chance.choice((2, 2, 3)) if left > 4 else 2
            found.append(run[place : place + size])
            place += size
    return found


def _term(words: list[str], columns: list[str], chance: random.Random, chinese: bool) -> TextQuery:
    return Match(chance.choice(words), columns[0])


def _any_of(words: list[str], columns: list[str], chance: random.Random, chinese: bool) -> TextQuery:
    return Match(" ".join(chance.sample(words, 3)), columns[0])


def _all_of(words: list[str], columns: list[str], chance: random.Random, chinese: bool) -> TextQuery:
    return Match(" ".join(chance.sample(words, chance.choice((2, 3)))), columns[0], operator="and")


def _phrase(words: list[str], columns: list[str], chance: random.Random, chinese: bool) -> TextQuery:
    size = chance.choice((2, 3, 4))
    first = chance.randrange(len(words) - size)
    return Phrase(("" if chinese else " ").join(words[first : first + size]), columns[0])


def _fuzzy(words: list[str], columns: list[str], chance: random.Random, chinese: bool) -> TextQuery | None:
    """A word with one character more, less or another."""
    long = [word for word in words if len(word) >= (2 if chinese else 5)]
    if not long:
        return None
    word = chance.choice(long)
    place = chance.randrange(1, len(word))
    character = chance.choice("".join(words) if chinese else _ALPHABET)
    ways = [word[:place] + character + word[place:], word[:place] + character + word[place + 1 :]]
    if not chinese:
        ways.append(word[:place] + word[place + 1 :])
    return Match(chance.choice(ways), columns[0], fuzziness=1)


def _boolean(words: list[str], columns: list[str], chance: random.Random, chinese: bool) -> TextQuery:
    must, should, other, not_this = (Match(word, columns[0]) for word in chance.sample(words, 4))
    shapes = [
        Boolean(must=(must,), should=(should, other), must_not=(not_this,)),
        Boolean(should=(must, should, other)),
        Boolean(must=(must, should), must_not=(not_this,)),
        Boolean(must=(_phrase(words, columns, chance, chinese),), should=(should,)),
    ]
    return chance.choice(shapes)


def _boost(words: list[str], columns: list[str], chance: random.Random, chinese: bool) -> TextQuery:
    query, against = (Match(word, columns[0]) for word in chance.sample(words, 2))
    return Boost(query, against, chance.choice((0.25, 0.5)))


def _multi_match(words: list[str], columns: list[str], chance: random.Random, chinese: bool) -> TextQuery:
    return MultiMatch(" ".join(chance.sample(words, 2)), tuple(columns))


_MAKERS: dict[str, Callable[[list[str], list[str], random.Random, bool], TextQuery | None]] = {
    "term": _term,
    "any-of": _any_of,
    "all-of": _all_of,
    "phrase": _phrase,
    "fuzzy": _fuzzy,
    "boolean": _boolean,
    "boost": _boost,
    "multi-match": _multi_match,
}
