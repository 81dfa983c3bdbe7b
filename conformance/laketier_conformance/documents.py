"""Tables of texts and vectors, indexes of them, and what a search of them has to find: found out by looking at each
row."""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laketier.spi import (
    Boolean,
    Boost,
    BuiltIndexPart,
    ConfigError,
    FeatureNotSupported,
    IndexInfo,
    IndexKind,
    IndexMode,
    IndexPlan,
    IndexSpec,
    LakeIndexer,
    LakeSearcher,
    Match,
    MultiMatch,
    Phrase,
    SearchQuery,
    WriteMode,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.lake import QUICK, Lake, Table, token

TEXTS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("doc", pa.string()), ("title", pa.string()), ("size", pa.int64())]
)
WORDS = ("kolt", "zarn", "brim", "dusk", "fenk", "golm", "hask", "jund", "lurk", "mold", "nork", "parl")
"""None is in another, and no language shortens or drops one."""
ALL = 10_000
INDEX, FILTERED = "of_doc", "of_size"


def text_of(id: int) -> str | None:
    """The text of a row: words in this or that case, with points and commas. Some are empty, some null, some twice."""
    if id % 17 == 5:
        return None
    chance = random.Random(id - 1 if id % 10 == 7 else id)  # so that some rows have the same score
    words = [chance.choice(WORDS) for _ in range(0 if id % 19 == 4 else chance.randint(2, 9))]
    cased = (chance.choice((word, word, word.title(), word.upper())) for word in words)
    return "".join(word + chance.choice((" ", " ", ", ", ". ", "\n")) for word in cased)


def size_of(id: int) -> int | None:
    """A number of a row, which several rows have."""
    return None if id % 13 == 6 else id * 7 % 11


def documents(ids: Sequence[int]) -> pa.RecordBatch:
    """Rows of `TEXTS`: everything follows from the id."""
    texts, titles = [text_of(i) for i in ids], [text_of(i + 5_000_000) for i in ids]
    columns = [pa.array(ids, pa.int64()), pa.array(texts), pa.array(titles, pa.string()), [size_of(i) for i in ids]]
    return pa.record_batch([*columns[:3], pa.array(columns[3], pa.int64())], schema=TEXTS)


def words_of(text: str | None) -> list[str]:
    """The words of a text, as an index has them that keeps each: in lower case."""
    return re.findall(r"[a-z0-9]+", (text or "").lower())


def matches(query: SearchQuery | str, id: int) -> bool:
    """Whether a row is one that a query of words asks for."""
    match query:
        case str():
            return matches(Match(query), id)
        case Match():
            return _any_or_all(query.operator, query.text, _text(query.column, id))
        case MultiMatch():
            return any(_any_or_all(query.operator, query.text, _text(column, id)) for column in query.columns)
        case Phrase():
            asked, words = words_of(query.text), words_of(_text(query.column, id))
            return any(words[at : at + len(asked)] == asked for at in range(len(words)))
        case Boolean():
            return (
                all(matches(each, id) for each in query.must)
                and (bool(query.must) or any(matches(each, id) for each in query.should))
                and not any(matches(each, id) for each in query.must_not)
            )
        case Boost():
            return matches(query.query, id)
    raise TypeError(f"no query of words: {query}")


def _text(column: str | None, id: int) -> str | None:
    return text_of(id + 5_000_000) if column == "title" else text_of(id)


def _any_or_all(operator: str, asked: str, text: str | None) -> bool:
    found = set(words_of(text))
    return (all if operator == "and" else any)(word in found for word in words_of(asked))


QUERIES: Mapping[str, tuple[SearchQuery, ...]] = {
    "any": (*map(Match, WORDS), Match("kolt zarn"), Match("BRIM, dusk. Golm"), Match("quux")),
    "all": (Match("kolt zarn", operator="and"), Match("brim dusk fenk", operator="and"), Match("hask", operator="and")),
    "phrase": (Phrase("kolt zarn"), Phrase("Jund lurk"), Phrase("mold mold"), Phrase("parl")),
    "boolean": (
        Boolean(must=(Match("kolt"),), must_not=(Match("zarn"),)),
        Boolean(should=(Match("golm"), Match("hask")), must_not=(Match("jund"), Match("lurk"))),
        Boolean(must=(Match("nork"), Match("parl")), should=(Match("dusk"),)),
        Boolean(must=(Boolean(should=(Match("fenk"), Match("mold"))),), must_not=(Match("brim"),)),
    ),
    "boost": (Boost(Match("kolt"), Match("zarn")), Boost(Match("golm hask"), Match("dusk"), factor=1.0)),
}
"""By name: queries of the only column with a full-text index."""
PHRASES = ("phrase",)


@dataclass(frozen=True)
class Documents:
    """A table of `TEXTS`, and which rows are in it."""

    table: Table
    options: Mapping[str, Any]
    """Of its full-text index."""
    ids: list[int] = field(default_factory=list)
    pipeline: str = "p"

    @classmethod
    def of(cls, lake: Lake, harness: Harness, name: str = "db.t") -> Documents:
        """An empty one."""
        return cls(lake.create(TEXTS, name), harness.text_options)

    # -- rows -------------------------------------------------------------------------------------------------------

    def append(self, epoch: int, *tasks: Iterable[int], mode: WriteMode = WriteMode.APPEND) -> RoundOutcome:
        """A whole round."""
        factory = self.table.factory
        tiering = TieringRound(factory, token=token(epoch, self.pipeline), mode=mode, policy=QUICK)
        tiering.begin()
        staged = [list(task) for task in tasks]
        results = [self.table.stage_arrow([documents(ids)], mode=mode, split_index=n) for n, ids in enumerate(staged)]
        outcome = tiering.commit(results).outcome
        if mode is WriteMode.OVERWRITE:
            self.ids.clear()
        if outcome is RoundOutcome.PUBLISHED:
            self.ids.extend(each for ids in staged for each in ids)
        return outcome

    def filled(self, rounds: int = 4, rows: int = 60) -> Documents:
        """With some rounds of one file each."""
        for epoch in range(rounds):
            self.append(epoch, range(epoch * rows, (epoch + 1) * rows))
        return self

    def deleted(self, harness: Harness, ids: Sequence[int]) -> None:
        """Others delete rows. Ask `Harness.delete_rows` first."""
        assert harness.delete_rows is not None
        harness.delete_rows(self.table.lake.storage, self.table.info, ids)
        for each in ids:
            self.ids.remove(each)

    # -- indexes ----------------------------------------------------------------------------------------------------

    @property
    def indexer(self) -> LakeIndexer:
        """From a fresh handle."""
        return self.table.lake.storage.indexer(self.table.info)

    @property
    def spec(self) -> IndexSpec:
        """Of the words of ``doc``."""
        return IndexSpec(INDEX, "doc", IndexKind.INVERTED, self.options)

    def built(
        self,
        parts: int = 2,
        mode: IndexMode = IndexMode.CREATE,
        spec: IndexSpec | None = None,
        *,
        at_once: bool = False,
    ) -> tuple[IndexPlan, list[BuiltIndexPart]]:
        """What tasks built that got the builder as an engine sends it. ``at_once``: each part twice, at the same time;
        the second counts."""
        plan = self.indexer.plan(spec or self.spec, parts, mode)
        wire = pickle.dumps(plan.builder.train())

        def build(part: Any) -> BuiltIndexPart:
            built: BuiltIndexPart = pickle.loads(wire).build(part)  # noqa: S301 - as an engine sends it to its tasks
            return built

        if not at_once:
            return plan, [build(part) for part in plan.parts]
        with ThreadPoolExecutor(2 * len(plan.parts)) as pool:
            pairs = list(pool.map(build, (*plan.parts, *plan.parts)))
        return plan, pairs[len(plan.parts) :]

    def index(self, parts: int = 2, mode: IndexMode = IndexMode.CREATE, spec: IndexSpec | None = None) -> IndexInfo:
        """Build and publish. An index that tells its settings tells those that it was given."""
        plan, built = self.built(parts, mode, spec)
        info = self.indexer.publish(plan, built)
        given = (spec or self.spec).options
        told = {name: value for name, value in info.options.items() if given.get(name) is not None}
        expect(told, {name: given[name] for name in told}, f"what an index of {info.column} tells of its settings")
        return info

    # -- questions --------------------------------------------------------------------------------------------------

    @property
    def searcher(self) -> LakeSearcher:
        """From a fresh handle."""
        return self.table.lake.storage.searcher(self.table.info)

    def found(self, query: SearchQuery | str, k: int = ALL, **more: Any) -> list[int]:
        """The ids of the best rows, the best first."""
        found: list[int] = self.searcher.search(query, k=k, columns=["id"], **more).rows["id"].to_pylist()
        return found

    def scored(self, query: SearchQuery | str) -> dict[int, float]:
        """All rows that match, and their scores."""
        rows = self.searcher.search(query, k=ALL, columns=["id"]).rows
        return dict(zip(rows["id"].to_pylist(), rows["_score"].to_pylist(), strict=True))

    def expected(self, query: SearchQuery | str, keep: Callable[[int], bool] = lambda _: True) -> list[int]:
        """The ids of the rows that match, sorted, from a look at each."""
        return sorted(i for i in self.ids if keep(i) and matches(query, i))

    @property
    def order(self) -> list[int]:
        """The ids in the order of the table."""
        found: list[int] = self.table.read(columns=("id",))["id"].to_pylist()
        return found


def kind_of_numbers(indexer: LakeIndexer, column: str) -> IndexKind:
    """The first kind of index of integers that a format builds."""
    for kind in (IndexKind.BTREE, IndexKind.BITMAP, IndexKind.ZONEMAP, IndexKind.BLOOMFILTER):
        try:
            indexer.plan(IndexSpec(FILTERED, column, kind), 1)
        except FeatureNotSupported:
            continue
        except ConfigError:
            pass  # of an empty table it plans none
        return kind
    raise AssertionError("the format builds indexes: of integers it builds btree, bitmap, zonemap or bloomfilter")
