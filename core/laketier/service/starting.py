"""All checks before a service starts: the state, the sources, the rules, the tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from laketier.config import flatten
from laketier.config.problems import together
from laketier.config.service import Service, TableRule
from laketier.config.suggest import did_you_mean
from laketier.registry import OpenSource, open_log_source
from laketier.rounds.configured import configured_tables, excludes_all, rule_problems, unmatched
from laketier.service.listing import Listed, list_all
from laketier.service.schedule import State
from laketier.service.state import StateError, StateStore, StateUnavailable, may_pass
from laketier.spi import (
    ConfigError,
    FeatureNotSupported,
    LaketierError,
    PluginError,
    TableError,
)

log = logging.getLogger(__name__)

_FOR_A_PERSON = (ConfigError, PluginError, FeatureNotSupported, TableError)
_NAMED = 5
_ABSENT = (FileNotFoundError, NotADirectoryError)
_NO_ENTRY = ("password authentication failed", "does not exist", "no pg_hba.conf entry")
"""What PostgreSQL says to who connects with a wrong URL. A server in another language's words is asked again later."""


def checked_sources(service: Service, *, origin: str) -> dict[str, OpenSource]:
    """The sources, open, if nothing is wrong with the state, the sources' options and the rules. Asks no source for its
    tables: that may take long. Raises one `ConfigError` for all that is wrong, and `StateUnavailable` where nothing is,
    and the state may come back: its server does not answer, or its file's disk is full. A file's folder does not."""
    sources: dict[str, OpenSource] = {}
    problems = list(_state_problems(service, origin))
    try:
        problems += _open(service, sources, origin)
        problems += _rule_problems(service, sources, origin)
        if len(problems) == 1 and _may_come_back(problems[0], service.state):
            raise problems[0]
        if problems:
            raise together(problems, origin=origin)
    except BaseException:
        for source in sources.values():
            source.close()
        raise
    return sources


def _may_come_back(problem: LaketierError, state: str) -> bool:
    if not isinstance(problem, StateUnavailable):
        return False
    if state.startswith("sqlite"):
        return may_pass(problem)
    why = problem.why or ""
    return "FATAL" not in why or not any(said in why for said in _NO_ENTRY)


def _rule_problems(service: Service, sources: Mapping[str, OpenSource], origin: str) -> list[LaketierError]:
    """What stands in `defaults` is wrong for each rule, and is said once: with the first one that it is wrong for."""
    bare = [TableRule.model_validate({"source": rule.source}) for rule in service.tables]
    inherited = service.model_copy(update={"tables": bare})
    problems: list[LaketierError] = []
    said: set[str] = set()
    for index in range(len(service.tables)):
        of_defaults = {each.what for each in rule_problems(inherited, index, sources, origin=origin)}
        found = rule_problems(service, index, sources, origin=origin)
        problems += [each for each in found if each.what not in said]
        said |= of_defaults & {each.what for each in found}
    return problems


def checked_tables(service: Service, sources: Mapping[str, OpenSource], *, origin: str, strict: bool = False) -> Listed:
    """The tables of all sources, if the rules fit them. Raises one `ConfigError` for all that is wrong.

    A source that does not answer, and a pattern that no table matches yet, are for later: both may come, so they are
    logged. With ``strict`` they are problems too, as nobody waits for them.
    """
    problems: list[LaketierError] = []
    listed = list_all(sources)
    for name, names in listed.items():
        if isinstance(names, LaketierError):
            unlisted = _unlisted(names, f"{origin}, sources.{name}.options")
            _add(problems, unlisted, strict or _is_absent(names))
    known = {name: names for name, names in listed.items() if not isinstance(names, LaketierError)}
    for index, rule in enumerate(service.tables):
        if rule.source in known:
            for missed in _matches_nothing(rule, known[rule.source], f"{origin}, tables.{index}"):
                _add(problems, missed, strict)
    if not problems:
        try:
            configured_tables(service, known, origin=origin, refused={})
        except LaketierError as error:
            problems.append(error)
    if problems:
        raise together(problems, origin=origin)
    return listed


def _add(problems: list[LaketierError], error: LaketierError, is_problem: bool) -> None:
    if is_problem:
        problems.append(error)
    else:
        log.warning("%s", error)


def _state_problems(service: Service, origin: str) -> Iterator[LaketierError]:
    where = f"{origin}, state"
    try:
        with StateStore.open(service.state, service=service.name) as store:
            store.check()
            error = _other_file(service, store, origin)
            if error is not None:
                yield error
    except (StateError, ConfigError) as refused:
        refused.where = f"{where}, {refused.where}" if refused.where else where
        yield refused


def _other_file(service: Service, store: StateStore, origin: str) -> ConfigError | None:
    """Two files with one name and one database drop each other's tables, at each listing of their sources."""
    now = store.now()
    workers = (each for each in store.workers() if each.stopping_at is None)
    alive = [each.worker for each in workers if each.is_heard_of(now, service.lease)]
    tables = [status.table for status in store.snapshot()]
    foreign = sorted(
        {each.source for each in tables if each.state not in (State.DROPPED, State.RECREATED)} - service.sources.keys()
    )
    if not foreign or not alive:
        return None
    return ConfigError(
        f"the service {service.name!r} has tables of the source {foreign[0]!r}, which this file lacks",
        where=f"{origin}, name",
        why=f"worker {alive[0].id} is at work for a service of that name in this database, with another file",
        fix=f"If this is that file's new version: stop that worker, or wait {service.lease:g} s if it has died. "
        "If it is another service: give it a `name` of its own; its tables are then read from the beginning.",
    )


def _open(service: Service, sources: dict[str, OpenSource], origin: str) -> Iterator[LaketierError]:
    for name, section in service.sources.items():
        where = f"{origin}, sources.{name}"
        try:
            sources[name] = open_log_source(section.type, flatten(section.options), name=name, origin=where)
        except LaketierError as error:
            if isinstance(error, PluginError):
                error.where = error.where or f"{where}.type"
            elif not (error.where or "").startswith(origin):
                error.where = where if error.where in (None, name) else f"{where}, {error.where}"
            yield error


def _is_absent(error: BaseException) -> bool:
    """Whether a person has to mend it: it is wrong, or is not there, and does not just not answer."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (*_FOR_A_PERSON, *_ABSENT)):
            return True
        cause = cause.__cause__
    return False


def _unlisted(error: LaketierError, where: str) -> ConfigError:
    told = f"{error.where}: {error.what}" if error.where else error.what
    why = told if error.why is None else f"{told}, because {error.why}"
    fix = error.fix or "Check these options, and that the source answers."
    return ConfigError("the tables of the source can't be listed", where=where, why=why, fix=fix)


def _matches_nothing(rule: TableRule, names: list[str], where: str) -> Iterator[ConfigError]:
    missing = unmatched(rule, names)
    for pattern in missing:
        yield _no_match(pattern, rule.source, names, f"{where}.include")
    if not missing and excludes_all(rule, names):
        yield ConfigError(
            f"no table of the source {rule.source!r} is left", where=f"{where}.exclude",
            why="each table that `include` names is excluded", fix="Exclude fewer, or leave the entry out.",
        )  # fmt: skip


def check_opened(unopened: Mapping[str, LaketierError], opened: int, *, origin: str) -> None:
    """Raise a `ConfigError` where no log of any table can be opened, and a person has to mend each: then it is the file
    that is wrong. One table among others that can't be opened is told by its state."""
    if opened or not unopened or not all(isinstance(error, _FOR_A_PERSON) for error in unopened.values()):
        return
    shown = [f"{key}: {error}" for key, error in list(unopened.items())[:_NAMED]]
    more = f", of {len(unopened)} tables; the first {_NAMED}" if len(unopened) > _NAMED else ""
    raise ConfigError(f"no table can be read{more}", where=f"{origin}, tables", why="; ".join(shown))


def _no_match(pattern: str, source: str, names: list[str], where: str) -> ConfigError:
    shown = ", ".join(sorted(names)[:10]) or "no table at all"
    fix = did_you_mean(pattern, names, f"It has {shown}.")
    return ConfigError(f"no table of the source {source!r} matches {pattern!r}", where=where, fix=fix)
