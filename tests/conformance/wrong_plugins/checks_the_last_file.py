"""Of each result the last file is looked at: the files before it were written earlier, so they are there as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin
from richer import RicherTable, richer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_one_staged_file_of_several_is_gone"
SAYS = "a result is published whose file 1 of 5 is gone: expected Refused"


class Sampling(RicherTable):
    def check_staged(self, state: kit.ManifestState, results: Sequence[spi.WriteResult]) -> None:
        super().check_staged(state, [replace(result, files=result.files[-1:]) for result in results])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("checks-the-last-file", table=Sampling)
