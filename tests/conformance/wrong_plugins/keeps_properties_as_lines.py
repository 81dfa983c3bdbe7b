"""Properties are kept as in a file of properties: a name, ``=`` and a value in each line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_properties_stay_as_they_are"
SAYS = "properties of a table that are kept"


def read(text: str) -> Mapping[str, str]:
    lines = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in lines}


class InLines(kit.ManifestCatalog):
    def _checked(self, descriptor: spi.TableDescriptor) -> spi.TableDescriptor:
        text = "\n".join(f"{name}={value}" for name, value in descriptor.properties.items())
        return replace(super()._checked(descriptor), properties=read(text))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-properties-as-lines", catalog=InLines)
