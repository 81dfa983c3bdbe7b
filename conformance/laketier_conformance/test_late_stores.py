"""A store whose word comes late, or is within an answer of 200: a put that arrives when its sender has given up, and
deletions of which each has an error of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from datetime import timedelta

import pytest

from laketier.maintenance.orphans import list_orphans
from laketier.spi import Feature, LaketierError, OrphanFile, UnknownOutcome
from laketier_conformance.child import answer_of
from laketier_conformance.delivery import publish_of
from laketier_conformance.expect import NotShown, expect
from laketier_conformance.lake import Table, ids_of
from laketier_conformance.stored import Stored
from laketier_conformance.stores.proxy import Fault
from laketier_conformance.stores.steps import Step, recorded
from laketier_conformance.stores.wsgi import Sent

pytestmark = pytest.mark.needs(Feature.OBJECT_STORES)

InStore = Callable[[], Stored]


def test_a_put_arrives_late(in_store: InStore, unproven: Callable[[str, str], None]) -> None:
    """Its sender has given up, and finds no object: on a network that does not mean that there will be none. So it is
    neither a `Conflict` nor `NotBegun`, whose files are deleted, or staged and published once more."""
    stored = in_store()
    table = stored.lake.create()
    table.append(0)
    first = publish_of(table, 1)
    with recorded(stored.proxy) as sent:
        answer = answer_of(stored.lake, first)
    assert "published" in answer, f"a publish in a store goes well: found {answer}"
    puts = sum(each.is_conditional for each in sent)
    if not puts:
        unproven("puts that arrive late", "a publish puts nothing on a condition")
    expected = ids_of(0) + ids_of(1)
    for epoch, at in enumerate(range(puts), start=2):
        request = publish_of(table, epoch)
        step = Step(at, Fault.LATE, lasting=True, counts=lambda each: each.is_conditional)
        with stored.proxy.deciding(step):
            answer = answer_of(stored.lake, request)
        stored.proxy.let_arrive()
        landed = _landed(table, request["commit"])
        assert not (landed and answer.get("absent")), (
            f"{step.told}, and so did each that was sent again: the commit is in the table then, and the call had "
            f"ended in {answer['failed']}, which means that nothing of it landed. Where no object is found after a put "
            "without an answer, the outcome is unknown"
        )
        expected += ids_of(epoch) if landed else []
        expect(table.ids, expected, f"rows of a table in a store, after {step.told}")


def _landed(table: Table, commit: str) -> bool:
    with closing(table.committer()) as committer, suppress(UnknownOutcome):
        return committer.open().landed(commit)
    return False


@pytest.mark.needs(Feature.ORPHAN_COLLECTION)
def test_what_a_store_does_not_delete_is_not_called_gone(in_store: InStore) -> None:
    """It says so in an answer of 200 where several objects shall go at once, of each. Whoever counts what a collection
    removed, and asks no more for it, would leave it for ever. When the store deletes again, all of it goes."""
    stored = in_store()
    table = stored.lake.create()
    table.append(0)
    staged = {file.path for epoch in (1, 2, 3) for file in table.staged(ids_of(epoch)).files}
    stored.lake.let_age()
    storage, info = stored.lake.storage, table.info
    orphans = [file for file in list_orphans(storage, info, grace=timedelta(0)).orphans if file.path in staged]
    if not _there(stored, orphans):
        raise NotShown(Feature.ORPHAN_COLLECTION, "what tasks stage in a store are no objects of its name")
    maintenance = storage.maintenance(info)
    with stored.proxy.deciding(_keeps):
        try:
            gone = maintenance.remove_orphans(orphans)
        except (LaketierError, OSError):
            gone = ()  # and nothing is said to be gone
    told = "orphans are deleted in a store that answers 403, or an error for each object"
    still_there = sorted(_there(stored, gone))
    expect(still_there, [], f"{told}: those that `remove_orphans` says are gone, and that are still there")
    storage.maintenance(info).remove_orphans(orphans)
    expect(sorted(_there(stored, orphans)), [], "orphans that a store did not delete once, and then was asked again")
    expect(table.ids, ids_of(0), "rows after orphans were deleted in a store")


def _keeps(sent: Sent) -> Fault | None:
    return Fault.KEPT if sent.deletes_many else Fault.DENIED if sent.method == "DELETE" else None


def _there(stored: Stored, orphans: Iterable[OrphanFile]) -> set[str]:
    keys = stored.keys()
    return {file.path for file in orphans if any(f"/{key}".endswith(f"/{file.path}") for key in keys)}
