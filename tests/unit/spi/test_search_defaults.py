"""What a search does by itself, whatever the format: it goes on to a newer snapshot, or says why it can't."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa
import pytest

from laketier.spi import (
    ConfigError,
    CorruptTable,
    Hybrid,
    IncompatibleTable,
    LakeSearcher,
    Leaf,
    Match,
    Nearest,
    Op,
    SchemaChanged,
    SearchExplain,
    SearchRequest,
    SearchResult,
    SearchSnapshot,
    SnapshotNotFound,
    TableNotFound,
)

SCHEMA = pa.schema([("id", pa.int64()), ("doc", pa.string())])
LOST = CorruptTable("a file is gone", where="db.t")


class Snapshot(SearchSnapshot):
    def __init__(self, number: int, fails: Exception | None, notes: tuple[str, ...] = ()) -> None:
        self._number, self._fails, self._notes = number, fails, notes
        self.asked: list[SearchRequest] = []

    @property
    def snapshot_id(self) -> int:
        return self._number

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    def search(self, request: SearchRequest) -> SearchResult:
        self.asked.append(request)
        if self._fails is not None:
            raise self._fails
        explain = SearchExplain(indexes=(), rows=4, rows_flat=1, notes=self._notes)
        return SearchResult(rows=SCHEMA.empty_table(), snapshot_id=self._number, explain=explain)


class Named(Snapshot):
    identity = "first"


class Searcher(LakeSearcher):
    """``newest``: what each look at the newest snapshot finds, one after the other. ``there``: those by number."""

    def __init__(self, *newest: Snapshot | Exception, there: Sequence[Snapshot] = ()) -> None:
        self.newest, self._there = list(newest), {each.snapshot_id: each for each in there}

    def at(self, snapshot_id: int | None = None) -> SearchSnapshot:
        if snapshot_id is None:
            found = self.newest.pop(0)
            if isinstance(found, Exception):
                raise found
            return found
        if snapshot_id not in self._there:
            raise SnapshotNotFound(f"there is no snapshot {snapshot_id}", where="db.t")
        return self._there[snapshot_id]


def test_a_search_asks_the_newest_snapshot_for_all_that_it_was_asked(caplog: pytest.LogCaptureFixture) -> None:
    newest = Snapshot(3, None, ("all words are dropped",))
    searcher, only = Searcher(newest, there=[newest]), Leaf("id", Op.LT, 9)
    with caplog.at_level(logging.WARNING):
        found = searcher.search("words", k=4, columns=["doc"], filters=[only])
    assert found.snapshot_id == 3
    wanted = SearchRequest(query=Match("words"), k=4, columns=("doc",), filters=(only,))
    assert newest.asked == [wanted]
    assert caplog.messages == ["all words are dropped"]
    assert searcher.search("words", k=4, columns=["doc"], filters=[only], snapshot_id=3).snapshot_id == 3
    assert newest.asked == [wanted, wanted]
    assert caplog.messages == ["all words are dropped"] * 2


def test_a_search_has_ten_rows_of_all_columns_by_default() -> None:
    newest = Snapshot(3, None)
    Searcher(newest).search(Match("words"))
    assert newest.asked == [SearchRequest(query=Match("words"), k=10, columns=None, filters=())]


def test_a_search_goes_on_where_its_snapshot_was_cleaned_up(caplog: pytest.LogCaptureFixture) -> None:
    first, second = Snapshot(3, LOST), Snapshot(4, None, ("told once",))
    with caplog.at_level(logging.WARNING):
        assert Searcher(first, second).search("words", k=2).snapshot_id == 4
    assert second.asked == first.asked == [SearchRequest(query=Match("words"), k=2)]
    said, note = caplog.messages
    assert said.startswith("snapshot 3 was superseded while it was searched, so snapshot 4 is: db.t: a file is gone")
    assert note == "told once"


def test_damage_of_the_newest_snapshot_is_told_at_once() -> None:
    newest, again = Snapshot(3, LOST), Snapshot(3, None)
    with pytest.raises(CorruptTable, match="a file is gone"):
        Searcher(newest, again).search("words")
    assert len(newest.asked) == 1
    assert not again.asked


def test_a_search_that_clean_ups_outrun_ends(caplog: pytest.LogCaptureFixture) -> None:
    snapshots = [Snapshot(number, LOST) for number in range(20)]
    with pytest.raises(CorruptTable, match="a file is gone"):
        Searcher(*snapshots).search("words")
    assert [len(each.asked) for each in snapshots] == [1] * 10 + [0] * 10
    last = Snapshot(9, None, ("told by the last one, too",))
    assert Searcher(*snapshots[:9], last).search("words").snapshot_id == 9
    assert caplog.messages[-1] == "told by the last one, too"


def test_another_error_than_one_of_the_table_is_not_tried_over() -> None:
    newest = Searcher(Snapshot(3, ConfigError("no such column")), Snapshot(4, None))
    with pytest.raises(ConfigError):
        newest.search("words")
    assert len(newest.newest) == 1


def test_the_newest_snapshot_is_looked_for_again_once(caplog: pytest.LogCaptureFixture) -> None:
    """One that was superseded while it was opened."""
    with caplog.at_level(logging.INFO):
        assert Searcher(LOST, Snapshot(4, None)).search("words").snapshot_id == 4
    assert "the newest snapshot could not be opened, so it is looked for again: db.t: a file is gone" in caplog.text
    with pytest.raises(TableNotFound):
        Searcher(LOST, TableNotFound("db.t"), Snapshot(4, None)).search("words")
    with pytest.raises(ConfigError):
        Searcher(ConfigError("no"), Snapshot(4, None)).search("words")


def test_a_named_snapshot_that_is_gone_answers_by_no_other() -> None:
    searcher = Searcher(Snapshot(4, None))
    with pytest.raises(SnapshotNotFound, match="there is no snapshot 3"):
        searcher.search("words", snapshot_id=3)
    with pytest.raises(SnapshotNotFound, match="snapshot 3 was cleaned up while it was searched") as cleaned:
        searcher.search_opened(Snapshot(3, LOST), SearchRequest(query=Match("words")))
    assert cleaned.value.where == "db.t"
    assert "a file is gone" in str(cleaned.value)
    assert isinstance(cleaned.value.__cause__, CorruptTable)
    assert len(searcher.newest) == 1


def test_a_named_snapshot_that_is_damaged_is_told_as_that() -> None:
    damaged = Snapshot(3, LOST)
    with pytest.raises(CorruptTable, match="snapshot 3 can't be searched") as told:
        Searcher(there=[damaged]).search("words", snapshot_id=3)
    assert told.value.where == "db.t"
    assert "a file is gone" in str(told.value)
    assert "Search a newer snapshot" in str(told.value)
    for other in (IncompatibleTable("of a newer version"), SchemaChanged("another type now")):
        with pytest.raises(type(other)) as raised:
            Searcher(there=[Snapshot(3, other)]).search("words", snapshot_id=3)
        assert raised.value is other


def test_a_snapshot_that_a_task_opens_again_is_the_one_that_was_chosen() -> None:
    plain, named = Snapshot(3, None), Named(4, None)
    searcher = Searcher(there=[plain, named])
    assert searcher.at_again(3, "") is plain
    assert searcher.at_again(4, "first") is named
    assert searcher.at_again(4, "") is named, "who chose it knew of no identity"
    for number in (3, 4):
        with pytest.raises(SnapshotNotFound, match=f"snapshot {number} is not the one that was chosen"):
            searcher.at_again(number, "second")


def test_the_share_of_the_rows_that_indexes_cover() -> None:
    assert SearchExplain(indexes=(), rows=4, rows_flat=1).share == 0.75
    assert SearchExplain(indexes=(), rows=4, rows_flat=1).rows_covered == 3
    assert SearchExplain(indexes=(), rows=4, rows_flat=4).share == 0.0
    assert SearchExplain(indexes=(), rows=0, rows_flat=0).share == 1.0


@pytest.mark.parametrize("k", [0, -1, 10_001, True, 1.0, "3"])
def test_how_many_rows_may_be_asked_for(k: int) -> None:
    with pytest.raises(ConfigError, match=r"^k is "):
        SearchRequest(query=Match("words"), k=k)
    assert [SearchRequest(query=Match("words"), k=each).k for each in (1, 10_000)] == [1, 10_000]


def test_what_is_no_predicate_filters_no_search() -> None:
    with pytest.raises(ConfigError, match="the filter 'id < 3' is a str"):
        SearchRequest(query=Match("words"), filters=(Leaf("id", Op.LT, 9), "id < 3"))  # type: ignore[arg-type]


def test_the_schema_of_a_search() -> None:
    words, near = Match("words"), Nearest((1.0,))
    score, distance = (pa.field(name, pa.float64(), nullable=False) for name in ("_score", "_distance"))

    def projected(query: object, schema: pa.Schema = SCHEMA, columns: tuple[str, ...] | None = None) -> pa.Schema:
        request = SearchRequest(query=query, columns=columns)  # type: ignore[arg-type]
        return request.projected(schema, where="db.t")

    assert projected(words) == SCHEMA.append(score)
    assert projected(near) == SCHEMA.append(distance)
    assert projected(Hybrid(words, near)) == SCHEMA.append(score)
    assert projected(words, columns=("doc",)) == pa.schema([SCHEMA.field("doc"), score])
    with pytest.raises(ConfigError, match="'id' of a scan is named twice"):
        projected(words, columns=("id", "doc", "id"))
    for query, taken in ((words, "_score"), (words, "_Score"), (near, "_distance"), (Hybrid(words, near), "_distance")):
        with pytest.raises(ConfigError, match=f"the table has a column {taken}"):
            projected(query, SCHEMA.append(pa.field(taken, pa.int64())))
    for query, free in ((words, "_distance"), (near, "_score")):
        assert free in projected(query, SCHEMA.append(pa.field(free, pa.int64()))).names
