"""``laketier index policy``: the policies of indexes that a table carries itself."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from laketier.cli.index_shown import settings_of
from laketier.cli.lakes import Json, LakeOptions, takes_lake
from laketier.cli.shown import print_json, say
from laketier.maintenance.policy_checks import policy_differs
from laketier.maintenance.table_policies import INDEXES, change_policy, entry_of, policies_of_table, remove_policy
from laketier.spi import ConfigError


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
    if remove and name is not None:
        shown = remove_policy(lake, name)
        notes.append(f"removed the policy of {name}; an index of that name stays, and nobody keeps it by this table")
    elif changes and name is not None:
        shown = change_policy(lake, name, settings_of(to, flag="--to"), by_default=default or ())
        shown = tuple(each for each in shown if each.spec.name == name)
    else:
        shown = policies_of_table(info)
        if name is not None:
            shown = tuple(each for each in shown if each.spec.name == name)
            if not shown:
                raise ConfigError(f"the table has no policy of {name!r}", where=f"property {INDEXES} of {info.path}")
    indexer = lake.indexer(info)
    there = {each.name: each for each in indexer.indexes()}
    documents = []
    for each in shown:
        built = there.get(each.spec.name)
        other = "" if built is None else policy_differs(indexer, each)
        documents.append(
            entry_of(each) | {"index": "not built" if built is None else "other settings" if other else "built"}
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


def _told(document: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in document.items())
