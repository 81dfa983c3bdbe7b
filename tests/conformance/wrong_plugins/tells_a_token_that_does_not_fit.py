"""The text of a token is looked at as the options are made, and one that does not fit is told as it is."""

from __future__ import annotations

from dataclasses import dataclass

from optioned import optioned

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_options.py::test_what_does_not_fit_is_refused_by_its_key"
SAYS = "the refusal of api-token helps who wrote it: it shows the value, which is a secret"


@dataclass(frozen=True)
class Options:
    api_token: str | None = spi.option(None, "Who calls.")

    def __post_init__(self) -> None:
        if self.api_token is not None and not self.api_token.startswith("lt-"):
            raise ValueError(f"api-token is {self.api_token}, and begins with lt-")


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return optioned("tells-a-token-that-does-not-fit", Options)
