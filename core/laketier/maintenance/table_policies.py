"""Policies of indexes that a table carries itself, in a property, so that whoever writes to it can keep them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from laketier.config.indexes import IndexSection
from laketier.config.parsing import parsed
from laketier.maintenance.index_policy import IndexPolicy, policy_of
from laketier.spi import ConfigError, TableInfo

INDEXES = "laketier.indexes"
"""The property: a list in JSON, with the entries that `indexes:` of a service file has."""


def policies_of_table(table: TableInfo) -> tuple[IndexPolicy, ...]:
    """The policies that the table's property `INDEXES` has. Driver.

    Args:
        table: The table.

    Returns:
        The policies, in the order of the property. None where the table has no such property.

    Raises:
        ConfigError: The property is no such list, or names an index twice.
    """
    text = table.descriptor.properties.get(INDEXES)
    if text is None:
        return ()
    where = f"property {INDEXES} of {table.path}"
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise ConfigError("it is no JSON", where=where, why=f"{error}", fix="Write a list of indexes.") from error
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise ConfigError("it is no list of indexes", where=where, fix='Write [{"column": …, "kind": …}].')
    found = tuple(policy_of(parsed(IndexSection, each, origin=where)) for each in entries)
    names = [each.spec.name for each in found]
    for twice in sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"it has {twice!r} twice", where=where, fix="Give each a name of its own.")
    return found


def with_those_of_the_table(
    given: Sequence[IndexPolicy], of_table: Sequence[IndexPolicy]
) -> tuple[tuple[IndexPolicy, ...], tuple[str, ...]]:
    """Put the policies of a file and those of a table together. Pure.

    Args:
        given: Those of the file. They count, where both have an index of a name.
        of_table: Those of the table.

    Returns:
        All of them, those of the file first; and the names for which the two differ.
    """
    own = {each.spec.name: each for each in given}
    more = tuple(each for each in of_table if each.spec.name not in own)
    return (*given, *more), tuple(each.spec.name for each in of_table if own.get(each.spec.name, each) != each)
