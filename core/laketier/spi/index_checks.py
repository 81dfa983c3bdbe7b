"""What every publisher of an index checks before its commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from laketier.spi.errors import ConfigError, Refused, TableChanged
from laketier.spi.index_plan import BuiltIndexPart, IndexPlan, IndexSpec

_AGAIN = "Build the index again."


def check_index_options(spec: IndexSpec, known: Mapping[str, type]) -> None:
    """Check the options of an index by name and type.

    Args:
        spec: The spec.
        known: The options of its kind, each with its type. None is always allowed.

    Raises:
        ConfigError: An option is unknown, or of another type.
    """
    for name, value in spec.options.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            have = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise ConfigError(
                f"{spec.kind} has no option {name!r}",
                where=f"index {spec.name}",
                why=have,
                fix=f"Did you mean {near[0]!r}?" if near else "Remove it.",
            )
        kind = known[name]
        if value is not None and type(value) is not kind:
            raise ConfigError(f"{name} = {value!r} is not of type {kind.__name__}", where=f"index {spec.name}")


MOST_NAME = 200
"""The characters of an index's name, at most."""


def check_index_name(spec: IndexSpec, *, where: str) -> None:
    """Check the name of a new index. Names go into commands, logs and metrics, and into folders of other tools.

    Args:
        spec: The spec.
        where: The table.

    Raises:
        ConfigError: The name is empty, too long, not a text of plain characters, or reads as a path.
    """
    name: Any = spec.name  # of a user, whatever the type says
    why = ""
    if type(name) is not str:
        why = f"it is a {type(name).__name__}"
    elif not name.strip():
        why = "it is empty"
    elif len(name) > MOST_NAME:
        why = f"it has {len(name):,} characters, and {MOST_NAME} are allowed"
    elif name != name.strip() or not name.isprintable():
        why = "it begins or ends with a space, or has a character that can't be seen"
    elif name in (".", "..") or "/" in name or "\\" in name:
        why = "it reads as a path"
    if why:
        raise ConfigError(
            f"{name!r:.100} is no name of an index",
            where=where,
            why=why,
            fix="Give it a name of its own (`name`), such as text_idx.",
        )


def check_built(plan: IndexPlan, built: Sequence[BuiltIndexPart], *, where: str) -> None:
    """Check that the parts are those of the plan, each once, and alike. For `LakeIndexer.publish`, before its commit.

    Args:
        plan: The plan.
        built: What its tasks returned, without what the plan keeps of an earlier one.
        where: The table.

    Raises:
        Refused: They are not.
        TableChanged: A part was built at another snapshot.
    """
    for each in built:
        if each.plan_id != plan.plan_id or each.part not in plan.parts:
            raise Refused(
                f"part {each.part.number} is not of this plan; nothing was published",
                where=where,
                why="a result of another build was handed over",
                fix=_AGAIN,
            )
        if each.snapshot_id != plan.snapshot_id:
            raise TableChanged(
                f"part {each.part.number} was built at snapshot {each.snapshot_id}, and the plan is of "
                f"{plan.snapshot_id}; nothing was published",
                where=where,
                fix=_AGAIN,
            )
        if each.rows != each.part.rows:
            raise Refused(
                f"part {each.part.number} has {each.rows} rows, not {each.part.rows}; nothing was published",
                where=where,
                why="a task indexed other rows than it was given",
                fix=_AGAIN,
            )
    numbers, segments = Counter(each.part.number for each in built), Counter(each.segment for each in built)
    twice = sorted({each.part.number for each in built if numbers[each.part.number] > 1 or segments[each.segment] > 1})
    if twice:
        raise Refused(
            f"parts {twice} were built twice; nothing was published",
            where=where,
            why="a retried or speculative task returned a second result",
            fix=_AGAIN,
        )
    missing = sorted({part.number for part in plan.parts} - {each.part.number for each in built})
    if missing:
        raise Refused(
            f"parts {missing} of {len(plan.parts)} are missing; nothing was published",
            where=where,
            why="a task returned no result",
            fix=_AGAIN,
        )
    settings = sorted({each.settings for each in (*plan.kept, *built)})
    if len(settings) > 1:
        raise Refused(
            "the parts were built with different settings; nothing was published",
            where=where,
            why=f"{settings[0]} is not {settings[1]}",
            fix=_AGAIN,
        )
