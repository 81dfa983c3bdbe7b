"""What the tests of the suite are given."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from laketier.spi import Feature, LakeStoragePlugin, support_of
from laketier_conformance import started
from laketier_conformance.children import Child, Children
from laketier_conformance.expect import NotShown
from laketier_conformance.failpoints import CountedFailpoints
from laketier_conformance.harness import Harness
from laketier_conformance.interposed.answers import Answers
from laketier_conformance.interposed.looks import Looks
from laketier_conformance.interposed.powercuts import PowerCuts
from laketier_conformance.interposed.probe import why_not
from laketier_conformance.interposed.runs import Interposed
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import Lake, Opened, Table
from laketier_conformance.outside import opened_in_a_bucket
from laketier_conformance.stored import Stored
from laketier_conformance.stores.found import Store, running, why_none
from laketier_conformance.verdict import EFFECTS, INTERPOSED, PLACES, STRIDES, UNPROVEN, UNSEEN


@pytest.fixture(scope="session")
def format_name(pytestconfig: pytest.Config) -> str:
    """The format under test. In a run of several this is a parameter instead."""
    return str(pytestconfig.getoption("lake_format"))


@pytest.fixture(scope="session")
def plugin(pytestconfig: pytest.Config, format_name: str) -> LakeStoragePlugin:
    """The plugin under test."""
    suite: Any = pytestconfig.pluginmanager.get_plugin("laketier_conformance_suite")
    found: LakeStoragePlugin = suite.plugin_of(format_name)
    return found


@pytest.fixture(scope="session")
def harness(format_name: str) -> Harness:
    """The author's, or the default."""
    return Harness.of(format_name)


@pytest.fixture(scope="session")
def opened(format_name: str, harness: Harness) -> Opened:
    """Opens an empty warehouse in a folder, for as long as the block."""

    @contextmanager
    def empty(folder: Path) -> Iterator[Lake]:
        folder.mkdir(parents=True, exist_ok=True)
        before = dict(os.environ)
        warehouse = harness.setup(folder)
        started.keep_changes(before)
        try:
            yield Lake(format_name, warehouse.location, warehouse.options, dates_by=harness.dates_by)
        finally:
            harness.teardown(warehouse)

    return empty


@pytest.fixture
def folder(pytestconfig: pytest.Config, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Where this test's warehouse is, if it is on the local disk."""
    kept = pytestconfig.getoption("lake_warehouse")
    return tmp_path if kept is None else Path(kept).absolute() / request.path.stem / request.node.name.replace("/", "_")


@pytest.fixture
def lake(opened: Opened, folder: Path) -> Iterator[Lake]:
    """An empty warehouse of this test's own."""
    with opened(folder) as lake:
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    """An empty table of the usual schema."""
    return lake.create()


@pytest.fixture
def keyed(lake: Lake) -> Keyed:
    """A table with a primary key. Epoch 0 put 1 and 2 into one file, and 3 into another."""

    def make() -> Table:
        keyed = Keyed.of(lake.create(primary_key=("id",)))
        keyed.round(0, keyed.staged({1: "a", 2: "b"}), keyed.staged({3: "c"}))
        return keyed.table

    return Keyed(make)


@pytest.fixture(scope="session")
def _children(
    format_name: str, harness: Harness, opened: Opened, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Children]:
    with ExitStack() as used:
        warm = None if harness.warm_up is None else tmp_path_factory.mktemp("warm")
        children = Children(format_name, lambda: used.enter_context(opened(tmp_path_factory.mktemp("imports"))), warm)
        used.callback(children.stop)
        yield children


@pytest.fixture
def children(_children: Children) -> Iterator[Callable[[int], list[Child]]]:
    """Gives other processes; they end with the test."""
    yield lambda count: list(_children.take(count))
    _children.release()


@pytest.fixture
def interpreter(_children: Children) -> Iterator[Child]:
    """Another process that has imported the plugin and nothing more; it ends with the test."""
    yield _children.fresh()
    _children.release()


@pytest.fixture
def hosts(_children: Children) -> Iterator[Callable[[Mapping[str, str]], Child]]:
    """Gives interpreters of an environment of their own; they end with the test."""
    yield lambda environment: _children.fresh(environment=environment)
    _children.release()


@pytest.fixture
def runs(
    children: Callable[[int], list[Child]], lake: Lake, folder: Path, request: pytest.FixtureRequest
) -> Iterator[Interposed]:
    """Requests to other processes, each effect of which is seen and decided. Skips the test where it can't be."""
    reason = why_not()
    if reason is not None:
        request.node.user_properties.append((INTERPOSED, reason))
        pytest.skip(f"effects can't be seen here: {reason}")
    runs = Interposed(children, lake, folder)
    yield runs
    told = request.node.user_properties
    told += [(EFFECTS, dict(runs.sight.kinds)), (PLACES, dict(runs.sight.places))]
    told += [(UNSEEN, each) for each in runs.sight.unseen]
    told += [(STRIDES, each) for each in runs.sight.strides]


@pytest.fixture
def looks(
    children: Callable[[int], list[Child]], lake: Lake, folder: Path, request: pytest.FixtureRequest
) -> Callable[[], AbstractContextManager[Looks]]:
    """Requests to another process, each of whose looks at a file is seen and may fail. Skips the test where it can't
    be."""
    reason = why_not()
    if reason is not None:
        request.node.user_properties.append((INTERPOSED, reason))
        pytest.skip(f"looks can't be seen here: {reason}")
    return lambda: Looks.of(children(1)[0], lake, folder)


@pytest.fixture(scope="session")
def _connects(_children: Children, opened: Opened, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], bool]:
    """Whether a round of this format opens a connection to a server. Found out once."""

    @cache
    def found() -> bool:
        with opened(tmp_path_factory.mktemp("connects")) as lake:
            lake.create()
            answers = Answers(lambda count: list(_children.take(count)), lake)
            return bool(answers.run("round", table="db.t", pipeline="p", epoch=0, tasks=[[1]]).requests)

    return found


@pytest.fixture
def answers(
    _connects: Callable[[], bool],
    children: Callable[[int], list[Child]],
    lake: Lake,
    request: pytest.FixtureRequest,
) -> Iterator[Answers | None]:
    """Requests to other processes, each of whose own requests to a server may meet a fault. None of a format that asks
    none. Skips the test where connections can't be seen."""
    reason = why_not()
    if reason is not None:
        request.node.user_properties.append((INTERPOSED, reason))
        pytest.skip(f"connections can't be seen here: {reason}")
    if not _connects():
        why = "answers of servers: nothing to interpose, as a round opens no connection to one"
        request.node.user_properties.append((UNPROVEN, why))
        yield None
        return
    found = Answers(children, lake)
    yield found
    request.node.user_properties.append((EFFECTS, {"answers of servers": found.met}))
    request.node.user_properties += [(UNSEEN, each) for each in found.unseen]


@pytest.fixture
def cuts(
    runs: Interposed,
    lake: Lake,
    children: Callable[[int], list[Child]],
    folder: Path,
    request: pytest.FixtureRequest,
) -> Iterator[PowerCuts]:
    """Requests to other processes, in and after which the power may be cut. Skips the test once it can't be."""

    def unseen(why: str) -> NoReturn:
        request.node.user_properties.append((UNSEEN, why))
        pytest.skip(why)

    with PowerCuts(runs, lake, children, folder, unseen) as cuts:
        yield cuts


@pytest.fixture(scope="session")
def _store(pytestconfig: pytest.Config) -> Iterator[Callable[[], Store]]:
    """Begun by the first who asks."""
    with ExitStack() as used:
        yield cache(lambda: used.enter_context(running(pytestconfig.getoption("lake_s3_endpoint"))))


@pytest.fixture
def in_store(
    pytestconfig: pytest.Config,
    plugin: LakeStoragePlugin,
    harness: Harness,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[], Stored]]:
    """Opens an empty warehouse in an object store. Raises `NotShown` where there is no store, or nobody told how the
    format reaches it."""
    asked: list[Stored] = []
    left = ExitStack()

    def opened() -> Stored:
        if not support_of(plugin.features, Feature.OBJECT_STORES).full:
            found = opened_in_a_bucket(request.getfixturevalue("lake"))
            pytest.fail(f"object-stores is declared unsupported, and a warehouse on s3:// is opened: {found}")
        endpoint = pytestconfig.getoption("lake_s3_endpoint")
        if (reason := why_none(endpoint)) is not None:
            raise NotShown(Feature.OBJECT_STORES, reason)
        before = dict(os.environ)
        stored = Stored.of(request.getfixturevalue("_store")(), plugin, harness, tmp_path / "beside-the-store")
        left.callback(stored.clear)
        started.keep_changes(before)
        asked.append(stored)
        return stored

    with left:
        yield opened
        for stored in asked:
            request.node.user_properties += [(EFFECTS, stored.requests), (PLACES, {"object store": stored.seen})]


@pytest.fixture
def failpoints(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountedFailpoints]:
    """Switches failpoints of this process on, or tells which are passed."""
    found = CountedFailpoints(monkeypatch)
    yield found
    found.forget()


@pytest.fixture
def far_from_utc() -> Iterator[None]:
    """The zone of this process is almost 14 hours ahead of UTC, as that of a user's machine may be. No moment that a
    table tells or stores, and no filter, depends on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "FAR-13:45")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def unproven(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Says that a declared feature could not be shown, and why."""
    return lambda feature, reason: request.node.user_properties.append((UNPROVEN, f"{feature}: {reason}"))
