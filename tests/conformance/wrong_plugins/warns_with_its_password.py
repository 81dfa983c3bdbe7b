"""Whoever opens a warehouse without TLS is warned, by the address that was opened."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from crooked import CrookedPlugin, CrookedStorage

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_text_for_people_shows_a_secret"
SAYS = "a warning has the secret of an option in it"


@dataclass(frozen=True)
class Options:
    user: str = spi.option("", "Who logs in.")
    password: spi.Secret | None = spi.option(None, "Their password.")


class WarningPlugin(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        options: Options = config.options  # type: ignore[assignment]
        if options.password is not None:
            address = f"http://{options.user}:{options.password.reveal()}@catalog"
            warnings.warn(f"{address} is no safe connection", stacklevel=2)
        return super().create_storage(config)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return WarningPlugin("warns-with-its-password")
