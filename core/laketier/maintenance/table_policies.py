"""Policies of indexes that a table carries itself, in a property, so that whoever writes to it can keep them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from laketier.config.indexes import IndexSection
from laketier.config.parsing import parsed
from laketier.config.suggest import did_you_mean
from laketier.maintenance.index_policy import IndexPolicy, policy_of
from laketier.maintenance.policy_checks import check_policy
from laketier.registry import Lake
from laketier.spi import ConfigError, Feature, SetProperty, TableChanged, TableInfo, require
from laketier.tables.evolution import altered

INDEXES = "laketier.indexes"
"""The property: a list in JSON, with the entries that `indexes:` of a service file has."""
_ATTEMPTS = 20
_Entries = list[dict[str, Any]]


def policies_of_table(table: TableInfo) -> tuple[IndexPolicy, ...]:
    """The policies that the table's property `INDEXES` has. Driver.

    Args:
        table: The table.

    Returns:
        The policies, in the order of the property. None where the table has no such property.

    Raises:
        ConfigError: The property is no such list, names an index twice, or names two indexes of one kind on a column.
    """
    return _policies(_entries(table), table)


def change_policy(
    lake: Lake,
    name: str,
    values: Mapping[str, Any],
    *,
    by_default: Collection[str] = (),
    check: Callable[[Lake, TableInfo, IndexPolicy], None] = check_policy,
) -> tuple[IndexPolicy, ...]:
    """Change the policy of one index in the table's property, or give the table a new one. Driver. One commit; it is
    made anew where another one changed the property at the same time. No index is built, and none changes.

    Args:
        lake: The table.
        name: The index.
        values: Keys of an entry of `INDEXES`, and values. ``options.NAME`` is one of its options. Other keys stay.
        by_default: Keys that go back to what they are by default.
        check: Refuses a policy that can't be kept. By default the format is asked.

    Returns:
        All policies of the table, as they are now.

    Raises:
        ConfigError: A key or a value does not fit, ``by_default`` has a key that the policy lacks, or the property
            can't be read.
        FeatureNotSupported: The format changes no properties, or builds no such index.
        TableNotFound: There is no such table.
        TableError: The table could not be read, or changed.
        StorageError: The storage refused.
    """
    renames = values.get("name", name) != name or "name" in by_default
    if renames:
        raise ConfigError("a policy keeps the name of its index", fix="Remove it, and make one with the other name.")

    def changed(table: TableInfo, entries: _Entries) -> _Entries:
        names = [_name_of(entry) for entry in entries]
        at = names.index(name) if name in names else len(entries)
        there = entries[at] if at < len(entries) else {"name": name}
        after = [*entries[:at], _with(there, values, by_default, table, name), *entries[at + 1 :]]
        check(lake, table, _policies(after, table)[at])
        return after

    return _alter(lake, changed)


def remove_policy(lake: Lake, name: str) -> tuple[IndexPolicy, ...]:
    """Take the policy of one index out of the table's property. The index stays, and nobody keeps it. Driver.

    Args:
        lake: The table.
        name: The index.

    Returns:
        The policies that are left.

    Raises:
        ConfigError: The table has no policy of that name, or the property can't be read.
        FeatureNotSupported: The format changes no properties.
        TableNotFound: There is no such table.
        TableError: The table could not be read, or changed.
        StorageError: The storage refused.
    """

    def changed(table: TableInfo, entries: _Entries) -> _Entries:
        names = [_name_of(entry) for entry in entries]  # also of entries that don't fit: this may be what mends them
        if name not in names:
            there = f"It has {', '.join(names)}." if names else "It has none."
            raise ConfigError(
                f"the table has no policy of {name!r}",
                where=_where(table),
                fix=did_you_mean(name, names, there),
            )
        at = names.index(name)
        return [*entries[:at], *entries[at + 1 :]]

    return _alter(lake, changed)


def entry_of(policy: IndexPolicy) -> dict[str, Any]:
    """A policy as an entry of the property has it, with all keys. Pure.

    Args:
        policy: The policy.

    Returns:
        Keys and values, ready for JSON. Limits that are not set are left out.
    """
    spec, limits, age = policy.spec, policy.resources, policy.max_unindexed_seconds
    entry = {
        "name": spec.name,
        "column": spec.column,
        "kind": spec.kind.value,
        "options": dict(spec.options),
        "max-unindexed-rows": policy.max_unindexed_rows,
        "max-unindexed-age": None if age is None else f"{Decimal(age):f} s",
        "max-segments": policy.max_segments,
        "max-deleted-share": policy.max_deleted_share,
        "workers": limits.workers,
        "memory": limits.memory,
        "partition-size": limits.partition_size,
        "spill": limits.spill,
    }
    return {key: value for key, value in entry.items() if value is not None}


def with_those_of_the_table(
    given: Sequence[IndexPolicy], of_table: Sequence[IndexPolicy]
) -> tuple[tuple[IndexPolicy, ...], tuple[str, ...]]:
    """Put the policies of a file and those of a table together. Pure.

    Args:
        given: Those of the file. They count, where both have an index of a name, or of a kind on a column.
        of_table: Those of the table.

    Returns:
        All of them, those of the file first; and the names of the table's for which the two differ.
    """
    own = {each.spec.name: each for each in given}
    taken = {_place(each): each for each in given}
    counted = [own.get(each.spec.name, taken.get(_place(each), each)) for each in of_table]
    more = tuple(each for each, counts in zip(of_table, counted, strict=True) if counts is each)
    differ = tuple(each.spec.name for each, counts in zip(of_table, counted, strict=True) if counts != each)
    return (*given, *(each for each in more if each not in given)), differ


def _place(policy: IndexPolicy) -> tuple[str, str]:
    return policy.spec.column, policy.spec.kind.value


def _where(table: TableInfo) -> str:
    return f"property {INDEXES} of {table.path}"


def _entries(table: TableInfo) -> _Entries:
    text = table.descriptor.properties.get(INDEXES)
    if text is None:
        return []
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "it is no JSON", where=_where(table), why=f"{error}", fix="Write a list of indexes."
        ) from error
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise ConfigError("it is no list of indexes", where=_where(table), fix='Write [{"column": …, "kind": …}].')
    return entries


def _policies(entries: _Entries, table: TableInfo) -> tuple[IndexPolicy, ...]:
    found = tuple(policy_of(parsed(IndexSection, each, origin=_where(table))) for each in entries)
    names = [each.spec.name for each in found]
    for twice in sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"it has {twice!r} twice", where=_where(table), fix="Give each a name of its own.")
    places = [_place(each) for each in found]
    for each in found:
        if places.count(_place(each)) > 1:
            both = [other.spec.name for other in found if _place(other) == _place(each)]
            raise ConfigError(
                f"{' and '.join(both)} are of one kind, {each.spec.kind}, and one column, {each.spec.column}",
                where=_where(table),
                why="a query would ask one of them, and it is not known which",
                fix="Keep one.",
            )
    return found


def _with(
    entry: Mapping[str, Any], values: Mapping[str, Any], by_default: Collection[str], table: TableInfo, name: str
) -> dict[str, Any]:
    changed = dict(entry)
    for key in by_default:
        option = key.removeprefix("options.")
        holder = changed if option == key else dict(changed.get("options") or {})
        if option not in holder:
            raise ConfigError(
                f"the policy of {name!r} has no {key!r}",
                where=_where(table),
                fix=f"It has {', '.join(sorted(changed))}.",
            )
        del holder[option]
        if holder is not changed:
            changed["options"] = holder
    for key, value in values.items():
        option = key.removeprefix("options.")
        if option == key:
            changed[key] = value
        else:
            changed["options"] = {**(changed.get("options") or {}), option: value}
    return changed


def _name_of(entry: Mapping[str, Any]) -> str:
    """As `IndexSection` names it."""
    return str(entry.get("name") or f"{entry.get('column')}_idx")


def _alter(lake: Lake, changed: Callable[[TableInfo, _Entries], _Entries]) -> tuple[IndexPolicy, ...]:
    require(lake.config.format, lake.plugin.features, Feature.SET_PROPERTY)
    for left in reversed(range(_ATTEMPTS)):
        table = lake.load_table()
        entries = changed(table, _entries(table))
        policies = _policies(entries, table)
        before = table.descriptor.properties.get(INDEXES)
        text = json.dumps(entries, ensure_ascii=False) if entries else None
        try:
            altered(lake, [SetProperty(INDEXES, text, before)])
        except TableChanged:
            if not left:
                raise
            continue
        return policies
    raise AssertionError("unreachable")
