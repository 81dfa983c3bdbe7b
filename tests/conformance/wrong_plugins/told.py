"""Tables whose state tells something else than what there is."""

from __future__ import annotations

from typing import Any

from feather_lake.plugin import FeatherTable

from laketier import kit, spi


def told(state: type[kit.ManifestState]) -> dict[str, Any]:
    """The part of a plugin that makes states of this class: a table."""

    class TellingTable(FeatherTable):
        def open(self) -> kit.ManifestState:
            return self._told(super().open())

        def state(self, info: spi.TableInfo) -> kit.ManifestState:
            return self._told(super().state(info))

        def _told(self, found: kit.ManifestState) -> kit.ManifestState:
            return state(found.manifests, found.head, found.metadata)

    return {"table": TellingTable}
