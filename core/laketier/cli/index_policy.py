"""``laketier index policy``: the policies of indexes that a table carries itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from laketier.cli.index_shown import settings_of
from laketier.cli.lakes import Json, LakeOptions, takes_lake
from laketier.cli.shown import print_json, say
from laketier.maintenance.index_policy import IndexPolicy
from laketier.maintenance.policy_checks import check_policy, policy_differs
from laketier.maintenance.table_policies import INDEXES, change_policy, entry_of, policies_of_table, remove_policy
from laketier.registry import Lake
from laketier.spi import ConfigError, TableInfo


@takes_lake
def policy(
    options: LakeOptions,
    name: Annotated[str | None, typer.Argument(help="The index; all policies of the table by default.")] = None,
    *,
    to: Annotated[
        list[str] | None,
        typer.Option("--to", help="Change a key: KEY=VALUE, as below indexes: of a service file. May be repeated."),
    ] = None,
    default: Annotated[
        list[str] | None, typer.Option("--default", help="Let a key be what it is by default. May be repeated.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the policy away; the index stays.")] = False,
    json: Json = False,
) -> None:
    """Show or change the policies of indexes that the table itself carries.

    No index is built or changed now: whoever keeps the table's indexes does it at the next look. A service goes by its
    own file where that names the index, or one of the same kind on the column.
    """
    changes = bool(to or default)
    if name is None and (changes or remove):
        raise ConfigError("no index is named", fix="Name it: `laketier index policy TABLE INDEX …`.")
    if changes and remove:
        raise ConfigError("--remove goes with no change", fix="Leave --to and --default out.")
    lake, info = options.opened()
    notes: list[str] = []
    looks = _Looks()
    if remove and name is not None:
        shown = remove_policy(lake, name)
        notes.append(f"removed the policy of {name}; an index of that name stays, and nobody keeps it by this table")
    elif changes and name is not None:
        # The looks come first: after the commit nothing may be refused any more.
        settings = settings_of(to, flag="--to")
        shown = change_policy(lake, name, settings, by_default=default or (), check=looks.check)
        shown = tuple(each for each in shown if each.spec.name == name)
    else:
        shown = policies_of_table(info)
        if name is not None:
            shown = tuple(each for each in shown if each.spec.name == name)
            if not shown:
                raise ConfigError(f"the table has no policy of {name!r}", where=f"property {INDEXES} of {info.path}")
    documents = []
    for each in shown:
        is_built, other = looks.of(lake, info, each)
        documents.append(
            entry_of(each) | {"index": "other settings" if other else "built" if is_built else "not built"}
        )
        if other:
            notes.append(f"{each.spec.name}: {other}; build it anew with `laketier index create --replace`")
    if json:
        print_json({"policies": documents})
    elif not documents and not notes:
        say("no policies")
    for document in () if json else documents:
        say(f"{document.pop('name')} ({document.pop('index')}): {_told(document)}")
    for note in notes:
        say(note, err=True)


@dataclass
class _Looks:
    """By the name of a policy, what was seen of its index: whether it is built, and why the policy can't keep it."""

    seen: dict[str, tuple[bool, str]] = field(default_factory=dict)

    def check(self, lake: Lake, table: TableInfo, policy: IndexPolicy) -> None:
        """See ``check`` of `change_policy`."""
        check_policy(lake, table, policy)
        self.seen[policy.spec.name] = _look(lake, table, policy)

    def of(self, lake: Lake, table: TableInfo, policy: IndexPolicy) -> tuple[bool, str]:
        return self.seen.get(policy.spec.name) or _look(lake, table, policy)


def _look(lake: Lake, table: TableInfo, policy: IndexPolicy) -> tuple[bool, str]:
    indexer = lake.indexer(table)
    is_built = policy.spec.name in {each.name for each in indexer.indexes()}
    return is_built, policy_differs(indexer, policy) if is_built else ""


def _told(document: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in document.items())
