"""What an author supplies to the suite of formats or of sources: loaded by its entry point, or refused by its name."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

from laketier.kit.library_errors import ends_the_process
from laketier.spi import PluginBroken, PluginConflict


@dataclass(frozen=True)
class Supplied:
    """A harness as its author wrote it: ``found`` at ``place``, the value of its entry point. ``whose``: for messages,
    such as "the format 'acme'"."""

    whose: str
    place: str
    found: Any = None

    @classmethod
    def load(cls, whose: str, entries: Iterable[EntryPoint]) -> Supplied | None:
        """Import what the entry points name; None without any. Raises `PluginConflict` for two that differ, and
        `PluginBroken` for one that can't be imported."""
        offers = {entry.value: entry for entry in entries}
        if not offers:
            return None
        if len(offers) > 1:
            both = " and ".join(sorted(offers))
            raise PluginConflict(f"two harnesses are offered for {whose}: {both}", fix="Uninstall one of them.")
        ((place, entry),) = offers.items()
        try:
            return cls(whose, place, entry.load())
        except BaseException as error:  # whatever the import of a module may raise
            if ends_the_process(error):
                raise
            what = f'the entry point of group "{entry.group}" in pyproject.toml, or what it names'
            raise cls(whose, place).broken(
                f"{type(error).__name__}: {error}", fix=f"Mend {what}, and install it again."
            ) from error

    def broken(self, why: str, *, fix: str) -> PluginBroken:
        """The error of a harness that can't be used."""
        return PluginBroken(f"the harness of {self.whose} can't be used", where=self.place, why=why, fix=fix)

    def check_names(self, names: Iterable[str], members: Collection[str]) -> None:
        """Raise `PluginBroken` for a name that is nearly that of a member: it would be called by nobody."""
        for name in names:
            near = difflib.get_close_matches(name, members, n=1, cutoff=0.8)
            if near and name not in members and not name.startswith("_"):
                raise self.broken(
                    f"nothing would ever call its member {name!r}",
                    fix=f"Call it {near[0]!r}, or give it a name less alike.",
                )
