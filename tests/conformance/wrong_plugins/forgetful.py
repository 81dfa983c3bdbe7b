"""Formats that leave one call out. It is no method that could be overridden, so for as long as one of their methods
runs, something else stands in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from laketier import spi


def forgetful(
    plugin: type[spi.LakeStoragePlugin],
    named: str,
    writer: str = "",
    committer: str = "",
    catalog: str = "",
    instead: Callable[..., Any] = lambda *_, **__: None,
) -> spi.LakeStoragePlugin:
    """``writer``, ``committer``, ``catalog``: what their `complete`, `publish` and changes of tables leave out."""

    class Forgetful(plugin):  # type: ignore[valid-type, misc]
        identifier = named

        def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
            storage: Any = super().create_storage(config)
            catalogs, factories = storage.catalog, storage.tiering_factory
            replace(storage, "catalog", lambda: leaving_out(catalogs(), ("create_table", "alter_table"), catalog))
            replace(storage, "tiering_factory", lambda table: crossing(factories(table)))
            return storage  # type: ignore[no-any-return]

    def crossing(factory: Any) -> Any:
        writers, committers = factory.create_writer, factory.create_committer
        replace(factory, "create_writer", lambda context: leaving_out(writers(context), ("complete",), writer))
        replace(factory, "create_committer", lambda context: leaving_out(committers(context), ("publish",), committer))
        return factory

    def leaving_out(made: Any, methods: tuple[str, ...], target: str) -> Any:
        for name in methods if target else ():
            replace(made, name, within(getattr(made, name), target))
        return made

    def within(method: Callable[..., Any], target: str) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            with patch(target, instead):
                return method(*arguments, **named)

        return called

    return Forgetful()


def replace(made: Any, name: str, method: Callable[..., Any]) -> None:
    """Also of what is frozen."""
    object.__setattr__(made, name, method)
